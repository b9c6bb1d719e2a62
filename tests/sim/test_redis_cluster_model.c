/*
 * The Redis Cluster of the simulation answers as a real one does: the same commands go to the same
 * nodes of both, while slots move and replicas take over. TEST_SEED=N: another sequence.
 */
#include "cluster_rig.h"
#include "redis.h"
#include "redis_beside.h"
#include "sim_redis_cluster.h"
#include "sim_threads.h"
#include "sim_world.h"
#include "tests.h"
#include "process.h"

#include <stdlib.h>
#include <string.h>

enum { COMMANDS = 300, TEXT_MAX = 1024, AGREE_MS = 60000, MOVES = 3, TRIES = 10 };

static struct sim_redis nodes[SIM_CLUSTER_NODES];
static redisContext *real[SIM_CLUSTER_NODES];
static char ids[SIM_CLUSTER_NODES][64];
static uint64_t chance;

/* -- in the place of the simulated world ------------------------------------------------------- */

int64_t sim_now_us(void)
{
    return 0;
}

struct sim_redis *sim_redis_node(size_t i)
{
    return &nodes[i];
}

/* -- both are asked --------------------------------------------------------------------------- */

static const struct sandbox_server *server(int node)
{
    return node < SIM_CLUSTER_SHARDS ? cluster.master[node]
                                     : cluster.replica[node - SIM_CLUSTER_SHARDS];
}

static redisReply *ask_real(int node, int n, const char *const *words)
{
    redisReply *reply = redisCommandArgv(real[node], n, (const char **)(uintptr_t)words, NULL);
    assert_non_null(reply);
    return reply;
}

static redisReply *ask_model(int node, bool asking, int n, const char *const *asked)
{
    struct sim_bytes answer = {0};
    char *words[SIM_REDIS_WORDS_MAX];
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    for (int i = 0; i < n; i++)
        words[i] = (char *)(uintptr_t)asked[i];
    if (strcmp(words[0], "CLUSTER") == 0)
        sim_cluster_slots(&nodes[node], &answer);
    else if (sim_cluster_redirects(&nodes[node], asking, n, words, &answer))
        assert_int_equal(answer.at[0], '-');
    else if (strcmp(words[0], "EVAL") == 0)
        sim_redis_script(&nodes[node], n, words, &answer);
    else
        sim_redis_run(&nodes[node], n, words, &answer);
    redisReaderFeed(reader, answer.at, answer.n);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    free(answer.at);
    return reply;
}

/* The number of the node with this port, in the model or in the sandbox; -1: none. */
static int node_at(long long port)
{
    for (int i = 0; i < SIM_CLUSTER_NODES; i++)
        if (nodes[i].host.port == port || server(i)->port == port)
            return i;
    return -1;
}

/* "MOVED 5 n2": with the node instead of its address. */
static void render(const redisReply *reply, char ret[TEXT_MAX])
{
    const bool sends = reply->type == REDIS_REPLY_ERROR && (strncmp(reply->str, "MOVED", 5) == 0 ||
                                                            strncmp(reply->str, "ASK ", 4) == 0);
    if (sends)
        snprintf(ret, TEXT_MAX, "%.*s n%d", (int)(strrchr(reply->str, ' ') - reply->str),
                 reply->str, node_at(strtoll(strrchr(reply->str, ':') + 1, NULL, 10)));
    else
        redis_text(reply, ret, TEXT_MAX);
}

static void compare(int node, bool asking, int n, const char *const *words)
{
    char text[2][TEXT_MAX];
    redisReply *asked = asking ? ask_real(node, 1, (const char *[]){"ASKING"}) : NULL;
    redisReply *replies[2] = {ask_real(node, n, words), ask_model(node, asking, n, words)};
    freeReplyObject(asked);
    for (int i = 0; i < 2; i++) {
        render(replies[i], text[i]);
        freeReplyObject(replies[i]);
    }
    if (strcmp(text[0], text[1]) != 0)
        fail_msg("node %d%s: %s %s %s %s %s\n  Redis: %s\n  model: %s", node,
                 asking ? ", ASKING" : "", words[0], n > 1 ? words[1] : "", n > 2 ? words[2] : "",
                 n > 3 ? words[3] : "", n > 4 ? words[4] : "", text[0], text[1]);
}

