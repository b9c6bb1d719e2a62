/*
 * One connection to one Redis node, shared by all threads of a client.
 *
 * Flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat combining and the synchronization-
 * parallelism tradeoff", SPAA 2010). The caller that finds the connection idle becomes the
 * combiner:
 *     1. it writes the whole queue in one system call: a batch;
 *     2. it reads the replies of the batch;
 *     3. it writes what has queued up meanwhile, and makes the first caller of that batch the next
 *        combiner;
 *     4. it hands out the replies of its own batch.
 * So Redis has work while the answered threads wake up, no thread serves more than one batch, and
 * no extra thread stands between a caller and the socket.
 *
 * Writing ahead: when as many requests are queued as are under way, the last caller writes the
 * queue itself and does not wait for the combiner. At most one batch is ahead. Redis then need not
 * wait until the answered threads ask again. tests/bench/bench_ahead.c measures what this brings.
 *
 * Timeouts: a batch that is not answered within the command timeout ends the connection, so a late
 * reply never answers another command. The next call connects again, with Sentinels to the master
 * of that moment. READONLY ends the connection too.
 *
 * Replicas: if a command of the batch has LK_REDIS_WANT_REPLICAS, one WAIT ends the batch. It is on
 * the same connection, so it counts these writes. There is one, so that it delays everybody by
 * lk_options.replicas_ms at most.
 *
 * Threading: every function but open and close may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_MUX_H
#define LOCKKIT_REDIS_MUX_H

#include "provider.h"
#include "redis_topology.h"

enum {
    LK_REDIS_BATCH_MAX = 128, /* commands of one write */
    LK_REDIS_WORDS_MAX = 15   /* of one of several commands */
};

/* Flags of one command. */
enum {
    LK_REDIS_ASKING = 1,        /* ASKING goes before it */
    LK_REDIS_WANT_REPLICAS = 2, /* reply->replicas is wanted */
    LK_REDIS_SKIP_IF_HUNG = 4   /* in a cluster: not sent to a node that hangs, redis_cluster.h */
};

typedef struct lk_redis_mux lk_redis_mux;

/* One of several commands. */
typedef struct lk_redis_query {
    int flags;
    int n;
    const char *words[LK_REDIS_WORDS_MAX];
    lk_redis_reply *reply;
    lk_attempt *attempt; /* the attempt that it may grant, for redis_command.h; NULL: none */
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
/* The same for each of n (1..LK_EACH_MAX) commands, in this order. They stand in one batch, or in
 * two neighbouring ones. Returns when all are answered or given up. */
void lk_redis_mux_run_each(lk_redis_mux *mux, lk_redis_query *const *queries, size_t n);

/* The last error: noted by lk_redis_mux_run(), or here. */
void lk_redis_mux_note(lk_redis_mux *mux, const char *message);
void lk_redis_mux_last_error(lk_redis_mux *mux, char *ret, size_t size);

#endif
