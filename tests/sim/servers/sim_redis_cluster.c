#include "sim_redis_cluster.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct view {
    uint8_t shard_of[SIM_SLOTS];
    int master[SIM_CLUSTER_SHARDS], port[SIM_CLUSTER_NODES];
};

static struct {
    bool is;
    struct view truth, of[SIM_CLUSTER_NODES];
    bool down[SIM_CLUSTER_NODES], apart[SIM_CLUSTER_NODES];
    int moving, from_node, to_node, to_shard; /* the slot, or SIM_NO_SLOT */
} at;

void sim_cluster_begin(void)
{
    memset(&at, 0, sizeof at);
    at.is = true;
    at.moving = SIM_NO_SLOT;
    for (int shard = 0, slot = 0; shard < SIM_CLUSTER_SHARDS; shard++) {
        at.truth.master[shard] = shard;
        while (slot < (shard + 1) * SIM_SLOTS / SIM_CLUSTER_SHARDS)
            at.truth.shard_of[slot++] = (uint8_t)shard;
    }
    for (size_t i = 0; i < SIM_CLUSTER_NODES; i++)
        sim_cluster_learn_all(sim_redis_node(i));
}

void sim_cluster_end(void)
{
    at.is = false;
}

bool sim_cluster_is(void)
{
    return at.is;
}