/* -- random commands -------------------------------------------------------------------------- */

static uint32_t below(uint32_t n)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % n;
}

static const char *const keys[] = {"{a}1", "{a}2", "{a}3", "b", "{c}1", "{c}2", "{}d", "x{e}"};

static const char *any_key(void)
{
    return keys[below(2) ? below(3) : below(sizeof keys / sizeof keys[0])];
}

static void ask_any(void)
{
    const int node = (int)below(SIM_CLUSTER_NODES);
    const bool asking = below(3) == 0;
    const char *one = any_key(), *two = any_key();
    if (one == two)
        two = "{a}4";
    switch (below(7)) {
    case 0:
        compare(node, asking, 3, (const char *[]){"SET", one, "v"});
        return;
    case 1:
        compare(node, asking, 6, (const char *[]){"SET", one, "w", "NX", "PX", "1000000"});
        return;
    case 2:
        compare(node, asking, 2, (const char *[]){"DEL", one});
        return;
    case 3:
        compare(node, asking, 4,
                (const char *[]){"EVAL", "return redis.call('get', KEYS[1])", "1", one});
        return;
    case 4:
        compare(
            node, asking, 5,
            (const char *[]){"EVAL", "return redis.call('setnx', KEYS[2], 'x')", "2", one, two});
        return;
    case 5:
        compare(node, asking, 3, (const char *[]){"EVAL", "return 5", "0"});
        return;
    default:
        compare(node, asking, 2, (const char *[]){"GET", one});
        return;
    }
}

static void ask_many(void)
{
    for (int i = 0; i < COMMANDS; i++)
        ask_any();
    for (int i = 0; i < SIM_CLUSTER_NODES; i++)
        compare(i, false, 3, (const char *[]){"PUBLISH", "channel", "text"});
}

/* -- the map of slots ------------------------------------------------------------------------- */

/* "0-5460 n0 n3, ...": master, replica. */
static void slots_of(const redisReply *reply, char ret[TEXT_MAX])
{
    size_t n = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < reply->elements && n < TEXT_MAX; i++) {
        const redisReply *range = reply->element[i];
        n += (size_t)snprintf(ret + n, TEXT_MAX - n, "%lld-%lld", range->element[0]->integer,
                              range->element[1]->integer);
        for (size_t j = 2; j < range->elements && n < TEXT_MAX; j++)
            n += (size_t)snprintf(ret + n, TEXT_MAX - n, " n%d",
                                  node_at(range->element[j]->element[1]->integer));
        n += n < TEXT_MAX ? (size_t)snprintf(ret + n, TEXT_MAX - n, ", ") : 0;
    }
}

/* For wait_until(). */
static bool all_agree(void *arg)
{
    static const char *const words[] = {"CLUSTER", "SLOTS"};
    char text[2][TEXT_MAX];
    bool agree = true;
    (void)arg;
    for (int i = 0; i < SIM_CLUSTER_NODES && agree; i++) {
        redisReply *replies[2] = {ask_real(i, 2, words), ask_model(i, false, 2, words)};
        for (int j = 0; j < 2; j++) {
            slots_of(replies[j], text[j]);
            freeReplyObject(replies[j]);
        }
        agree = strcmp(text[0], text[1]) == 0;
    }
    return agree;
}

static void all_learn(void)
{
    for (int i = 0; i < SIM_CLUSTER_NODES; i++)
        sim_cluster_learn_all(&nodes[i]);
    assert_true(wait_until(all_agree, NULL, AGREE_MS));
}

TEST_THAT(slots_of_keys_are_those_of_redis)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        redisReply *reply = ask_real(0, 3, (const char *[]){"CLUSTER", "KEYSLOT", keys[i]});
        assert_int_equal(sim_redis_slot(keys[i]), reply->integer);
        freeReplyObject(reply);
    }
}

/* -- slots move ------------------------------------------------------------------------------- */

static void set_slot(int on, int slot, const char *what, int node)
{
    assert_int_equal(redis_do(server(on), "CLUSTER SETSLOT %d %s %s", slot, what, ids[node]), 1);
}

