/*
 * The Redis of a client, wherever it is: one node, the master that Sentinels name, or a cluster;
 * over one connection per node, shared by all threads (redis_mux.h).
 *
 * Threading: every function but open and close may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_COMMAND_H
#define LOCKKIT_REDIS_COMMAND_H

#include "provider.h"
#include "redis_mux.h"
#include "redis_connection.h"

enum { LK_REDIS_NODES_MAX = 128 /* addresses in a cluster that have a slot */ };

typedef struct lk_redis lk_redis;

/* Parses context->endpoints (see redis_topology.h); connects on first use. LK_OK, LK_INVALID,
 * LK_NO_MEMORY. */
lk_status lk_redis_open(const lk_context *context, lk_redis **ret, lk_error *error);
/* One node at an address that is known. LK_OK, LK_NO_MEMORY. */
lk_status lk_redis_open_node(const lk_context *context, const lk_redis_url *url, lk_redis **ret,
                             lk_error *error);
/* No call may be under way. */
void lk_redis_close(lk_redis *redis);

/* The node's address; only of one that lk_redis_open_node() opened. */
const lk_redis_url *lk_redis_endpoint(const lk_redis *redis);
/* Opens a further connection, to where a message published now would be heard. LK_OK,
 * LK_UNAVAILABLE (connection->message), LK_PROTOCOL. */
lk_status lk_redis_connect(lk_redis *redis, lk_redis_connection *connection, int64_t deadline_us);
bool lk_redis_is_cluster(const lk_redis *redis);
/* For commands that concern no key, such as SCAN: every node that has some, at most max; redis
 * itself unless it is a cluster. */
size_t lk_redis_nodes(lk_redis *redis, lk_redis **ret, size_t max);
/* Of all that it returned, once they are not used any more. */
void lk_redis_nodes_done(lk_redis *redis, lk_redis *const *nodes, size_t n);

/*
 * Sends one command of n words and waits for its reply; in a cluster, to the node of its key.
 * LK_OK: *reply is filled (it may be an error reply: see lk_redis_reply_status()).
 * LK_UNAVAILABLE: certainly not executed. LK_UNKNOWN: sent, no answer. LK_PROTOCOL: the answer was
 * none of the protocol's. Returns within twice the command timeout, in a cluster three times.
 */
lk_status lk_redis_run(lk_redis *redis, lk_redis_reply *reply, int n, const char **words);
/* The same with flags of redis_mux.h. */
lk_status lk_redis_run_with(lk_redis *redis, int flags, lk_redis_reply *reply, int n,
                            const char **words);
/* The same for a command that may grant the lock. Where lk_options.replicas is set,
 * attempt->replicas becomes the number of replicas that have it. Where the key is another kind of
 * guard's (WRONGTYPE), attempt->retry_us becomes a moment not far off. */
lk_status lk_redis_run_try(lk_redis *redis, lk_attempt *attempt, lk_redis_reply *reply, int n,
                           const char **words);

/* The same for each of n (1..LK_EACH_MAX) commands, at once: see lk_redis_mux_run_each(). In
 * a cluster one after the other. Fills in their flags. */
void lk_redis_run_each(lk_redis *redis, lk_redis_query *const *queries, size_t n);

/* "GET", key -> 2, {"GET", key} */
#define LK_REDIS_WORDS(...)                                                                        \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *[])          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define lk_redis_command(redis, reply, ...)                                                        \
    lk_redis_run((redis), (reply), LK_REDIS_WORDS(__VA_ARGS__))
#define lk_redis_try(redis, attempt, reply, ...)                                                   \
    lk_redis_run_try((redis), (attempt), (reply), LK_REDIS_WORDS(__VA_ARGS__))

/* For the status and reply of lk_redis_run(): a reply that is an error, or not of the wanted type
 * (REDIS_REPLY_*; 0: any), becomes a status: see lk_redis_reply_status(); LK_PROTOCOL for another
 * type. */
lk_status lk_redis_expect(lk_redis *redis, lk_redis_reply *reply, int type, lk_status status);

/* PING; in a cluster, to every master. */
lk_status lk_redis_ping(lk_redis *redis);

/* What went wrong last, for people; "" when nothing has. */
void lk_redis_last_error(lk_redis *redis, char *ret, size_t size);

#endif
