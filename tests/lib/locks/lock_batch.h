/* Locks asked for at once, of the keys lock:item:FIRST and those that follow. */
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
/* How many came out with this status the last time. */
size_t batch_count(const struct lock_batch *batch, lk_status status);
/* ... with LK_OK, all of them. */
bool batch_ok(const struct lock_batch *batch);

#endif
