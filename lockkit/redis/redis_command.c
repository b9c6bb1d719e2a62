#include "redis_command.h"

#include "redis_cluster.h"
#include "redis_topology.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lk_redis {
    const lk_context *context;
    lk_redis_topology topology;
    lk_redis_mux *mux;         /* to the one node; in a cluster it only keeps the last error */
    lk_redis_cluster *cluster; /* where all commands go instead; NULL: no cluster */
};

/* -- commands --------------------------------------------------------------------------------- */

lk_status lk_redis_run(lk_redis *redis, int flags, lk_redis_reply *reply, int n, const char **words)
{
    if (redis->cluster == NULL)
        return lk_redis_mux_run(redis->mux, flags, reply, n, words);
    char message[LK_MESSAGE_MAX] = "";
    lk_status status = lk_redis_cluster_run(redis->cluster, flags, reply, n, words, message);
    if (status != LK_OK)
        lk_redis_mux_note(redis->mux, message);
    return status;
}

static int try_flags(const lk_redis *redis)
{
    return LK_REDIS_SKIP_IF_HUNG |
           (redis->context->options->replicas > 0 ? LK_REDIS_WANT_REPLICAS : 0);
}

static void count_replicas(lk_redis *redis, lk_attempt *attempt, lk_status status,
                           const lk_redis_reply *reply)
{
    const lk_options *options = redis->context->options;
    attempt->replicas = status == LK_OK ? reply->replicas : 0;
    if (status == LK_OK && attempt->replicas < options->replicas) {
        char message[LK_MESSAGE_MAX];
        snprintf(message, sizeof message, "%d of the %d replicas asked for have it after %lld ms",
                 attempt->replicas, options->replicas, (long long)options->replicas_ms);
        lk_redis_mux_note(redis->mux, message);
    }
}

/* No message comes when another kind of guard frees its key: the waiter had better poll. */
static void poll_if_foreign(lk_redis *redis, lk_attempt *attempt, lk_status status,
                            const lk_redis_reply *reply)
{
    const lk_env *env = redis->context->env;
    if (status == LK_OK && lk_redis_reply_status(reply) == LK_BUSY)
        attempt->retry_us =
            env->now_us(env->ctx) + redis->context->options->retry_max_ms * INT64_C(1000);
}

lk_status lk_redis_run_try(lk_redis *redis, lk_attempt *attempt, lk_redis_reply *reply, int n,
                           const char **words)
{
    lk_status status = lk_redis_run(redis, try_flags(redis), reply, n, words);
    count_replicas(redis, attempt, status, reply);
    poll_if_foreign(redis, attempt, status, reply);
    return status;
}

void lk_redis_run_each(lk_redis *redis, lk_redis_query *const *queries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        queries[i]->flags = queries[i]->attempt != NULL ? try_flags(redis) : 0;
    if (redis->cluster == NULL)
        lk_redis_mux_run_each(redis->mux, queries, n);
    for (size_t i = 0; i < n; i++) {
        lk_redis_query *query = queries[i];
        if (redis->cluster != NULL)
            query->status = lk_redis_run(redis, query->flags, query->reply, query->n, query->words);
        if (query->attempt != NULL)
            count_replicas(redis, query->attempt, query->status, query->reply);
    }
}

lk_status lk_redis_expect(lk_redis *redis, lk_redis_reply *reply, int type, lk_status status)
{
    if (status != LK_OK)
        return status;
    status = lk_redis_reply_status(reply);
    if (status == LK_OK && type != 0 && reply->root.type != type)
        status = LK_PROTOCOL;
    if (status != LK_OK) {
        char message[LK_MESSAGE_MAX];
        const char *said =
            reply->root.type == REDIS_REPLY_ERROR ? reply->root.text : "a wrong type";
        snprintf(message, sizeof message, "Redis answered: %.200s%s", said,
                 strncmp(said, "NOAUTH", 6) == 0 ? LK_REDIS_LOGIN_ADVICE : "");
        lk_redis_mux_note(redis->mux, message);
    }
    return status;
}