/* One key in both. False: none is left. */
static bool move_key(int from, int to, int slot)
{
    const struct sim_redis_data *data = &nodes[from].data;
    size_t i = 0;
    while (i < data->n && sim_redis_slot(data->keys[i].name) != slot)
        i++;
    if (i < data->n)
        assert_int_equal(redis_do(server(from), "MIGRATE 127.0.0.1 %d %s 0 10000 AUTH %s",
                                  server(to)->port, data->keys[i].name, sandbox_password()),
                         1);
    return sim_cluster_move_key();
}

static void move_slot(int slot, int to_shard)
{
    const int from = sim_cluster_master(sim_cluster_shard(slot))->number;
    const int to = sim_cluster_master(to_shard)->number;
    set_slot(to, slot, "IMPORTING", from);
    set_slot(from, slot, "MIGRATING", to);
    sim_cluster_move_begin(slot, to_shard);
    do
        ask_many();
    while (move_key(from, to, slot));
    set_slot(to, slot, "NODE", to);
    set_slot(from, slot, "NODE", to);
    sim_cluster_move_end();
    all_learn();
}

static void set_all(const char *value)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const int node = sim_cluster_master(sim_cluster_shard(sim_redis_slot(keys[i])))->number;
        compare(node, false, 3, (const char *[]){"SET", keys[i], value});
    }
}

TEST_THAT(commands_are_answered_alike_while_slots_move)
{
    const int slot = sim_redis_slot("{a}");
    ask_many();
    for (int i = 0; i < MOVES; i++) {
        set_all("v");
        move_slot(slot, (sim_cluster_shard(slot) + 1) % SIM_CLUSTER_SHARDS);
        ask_many();
    }
}

/* -- a replica takes over --------------------------------------------------------------------- */

TEST_THAT(commands_are_answered_alike_after_a_replica_took_over)
{
    const int shard = sim_cluster_shard(sim_redis_slot("{a}"));
    struct sim_redis *former = sim_cluster_master(shard),
                     *next = &nodes[(former->number + SIM_CLUSTER_SHARDS) % SIM_CLUSTER_NODES];
    set_all("before");
    sim_redis_copy(&next->data, &former->data);
    next->is_replica = false;
    former->is_replica = true;
    sim_cluster_set_master(shard, next);
    for (int i = 0; i < SIM_CLUSTER_NODES; i++)
        sim_cluster_learn_all(&nodes[i]);
    for (int tries = 0; !all_agree(NULL) && tries < TRIES; tries++) { /* one may come too late */
        redis_do(server(next->number), "CLUSTER FAILOVER");
        wait_until(all_agree, NULL, AGREE_MS / TRIES);
    }
    assert_true(all_agree(NULL));
    ask_many();
    move_slot(sim_redis_slot("{a}"), (shard + 1) % SIM_CLUSTER_SHARDS);
    ask_many();
}

/* -- the servers ------------------------------------------------------------------------------ */

/* On a busy machine nodes are late. No replica takes over until it is told to. */
static bool stays(const struct sandbox_server *node)
{
    return redis_do(node, "CONFIG SET cluster-replica-no-failover yes") == 1 &&
           redis_do(node, "CONFIG SET cluster-node-timeout 60000") == 1;
}

static int open_both(void **state)
{
    const char *seed = getenv("TEST_SEED");
    chance = seed && *seed ? strtoull(seed, NULL, 10) : 1;
    if (open_replicated_cluster(state) != 0)
        return -1;
    for (int i = 0; i < SIM_CLUSTER_NODES; i++) {
        nodes[i] = (struct sim_redis){.number = i, .is_replica = i >= SIM_CLUSTER_SHARDS};
        snprintf(nodes[i].name, sizeof nodes[i].name, "n%d", i);
        nodes[i].host.port = i + 1;
        real[i] = redis_connect(server(i)->port);
        redisReply *id = real[i] ? redisCommand(real[i], "CLUSTER MYID") : NULL;
        if (!id || !stays(server(i)))
            return -1;
        snprintf(ids[i], sizeof ids[i], "%s", id->str);
        freeReplyObject(id);
    }
    sim_cluster_begin();
    return wait_until(all_agree, NULL, AGREE_MS) ? 0 : -1;
}

static int close_both(void **state)
{
    for (int i = 0; i < SIM_CLUSTER_NODES; i++) {
        sim_redis_clear(&nodes[i].data);
        if (real[i])
            redisFree(real[i]);
    }
    return close_cluster(state);
}

GROUP_FIXTURE(open_both, close_both);