int sim_redis_slot(const char *key)
{
    size_t n = strlen(key);
    const char *open = strchr(key, '{'), *close = open ? strchr(open, '}') : NULL;
    if (close && close > open + 1) {
        key = open + 1;
        n = (size_t)(close - key);
    }
    uint16_t crc = 0; /* CRC-16/XMODEM */
    for (size_t i = 0; i < n; i++) {
        crc ^= (uint16_t)((unsigned char)key[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc % SIM_SLOTS;
}

/* -- what a node answers ---------------------------------------------------------------------- */

/* The keys of a command. Returns how many. */
static int keys_of(int n, char **words, char ***ret)
{
    static const char *const keyless[] = {"PING", "SCRIPT",  "TIME",      "ROLE",       "WAIT",
                                          "ECHO", "PUBLISH", "SUBSCRIBE", "UNSUBSCRIBE"};
    if (strncasecmp(words[0], "EVAL", 4) == 0) {
        assert(n >= 3);
        *ret = words + 3;
        return atoi(words[2]);
    }
    for (size_t i = 0; i < sizeof keyless / sizeof keyless[0]; i++)
        if (strcasecmp(words[0], keyless[i]) == 0)
            return 0;
    *ret = words + 1;
    return n > 1;
}

/* Returns how many of the keys are there. */
static int count_there(struct sim_redis *redis, int n, char **keys)
{
    const int64_t now_ms = sim_redis_now_us(redis) / 1000;
    int there = 0;
    for (int i = 0; i < n; i++)
        there += sim_redis_find(&redis->data, keys[i], now_ms) != NULL;
    return there;
}

static void send_to(const struct sim_redis *redis, const char *verb, int slot, int node,
                    struct sim_bytes *ret)
{
    char text[64];
    snprintf(text, sizeof text, "%s %d %s:%d", verb, slot, sim_redis_node((size_t)node)->name,
             at.of[redis->number].port[node]);
    sim_resp_error(ret, text);
}

static void try_again(struct sim_bytes *ret)
{
    sim_count(SIM_CLUSTER_TRYAGAIN);
    sim_resp_error(ret, "TRYAGAIN Multiple keys request during rehashing of slot");
}

/* The master of its slot runs it, unless the slot is about to leave. */
static bool leaves(struct sim_redis *redis, int slot, int n, char **keys, struct sim_bytes *ret)
{
    const int there = count_there(redis, n, keys);
    if (slot != at.moving || redis->number != at.from_node || there == n)
        return false;
    if (there > 0) {
        try_again(ret);
    } else {
        sim_count(SIM_CLUSTER_ASK);
        send_to(redis, "ASK", slot, at.to_node, ret);
    }
    return true;
}

bool sim_cluster_redirects(struct sim_redis *redis, bool asking, int n, char **words,
                           struct sim_bytes *ret)
{
    const struct view *view = &at.of[redis->number];
    char **keys;
    const int n_keys = keys_of(n, words, &keys);
    if (n_keys == 0)
        return false;
    if (at.down[redis->number]) {
        sim_count(SIM_CLUSTER_DOWN);
        sim_resp_error(ret, "CLUSTERDOWN The cluster is down");
        return true;
    }
    const int slot = sim_redis_slot(keys[0]);
    for (int i = 1; i < n_keys; i++)
        if (sim_redis_slot(keys[i]) != slot) {
            sim_resp_error(ret, "CROSSSLOT Keys in request don't hash to the same slot");
            return true;
        }
    const int master = view->master[view->shard_of[slot]];
    if (master == redis->number)
        return leaves(redis, slot, n_keys, keys, ret);
    if (slot == at.moving && redis->number == at.to_node && asking) {
        if (n_keys == 1 || count_there(redis, n_keys, keys) == n_keys)
            return false;
        try_again(ret);
        return true;
    }
    sim_count(SIM_CLUSTER_MOVED);
    send_to(redis, "MOVED", slot, master, ret);
    return true;
}

/* Name, port, id, nothing else. */
static void put_node(const struct view *view, int node, struct sim_bytes *ret)
{
    char id[41];
    snprintf(id, sizeof id, "%040x", node + 1);
    sim_resp_array(ret, 4);
    sim_resp_text(ret, sim_redis_node((size_t)node)->name);
    sim_resp_integer(ret, view->port[node]);
    sim_resp_text(ret, id);
    sim_resp_array(ret, 0);
}

/* The end of the range of slots of one shard that begins at from. */
static int range_end(const struct view *view, int from)
{
    int to = from;
    while (to + 1 < SIM_SLOTS && view->shard_of[to + 1] == view->shard_of[from])
        to++;
    return to;
}

/* A replica that is away is not named. */
void sim_cluster_slots(const struct sim_redis *redis, struct sim_bytes *ret)
{
    const struct view *view = &at.of[redis->number];
    size_t ranges = 0;
    for (int from = 0; from < SIM_SLOTS; from = range_end(view, from) + 1)
        ranges++;
    sim_resp_array(ret, ranges);
    for (int from = 0, to; from < SIM_SLOTS; from = to + 1) {
        const int shard = view->shard_of[from], master = view->master[shard];
        const int replica = (master + SIM_CLUSTER_SHARDS) % SIM_CLUSTER_NODES;
        const bool named = !sim_redis_node((size_t)replica)->host.down;
        to = range_end(view, from);
        sim_resp_array(ret, named ? 4 : 3);
        sim_resp_integer(ret, from);
        sim_resp_integer(ret, to);
        put_node(view, master, ret);
        if (named)
            put_node(view, replica, ret);
    }
}

bool sim_cluster_hears(const struct sim_redis *to, const struct sim_redis *from)
{
    const struct sim_host *ends[] = {&to->host, &from->host};
    for (int i = 0; i < 2; i++)
        if (ends[i]->down || ends[i]->unreachable || ends[i]->stopped_until_us > sim_now_us())
            return false;
    return to != from && !at.apart[to->number] && !at.apart[from->number];
}

/* -- what is done to it ----------------------------------------------------------------------- */

struct sim_redis *sim_cluster_master(int shard)
{
    return sim_redis_node((size_t)at.truth.master[shard]);
}

int sim_cluster_shard(int slot)
{
    return at.truth.shard_of[slot];
}

void sim_cluster_learn_master(const struct sim_redis *redis, int shard,
                              const struct sim_redis *node)
{
    at.of[redis->number].master[shard] = node->number;
}

void sim_cluster_set_master(int shard, const struct sim_redis *node)
{
    at.truth.master[shard] = node->number;
}

void sim_cluster_learn_all(const struct sim_redis *redis)
{
    for (size_t i = 0; i < SIM_CLUSTER_NODES; i++)
        at.truth.port[i] = sim_redis_node(i)->host.port;
    at.of[redis->number] = at.truth;
    if (at.moving != SIM_NO_SLOT && redis->number == at.from_node &&
        at.truth.shard_of[at.moving] == at.to_shard)
        at.moving = SIM_NO_SLOT; /* it has moved */
}

void sim_cluster_set_down(const struct sim_redis *redis, bool down)
{
    at.down[redis->number] = down;
}

void sim_cluster_set_apart(const struct sim_redis *redis, bool apart)
{
    at.apart[redis->number] = apart;
}

void sim_cluster_move_begin(int slot, int to_shard)
{
    at.moving = slot;
    at.to_shard = to_shard;
    at.to_node = at.truth.master[to_shard];
    at.from_node = at.truth.master[at.truth.shard_of[slot]];
    assert(at.from_node != at.to_node);
}

/* As by MIGRATE: what is left of its time is counted by the other's clock. */
static void carry(struct sim_redis *from, struct sim_redis *to, const struct sim_redis_key *key)
{
    struct sim_redis_key *copy = sim_redis_find(&to->data, key->name, 0);
    if (copy)
        sim_redis_remove(&to->data, copy);
    copy = sim_redis_make(&to->data, key->name, key->type);
    if (key->until_ms >= 0)
        copy->until_ms =
            key->until_ms - sim_redis_now_us(from) / 1000 + sim_redis_now_us(to) / 1000;
    for (size_t i = 0; i < key->n; i++)
        sim_redis_add(copy, key->items[i].name, key->items[i].text)->score = key->items[i].score;
    sim_redis_remove(&from->data, key);
    sim_redis_wrote(from);
    sim_redis_wrote(to);
}

bool sim_cluster_move_key(void)
{
    struct sim_redis *from = sim_redis_node((size_t)at.from_node);
    const int64_t now_ms = sim_redis_now_us(from) / 1000;
    for (size_t i = 0; i < from->data.n; i++) {
        const struct sim_redis_key *key = &from->data.keys[i];
        if (sim_redis_slot(key->name) == at.moving &&
            (key->until_ms < 0 || key->until_ms >= now_ms)) {
            carry(from, sim_redis_node((size_t)at.to_node), key);
            return true;
        }
    }
    return false;
}

void sim_cluster_move_end(void)
{
    at.truth.shard_of[at.moving] = (uint8_t)at.to_shard;
    at.of[at.to_node].shard_of[at.moving] = (uint8_t)at.to_shard;
}
