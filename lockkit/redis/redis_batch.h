/* Commands that are written to a connection together and answered in the same order; see
 * redis_mux.h. No locks. */
#ifndef LOCKKIT_REDIS_BATCH_H
#define LOCKKIT_REDIS_BATCH_H

#include "redis_calls.h"

struct batch {
    struct requests requests;
    int64_t deadline_us; /* of its last answer */
    bool counting;       /* WAIT stands at its end */
    lk_status written;   /* as lk_redis_batch_write() returned it */
};

/* The queue's first, as many as one write takes. The batch is empty before. */
void lk_redis_batch_fill(struct batch *batch, struct requests *queue);
/* As lk_redis_connection_write(). wait_command is sent too if the batch is counting. Adds to
 * commands what is sent. */
lk_status lk_redis_batch_write(struct batch *batch, lk_redis_connection *connection,
                               const char *wait_command, _Atomic uint64_t *commands);

/* Reads the answers to requests, which move to done one by one. *demoted: becomes true if Redis
 * says READONLY. As lk_redis_connection_read(); LK_UNAVAILABLE: the server has refused the
 * connection. */
lk_status lk_redis_requests_read(struct requests *requests, lk_redis_connection *connection,
                                 int64_t deadline_us, struct requests *done, bool *demoted);
/* Reads how many replicas have what a counting batch wrote, whose requests are done. */
lk_status lk_redis_batch_read_count(const struct batch *batch, lk_redis_connection *connection,
                                    const struct requests *done);
/* They move to done without an answer. */
void lk_redis_requests_fail(struct requests *requests, lk_status status, struct requests *done);

#endif
