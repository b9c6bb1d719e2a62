/*
 * The Redis of a client: one node, the master that Sentinels name, or a cluster. A guard sends its
 * commands and scripts here. They go over one connection per node, shared by all threads
 * (redis_mux.h).
 *
 * Threading: every function but open and close may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_COMMAND_H
#define LOCKKIT_REDIS_COMMAND_H

#include "provider.h"
#include "redis_mux.h"

enum {
    LK_REDIS_NODES_MAX = 128, /* addresses in a cluster that have a slot */
    LK_REDIS_SHA_LENGTH = 40,
    LK_REDIS_SCRIPT_HEAD = 3 /* words of a script's command before its keys and arguments */
};

typedef struct lk_redis lk_redis;

/* -- opening and closing ---------------------------------------------------------------------- */

/* Parses context->endpoints (see redis_topology.h); connects on first use. LK_OK, LK_INVALID,
 * LK_NO_MEMORY. */
lk_status lk_redis_open(const lk_context *context, lk_redis **ret, lk_error *error);
/* One node at an address that is known. LK_OK, LK_NO_MEMORY. */
lk_status lk_redis_open_node(const lk_context *context, const lk_redis_url *url, lk_redis **ret,
                             lk_error *error);
/* No call may be under way. */
void lk_redis_close(lk_redis *redis);

/* The node's address. Only for what lk_redis_open_node() opened. */
const lk_redis_url *lk_redis_endpoint(const lk_redis *redis);
/* Opens a further connection, to a node that hears what is published now. LK_OK, LK_UNAVAILABLE
 * (connection->message), LK_PROTOCOL. */
lk_status lk_redis_connect(lk_redis *redis, lk_redis_connection *connection, int64_t deadline_us);
bool lk_redis_is_cluster(const lk_redis *redis);
/* The nodes to ask with commands that concern no key, such as SCAN: every master of a cluster, at
 * most max; redis itself otherwise. */
size_t lk_redis_nodes(lk_redis *redis, lk_redis **ret, size_t max);
/* Ends the use of all that lk_redis_nodes() returned. */
void lk_redis_nodes_done(lk_redis *redis, lk_redis *const *nodes, size_t n);

/* The last error, for people; "" when there was none. */
void lk_redis_last_error(lk_redis *redis, char *ret, size_t size);

/* -- commands --------------------------------------------------------------------------------- */

/*
 * Sends one command of n words and waits for its reply; in a cluster, to the node of its key.
 * flags: of redis_mux.h. Returns within twice the command timeout, in a cluster three times:
 *
 *   LK_OK           *reply is filled, perhaps with an error: see lk_redis_expect()
 *   LK_UNAVAILABLE  certainly not executed
 *   LK_UNKNOWN      sent, no answer
 *   LK_PROTOCOL     the answer was none of the protocol's
 */
lk_status lk_redis_run(lk_redis *redis, int flags, lk_redis_reply *reply, int n,
                       const char **words);
/* The same for a command that may grant the lock. If lk_options.replicas is set, attempt->replicas
 * becomes the number of replicas that have it. If the key belongs to another kind of guard
 * (WRONGTYPE), attempt->retry_us becomes an instant soon: no message tells when it is freed. */
lk_status lk_redis_run_try(lk_redis *redis, lk_attempt *attempt, lk_redis_reply *reply, int n,
                           const char **words);
/* The same for each of n (1..LK_EACH_MAX) commands at once: see lk_redis_mux_run_each(). In a
 * cluster one after the other. A query with an attempt is sent as by lk_redis_run_try(). Flags are
 * filled here. */
void lk_redis_run_each(lk_redis *redis, lk_redis_query *const *queries, size_t n);
/* What a status and reply mean together. LK_OK: the reply is of type (REDIS_REPLY_*; 0: any). An
 * error reply becomes a status: see lk_redis_reply_status(). Another type is LK_PROTOCOL. */
lk_status lk_redis_expect(lk_redis *redis, lk_redis_reply *reply, int type, lk_status status);
/* PING; in a cluster, to every master. */
lk_status lk_redis_ping(lk_redis *redis);

/* "GET", key -> 2, {"GET", key} */
#define LK_REDIS_WORDS(...)                                                                        \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *[])          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define lk_redis_command(redis, reply, ...)                                                        \
    lk_redis_run((redis), 0, (reply), LK_REDIS_WORDS(__VA_ARGS__))
#define lk_redis_try(redis, attempt, reply, ...)                                                   \
    lk_redis_run_try((redis), (attempt), (reply), LK_REDIS_WORDS(__VA_ARGS__))

/* -- scripts ---------------------------------------------------------------------------------- */

/* A Lua script, which Redis runs as one atomic step. It is sent by its SHA-1 (EVALSHA), and in full
 * (EVAL) when the server does not know it, as after a restart. SCRIPT LOAD tells the SHA-1, once
 * per client. All threads may run a script at once. */
typedef struct lk_redis_script {
    const char *body; /* static */
    _Atomic int state;
    char sha[LK_REDIS_SHA_LENGTH + 1];
} lk_redis_script;

void lk_redis_script_init(lk_redis_script *script, const char *body);

/* Runs it with n words: n_keys keys, then the arguments. attempt: the one that it may grant, as
 * lk_redis_run_try(); NULL: none, and flags count. Returns as lk_redis_expect(). */
lk_status lk_redis_script_run(lk_redis *redis, lk_attempt *attempt, int flags,
                              lk_redis_script *script, lk_redis_reply *reply, int type, int n_keys,
                              int n, const char *const *words);
/* Several runs at once, as lk_redis_run_each(). The caller fills words[LK_REDIS_SCRIPT_HEAD] and
 * those behind it with keys and arguments; the words before it are filled here. Each status becomes
 * what lk_redis_script_run() would return. */
void lk_redis_script_each(lk_redis *redis, lk_redis_script *script, int type, int n_keys,
                          lk_redis_query *queries, size_t n);

#define lk_redis_eval(redis, script, reply, type, n_keys, ...)                                     \
    lk_redis_script_run((redis), NULL, 0, (script), (reply), (type), (n_keys),                     \
                        LK_REDIS_WORDS(__VA_ARGS__))
#define lk_redis_eval_try(redis, attempt, script, reply, type, n_keys, ...)                        \
    lk_redis_script_run((redis), (attempt), 0, (script), (reply), (type), (n_keys),                \
                        LK_REDIS_WORDS(__VA_ARGS__))
/* A renewal. One thread renews all holds, so it does not wait for a node that hangs. */
#define lk_redis_eval_renew(redis, script, reply, n_keys, ...)                                     \
    lk_redis_script_run((redis), NULL, LK_REDIS_SKIP_IF_HUNG, (script), (reply),                   \
                        REDIS_REPLY_INTEGER, (n_keys), LK_REDIS_WORDS(__VA_ARGS__))

#endif
