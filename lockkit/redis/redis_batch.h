/* Commands that are written to a connection together and answered in the same order; see
 * redis_mux.h. No locks. */
#ifndef LOCKKIT_REDIS_BATCH_H
#define LOCKKIT_REDIS_BATCH_H

#include "redis_calls.h"

struct batch {
    struct calls calls;
    int64_t deadline_us; /* of its last answer */
    bool counting;       /* WAIT stands at its end */
    lk_status written;   /* as lk_redis_batch_write() returned it */
};

/* The queue's first, as many as one write takes. The batch is empty before. */
void lk_redis_batch_fill(struct batch *batch, struct calls *queue);
/* As lk_redis_stream_write(). wait_command is sent too if the batch is counting. Adds to commands
 * what is sent. */
lk_status lk_redis_batch_write(struct batch *batch, lk_redis_stream *stream,
                               const char *wait_command, _Atomic uint64_t *commands);

/* Reads the answers to calls, which move to done one by one. *demoted: becomes true if Redis says
 * READONLY. As lk_redis_stream_read(); LK_UNAVAILABLE: the server has refused the connection. */
lk_status lk_redis_calls_read(struct calls *calls, lk_redis_stream *stream, int64_t deadline_us,
                              struct calls *done, bool *demoted);
/* Reads how many replicas have what a counting batch wrote, whose calls are done. */
lk_status lk_redis_batch_read_count(const struct batch *batch, lk_redis_stream *stream,
                                    const struct calls *done);
/* They move to done without an answer. */
void lk_redis_calls_fail(struct calls *calls, lk_status status, struct calls *done);

#endif