lk_status lk_redis_ping(lk_redis *redis)
{
    lk_redis *node[LK_REDIS_NODES_MAX];
    size_t n = lk_redis_nodes(redis, node, LK_REDIS_NODES_MAX);
    lk_status status = n > 0 ? LK_OK : LK_UNAVAILABLE;
    for (size_t i = 0; i < n && status == LK_OK; i++) {
        lk_redis_reply reply;
        char message[LK_MESSAGE_MAX];
        status = lk_redis_command(node[i], &reply, "PING");
        status = lk_redis_expect(node[i], &reply, REDIS_REPLY_STATUS, status);
        lk_redis_last_error(node[i], message, sizeof message);
        if (status != LK_OK)
            lk_redis_mux_note(redis->mux, message);
    }
    lk_redis_nodes_done(redis, node, n);
    return status;
}

void lk_redis_last_error(lk_redis *redis, char *ret, size_t size)
{
    lk_redis_mux_last_error(redis->mux, ret, size);
}

/* -- scripts ---------------------------------------------------------------------------------- */

enum { UNKNOWN, LOADING, KNOWN }; /* the SHA-1 of a script */
enum { HEAD = LK_REDIS_SCRIPT_HEAD, WORDS_MAX = LK_REDIS_WORDS_MAX - HEAD };

void lk_redis_script_init(lk_redis_script *script, const char *body)
{
    *script = (lk_redis_script){.body = body, .state = UNKNOWN};
}

/* The first thread asks for the SHA-1. The others send the text meanwhile. Asking changes no lock,
 * so its failure leaves no outcome unknown. */
static lk_status learn_sha(lk_redis *redis, lk_redis_script *script, lk_redis_reply *reply)
{
    int expected = UNKNOWN;
    if (!atomic_compare_exchange_strong(&script->state, &expected, LOADING))
        return LK_OK;
    lk_status status = lk_redis_command(redis, reply, "SCRIPT", "LOAD", script->body);
    status = lk_redis_expect(redis, reply, REDIS_REPLY_STRING, status);
    if (status == LK_OK && reply->root.length != LK_REDIS_SHA_LENGTH)
        status = LK_PROTOCOL;
    if (status == LK_OK)
        memcpy(script->sha, reply->root.text, sizeof script->sha);
    atomic_store(&script->state, status == LK_OK ? KNOWN : UNKNOWN);
    return status == LK_UNKNOWN ? LK_UNAVAILABLE : status;
}

/* True: the server does not know the script, and has done nothing. */
static bool forgotten(lk_status status, const lk_redis_reply *reply)
{
    return status == LK_OK && reply->root.type == REDIS_REPLY_ERROR &&
           strncmp(reply->root.text, "NOSCRIPT", 8) == 0;
}

static lk_status send_script(lk_redis *redis, lk_attempt *attempt, int flags, lk_redis_reply *reply,
                             int n, const char **words)
{
    return attempt != NULL ? lk_redis_run_try(redis, attempt, reply, n, words)
                           : lk_redis_run(redis, flags, reply, n, words);
}

lk_status lk_redis_script_run(lk_redis *redis, lk_attempt *attempt, int flags,
                              lk_redis_script *script, lk_redis_reply *reply, int type, int n_keys,
                              int n, const char *const *words)
{
    const char count[2] = {(char)('0' + n_keys), '\0'}, *all[HEAD + WORDS_MAX];
    lk_status status = LK_OK;
    assert(n_keys <= n && n_keys <= 9 && n <= WORDS_MAX);
    if (atomic_load(&script->state) == UNKNOWN)
        status = learn_sha(redis, script, reply);
    if (status != LK_OK)
        return status;
    all[2] = count;
    for (int i = 0; i < n; i++)
        all[HEAD + i] = words[i];
    bool known = atomic_load(&script->state) == KNOWN;
    if (known) {
        all[0] = "EVALSHA";
        all[1] = script->sha;
        status = send_script(redis, attempt, flags, reply, HEAD + n, all);
    }
    if (!known || forgotten(status, reply)) {
        all[0] = "EVAL";
        all[1] = script->body;
        status = send_script(redis, attempt, flags, reply, HEAD + n, all);
    }
    return lk_redis_expect(redis, reply, type, status);
}

static void send_each(lk_redis *redis, lk_redis_query *const *queries, size_t n, const char *verb,
                      const char *script)
{
    for (size_t i = 0; i < n; i++) {
        queries[i]->words[0] = verb;
        queries[i]->words[1] = script;
    }
    lk_redis_run_each(redis, queries, n);
}

