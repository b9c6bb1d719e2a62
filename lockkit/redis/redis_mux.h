/*
 * One connection to one Redis node, shared by all threads of a client.
 *
 * Flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat combining and the synchronization-
 * parallelism tradeoff", SPAA 2010): the caller who finds the connection idle becomes the combiner.
 * It writes everything queued in one system call and reads all the replies; before it hands them
 * out it writes what has queued up meanwhile, and makes the first caller of that batch the next
 * combiner. So Redis has work while the answered threads wake up, nobody serves others for more
 * than one batch, and no thread of its own stands between a caller and the socket. When as many
 * have queued up as are under way, the last of them writes the queue without waiting for the
 * combiner: one batch at most is written ahead so, and Redis need not wait for those whom it has
 * answered.
 *
 * A batch that is not answered within the command timeout takes the connection with it: a late
 * reply can never answer another command. The next call connects anew: to the master of that
 * moment, if Sentinels name it. A connection on which Redis says READONLY is then given up, too.
 *
 * A caller may have several commands: they stand in the queue one behind the other, go out in one
 * write unless that is full, and the caller sleeps once for all.
 *
 * Where a command of the batch is LK_REDIS_WANT_REPLICAS, one WAIT stands at its end: on the same
 * connection, so it cannot pass by knowing of no write, and once, so that it holds everybody up for
 * lk_options.replicas_ms at most.
 *
 * Threading: every function but open and close may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_MUX_H
#define LOCKKIT_REDIS_MUX_H

#include "provider.h"
#include "redis_topology.h"
#include "redis_protocol.h"

enum {
    LK_REDIS_BATCH_MAX = 128, /* commands of one write */
    LK_REDIS_WORDS_MAX = 15   /* of one of several commands */
};

/* Flags of one command. */
enum {
    LK_REDIS_ASKING = 1,        /* ASKING goes before it */
    LK_REDIS_WANT_REPLICAS = 2, /* reply->replicas is wanted */
    LK_REDIS_SKIP_IF_HUNG = 4 /* of a cluster: not sent to a node that hangs. See redis_cluster.h */
};

typedef struct lk_redis_mux lk_redis_mux;

/* One of several commands. */
typedef struct lk_redis_query {
    int flags;
    int n;
    const char *words[LK_REDIS_WORDS_MAX];
    lk_redis_reply *reply;
    lk_attempt *attempt; /* that it may grant, for redis_command.h; NULL: none */
    lk_status status;    /* out: as lk_redis_mux_run() returns it */
} lk_redis_query;

/* Connects on first use, to where topology says: one node, or Sentinels. Borrows both arguments.
 * NULL: out of memory. */
lk_redis_mux *lk_redis_mux_open(const lk_context *context, lk_redis_topology *topology);
/* No call may be under way. */
void lk_redis_mux_close(lk_redis_mux *mux);

/* Sends one command of n words and waits for its reply. As lk_redis_run() of redis_command.h. */
lk_status lk_redis_mux_run(lk_redis_mux *mux, int flags, lk_redis_reply *reply, int n,
                           const char **words);
/* The same for each of n (1..LK_EACH_MAX) commands, sent in this order; returns when all are
 * answered or given up: in the time of one, two where they did not fit into one write. */
void lk_redis_mux_run_each(lk_redis_mux *mux, lk_redis_query *const *queries, size_t n);

/* What went wrong last: noted by lk_redis_mux_run(), or here. */
void lk_redis_mux_note(lk_redis_mux *mux, const char *message);
void lk_redis_mux_last_error(lk_redis_mux *mux, char *ret, size_t size);

#endif
