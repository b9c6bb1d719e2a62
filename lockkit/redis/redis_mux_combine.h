/*
 * Inside a mux (redis_mux.h): what its callers (redis_mux.c) and its combiner share.
 *
 * The combiner has one batch, which it writes and reads. Meanwhile a caller may write another one
 * ahead, which becomes the batch when that one is answered. If it is still being written then, the
 * role passes to its writer: nobody waits for a writer, and nobody closes a connection that is
 * being written to.
 */
#ifndef LOCKKIT_REDIS_MUX_COMBINE_H
#define LOCKKIT_REDIS_MUX_COMBINE_H

#include "redis_batch.h"

#include <pthread.h>

enum { LK_REDIS_WAIT_COMMAND_MAX = 64 };

/* The batch ahead. */
enum ahead {
    AHEAD_NONE,
    AHEAD_WRITING,
    AHEAD_WRITTEN,
    AHEAD_AWAITED /* being written, by who has the combiner's role after that */
};

struct lk_redis_mux {
    const lk_context *context;
    lk_redis_topology *topology; /* the connection goes where this says */
    int64_t timeout_us, replicas_us;
    char wait_command[LK_REDIS_WAIT_COMMAND_MAX]; /* "WAIT replicas replicas_ms" */

    lk_event_set bells;    /* see redis_calls.h */
    lk_spin spin;          /* of those who listen for them */
    pthread_mutex_t mutex; /* guards the next five */
    struct requests queue; /* not yet written */
    uint32_t bell;         /* of the next caller who queues up */
    bool busy;             /* somebody combines */
    enum ahead ahead_is;
    char last_error[LK_MESSAGE_MAX];

    /* Of who writes ahead, until ahead_is says that it is written. */
    struct batch ahead;
    lk_redis_connection ahead_connection; /* the same connection, with a message of its own */

    /* The combiner's, handed over with the role. */
    struct batch batch;       /* written, to be answered */
    _Atomic size_t under_way; /* commands of the batch, while another may be written ahead; or 0 */
    int64_t used_us;          /* last traffic */
    bool demoted;             /* READONLY was answered */
    bool broken;              /* the connection is of no more use */
    lk_redis_connection connection;
};

/* The queue's first are the batch's. The mutex is held. */
static inline void mux_fill(lk_redis_mux *mux, struct batch *batch)
{
    lk_redis_batch_fill(batch, &mux->queue);
    mux->bell = bell_of_next_first(mux->bell);
}

/* Both return true when mine has all its answers and nobody will wake it.
 *
 * Serves one batch, with a request of mine in it: one that is written, if mine is to combine, else
 * the first of the queue. */
bool lk_redis_combine(lk_redis_mux *mux, struct lk_redis_caller *mine);
/* Writes the batch ahead. */
bool lk_redis_write_ahead(lk_redis_mux *mux, const struct lk_redis_caller *mine);

#endif
