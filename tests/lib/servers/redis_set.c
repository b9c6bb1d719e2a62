#include "redis_set.h"
#include "redis_cluster.h"
#include "lateness.h"
#include "process.h"
#include "redis.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLACK_MS = 700, LINK_MS = 30000 };

lk_client *set_client(const char *guard, const char *url, const lk_options *options)
{
    lk_options mine = options != NULL ? *options : (lk_options){0};
    lk_client *client;
    lk_error error;
    if (mine.command_timeout_ms == 0)
        mine.command_timeout_ms = SET_TIMEOUT_MS;
    if (lk_open(guard, url, &mine, &client, &error) == LK_OK)
        return client;
    fprintf(stderr, "cannot open %s at %s: %s\n", guard, url, error.message);
    return NULL;
}

lk_client *set_patient_client(const char *guard, const char *url, const lk_options *options)
{
    lk_options mine = options != NULL ? *options : (lk_options){0};
    mine.command_timeout_ms = SET_PATIENT_MS;
    return set_client(guard, url, &mine);
}

lk_status set_acquire(lk_client *client, const char *key, int64_t wait_ms, lk_hold *hold)
{
    return lk_acquire(client, &(lk_request){.key = key, .wait_ms = wait_ms}, hold);
}

struct trial {
    lk_client *client;
    const char *key;
    bool late;
};

static bool both_succeed(void *arg)
{
    struct trial *trial = arg;
    lk_hold hold;
    int64_t start_ms = test_now_ms();
    lk_status status = set_acquire(trial->client, trial->key, 0, &hold);
    int64_t took_ms = test_now_ms() - start_ms;
    /* The bound: a try and its undoing, three command timeouts each. */
    if (!took_at_most(took_ms, 2 * 3 * SET_TIMEOUT_MS + SLACK_MS))
        trial->late = true;
    return (status == LK_OK && lk_release(&hold) == LK_OK) || trial->late;
}

bool set_recovers(lk_client *client, const char *key, int64_t wait_ms, int64_t *ret_took_ms)
{
    struct trial trial = {.client = client, .key = key};
    int64_t start_ms = test_now_ms();
    bool done = wait_until(both_succeed, &trial, wait_ms);
    if (ret_took_ms != NULL)
        *ret_took_ms = test_now_ms() - start_ms;
    return done && !trial.late;
}

/* The caller frees the reply; NULL: no answer. */
static redisReply *ask(const struct sandbox_server *server, const char *command)
{
    redisContext *context = redis_connect(server->port);
    redisReply *reply = context != NULL ? redisCommand(context, command) : NULL;
    if (context != NULL)
        redisFree(context);
    return reply;
}

static bool has_role(const struct sandbox_server *server, const char *role)
{
    redisReply *reply = ask(server, "ROLE");
    bool has = reply != NULL && reply->elements > 0 && strcmp(reply->element[0]->str, role) == 0;
    freeReplyObject(reply);
    return has;
}

bool set_is_master(void *server)
{
    return has_role(server, "master");
}

bool set_is_replica(void *server)
{
    return has_role(server, "slave");
}

bool set_is_heard(void *server)
{
    redisReply *reply = ask(server, "PUBSUB CHANNELS *lock*");
    bool heard = reply != NULL && reply->elements > 0;
    freeReplyObject(reply);
    return heard;
}

static int named_port(const struct sandbox_server *sentinel)
{
    redisReply *reply = ask(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME " SANDBOX_MASTER_NAME);
    int port = reply != NULL && reply->elements == 2 ? atoi(reply->element[1]->str) : 0;
    freeReplyObject(reply);
    return port;
}

bool set_is_switched(void *arg)
{
    const struct sandbox_sentinel *set = arg;
    for (int i = 0; i < SANDBOX_SENTINELS; i++)
        if (named_port(set->sentinel[i]) != set->replica->port)
            return false;
    return true;
}

/* The port of the master that the node names for a slot. An entry of CLUSTER SLOTS is
 * [first slot, last slot, [address, port, ...], replicas ...]. 0: none. */
static int port_of_slot(const struct sandbox_server *node, int slot)
{
    redisReply *reply = ask(node, "CLUSTER SLOTS");
    int port = 0;
    for (size_t i = 0; reply != NULL && i < reply->elements; i++) {
        redisReply *const *range = reply->element[i]->element;
        if (reply->element[i]->elements >= 3 && range[0]->integer <= slot &&
            slot <= range[1]->integer && range[2]->elements >= 2)
            port = (int)range[2]->element[1]->integer;
    }
    freeReplyObject(reply);
    return port;
}

bool set_is_taken_over(void *arg)
{
    const struct set_takeover *takeover = arg;
    const struct sandbox_cluster *set = takeover->set;
    struct sandbox_server *new_master = set->replica[takeover->master];
    int slot = takeover->master * LK_REDIS_SLOTS / SANDBOX_CLUSTER_MASTERS;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        if (port_of_slot(set->replica[i], slot) != new_master->port ||
            (i != takeover->master && port_of_slot(set->master[i], slot) != new_master->port))
            return false;
    }
    return set_is_master(new_master);
}

const char *set_key_on(int master, int n, char ret[32])
{
    for (int i = 0;; i++) {
        snprintf(ret, 32, "lock:item:%d", i);
        if (lk_redis_slot(ret) * SANDBOX_CLUSTER_MASTERS / LK_REDIS_SLOTS == master && n-- == 0)
            return ret;
    }
}

int64_t set_calls_of(const struct sandbox_server *server, const char *command)
{
    char wanted[64];
    redisReply *reply = ask(server, "INFO commandstats");
    snprintf(wanted, sizeof wanted, "cmdstat_%s:calls=", command);
    int64_t calls = -1;
    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        const char *at = strstr(reply->str, wanted);
        calls = at != NULL ? atoll(at + strlen(wanted)) : 0;
    }
    freeReplyObject(reply);
    return calls;
}

static bool has_no_replica(void *master)
{
    return redis_do(
               master, "EVAL %s 0",
               "return redis.call('info', 'replication'):match('connected_slaves:0') and 1 or 0") ==
           1;
}

bool set_cut_off(const struct sandbox_server *master, const struct sandbox_server *replica)
{
    struct sandbox_server whom = *master;
    return redis_do(replica, "CONFIG SET masteruser nobody") == 1 &&
           redis_do(replica, "CONFIG SET masterauth x") == 1 &&
           redis_do(master, "CLIENT KILL TYPE replica") == 1 &&
           wait_until(has_no_replica, &whom, LINK_MS);
}

/* The replication offset in the answer of ROLE. Of a master: [master, offset, ...]; of a replica:
 * [slave, host, port, state, offset]. -1: no answer. */
static int64_t offset_of(const struct sandbox_server *server, size_t element)
{
    redisReply *reply = ask(server, "ROLE");
    int64_t offset =
        reply != NULL && reply->elements > element ? reply->element[element]->integer : -1;
    freeReplyObject(reply);
    return offset;
}

struct stream {
    const struct sandbox_server *replica;
    int64_t offset;
};

static bool has_come(void *arg)
{
    const struct stream *stream = arg;
    return offset_of(stream->replica, 4) >= stream->offset;
}

bool set_caught_up(const struct sandbox_server *master, const struct sandbox_server *replica)
{
    struct stream stream = {.replica = replica, .offset = offset_of(master, 1)};
    return stream.offset >= 0 && wait_until(has_come, &stream, LINK_MS);
}
