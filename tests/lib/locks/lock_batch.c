#include "lock_batch.h"

#include <stdio.h>

void batch_init(struct lock_batch *batch, size_t first, size_t n, int64_t lease_ms)
{
    batch->n = n;
    for (size_t i = 0; i < n; i++) {
        snprintf(batch->keys[i], BATCH_KEY_MAX, "lock:item:%zu", first + i);
        batch->requests[i] = (lk_request){.key = batch->keys[i], .lease_ms = lease_ms};
        batch->holds[i] = &batch->hold[i];
    }
}

void batch_try(struct lock_batch *batch, lk_client *client)
{
    lk_try_each(client, batch->requests, batch->n, batch->holds, batch->statuses);
}

void batch_release(struct lock_batch *batch)
{
    lk_release_each(batch->holds, batch->n, batch->statuses);
}

size_t batch_count(const struct lock_batch *batch, lk_status status)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->n; i++)
        count += batch->statuses[i] == status;
    return count;
}

bool batch_ok(const struct lock_batch *batch)
{
    return batch_count(batch, LK_OK) == batch->n;
}