void lk_redis_script_each(lk_redis *redis, lk_redis_script *script, int type, int n_keys,
                          lk_redis_query *queries, size_t n)
{
    lk_redis_query *due[LK_EACH_MAX];
    const char count[2] = {(char)('0' + n_keys), '\0'};
    size_t n_due = 0;
    lk_status status = LK_OK;
    assert(n <= LK_EACH_MAX && n_keys <= 9);
    if (atomic_load(&script->state) == UNKNOWN)
        status = learn_sha(redis, script, queries[0].reply);
    for (size_t i = 0; i < n; i++) {
        queries[i].status = status;
        queries[i].words[2] = count;
        due[i] = &queries[i];
    }
    if (status != LK_OK)
        return;
    if (atomic_load(&script->state) == KNOWN) {
        send_each(redis, due, n, "EVALSHA", script->sha);
        for (size_t i = 0; i < n; i++)
            if (forgotten(queries[i].status, queries[i].reply))
                due[n_due++] = &queries[i];
    } else {
        n_due = n;
    }
    if (n_due > 0)
        send_each(redis, due, n_due, "EVAL", script->body);
    for (size_t i = 0; i < n; i++)
        queries[i].status = lk_redis_expect(redis, queries[i].reply, type, queries[i].status);
}

/* -- opening and closing ---------------------------------------------------------------------- */

static lk_redis *new_redis(const lk_context *context, lk_error *error)
{
    lk_redis *redis = calloc(1, sizeof *redis);
    if (redis != NULL) {
        redis->context = context;
        redis->mux = lk_redis_mux_open(context, &redis->topology);
    }
    if (redis != NULL && redis->mux != NULL)
        return redis;
    free(redis);
    lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis connection");
    return NULL;
}

lk_status lk_redis_open(const lk_context *context, lk_redis **ret, lk_error *error)
{
    lk_redis *redis = new_redis(context, error);
    if (redis == NULL)
        return LK_NO_MEMORY;
    lk_status status = lk_redis_topology_parse(context->endpoints, &redis->topology, error);
    if (status == LK_OK && redis->topology.kind == LK_REDIS_CLUSTER)
        status = lk_redis_cluster_open(context, &redis->topology, &redis->cluster, error);
    if (status == LK_OK)
        *ret = redis;
    else
        lk_redis_close(redis);
    return status;
}

lk_status lk_redis_open_node(const lk_context *context, const lk_redis_url *url, lk_redis **ret,
                             lk_error *error)
{
    lk_redis *redis = new_redis(context, error);
    if (redis == NULL)
        return LK_NO_MEMORY;
    redis->topology.node = *url;
    *ret = redis;
    return LK_OK;
}

void lk_redis_close(lk_redis *redis)
{
    if (redis->cluster != NULL)
        lk_redis_cluster_close(redis->cluster);
    lk_redis_mux_close(redis->mux);
    free(redis);
}

/* -- where it is ------------------------------------------------------------------------------ */

const lk_redis_url *lk_redis_endpoint(const lk_redis *redis)
{
    assert(redis->topology.kind == LK_REDIS_NODE);
    return &redis->topology.node;
}

lk_status lk_redis_connect(lk_redis *redis, lk_redis_connection *connection, int64_t deadline_us)
{
    lk_status status = redis->cluster != NULL
                           ? lk_redis_cluster_connect(redis->cluster, connection, deadline_us)
                           : lk_redis_topology_connect(&redis->topology, connection, deadline_us);
    if (status != LK_OK)
        lk_redis_mux_note(redis->mux, connection->message);
    return status;
}

bool lk_redis_is_cluster(const lk_redis *redis)
{
    return redis->cluster != NULL;
}

size_t lk_redis_nodes(lk_redis *redis, lk_redis **ret, size_t max)
{
    if (redis->cluster != NULL) {
        size_t n = lk_redis_cluster_masters(redis->cluster, ret, max);
        if (n == 0)
            lk_redis_mux_note(redis->mux, "no node of the cluster answers");
        return n;
    }
    assert(max > 0);
    ret[0] = redis;
    return 1;
}

void lk_redis_nodes_done(lk_redis *redis, lk_redis *const *nodes, size_t n)
{
    if (redis->cluster != NULL)
        lk_redis_cluster_done(redis->cluster, nodes, n);
}
