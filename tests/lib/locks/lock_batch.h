/* A batch of locks, acquired in one call. Keys: lock:item:FIRST, lock:item:FIRST+1 ... */
#ifndef TEST_LOCK_BATCH_H
#define TEST_LOCK_BATCH_H

#include "lockkit.h"

enum { BATCH_KEY_MAX = 32 };

struct lock_batch {
    size_t n;
    char keys[LK_EACH_MAX][BATCH_KEY_MAX];
    lk_request requests[LK_EACH_MAX];
    lk_hold hold[LK_EACH_MAX], *holds[LK_EACH_MAX];
    lk_status statuses[LK_EACH_MAX];
};

/* The struct must not move afterwards. */
void batch_init(struct lock_batch *batch, size_t first, size_t n, int64_t lease_ms);
void batch_try(struct lock_batch *batch, lk_client *client);
void batch_release(struct lock_batch *batch);
/* How many locks have this status after the last call. */
size_t batch_count(const struct lock_batch *batch, lk_status status);
/* True if all have LK_OK. */
bool batch_ok(const struct lock_batch *batch);

#endif
