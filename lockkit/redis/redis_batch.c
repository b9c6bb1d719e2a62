#include "redis_batch.h"

#include <assert.h>
#include <string.h>

void lk_redis_batch_fill(struct batch *batch, struct requests *queue)
{
    assert(batch->requests.n == 0);
    batch->counting = false;
    while (queue->n > 0 && batch->requests.n < LK_REDIS_BATCH_MAX) {
        lk_redis_request *request = requests_take(queue);
        batch->counting |= (request->flags & LK_REDIS_WANT_REPLICAS) != 0;
        requests_add(&batch->requests, request);
    }
}

lk_status lk_redis_batch_write(struct batch *batch, lk_redis_connection *connection,
                               const char *wait_command, _Atomic uint64_t *commands)
{
    static char asking[] = "*1\r\n$6\r\nASKING\r\n";
    struct iovec iov[2 * LK_REDIS_BATCH_MAX + 1];
    size_t n = 0;
    for (lk_redis_request *request = batch->requests.head; request != NULL;
         request = request->next) {
        if (request->flags & LK_REDIS_ASKING)
            iov[n++] = (struct iovec){.iov_base = asking, .iov_len = sizeof asking - 1};
        iov[n++] =
            (struct iovec){.iov_base = request->command.bytes, .iov_len = request->command.length};
    }
    if (batch->counting)
        iov[n++] =
            (struct iovec){.iov_base = (char *)wait_command, .iov_len = strlen(wait_command)};
    atomic_fetch_add_explicit(commands, n, memory_order_relaxed);
    batch->written = lk_redis_connection_write(connection, iov, n, batch->deadline_us);
    return batch->written;
}

lk_status lk_redis_requests_read(struct requests *requests, lk_redis_connection *connection,
                                 int64_t deadline_us, struct requests *done, bool *demoted)
{
    lk_status status = LK_OK;
    while (requests->n > 0) {
        lk_redis_request *request = requests->head;
        if (request->flags & LK_REDIS_ASKING)
            status = lk_redis_connection_read(connection, request->reply, deadline_us);
        if (status == LK_OK)
            status = lk_redis_connection_read(connection, request->reply, deadline_us);
        if (status == LK_OK && lk_redis_reply_refuses(request->reply))
            status = lk_redis_connection_refused(connection, request->reply);
        if (status != LK_OK)
            return status;
        *demoted |= request->reply->root.type == REDIS_REPLY_ERROR &&
                    strncmp(request->reply->root.text, "READONLY", 8) == 0;
        request->status = LK_OK;
        requests_add(done, requests_take(requests));
    }
    return LK_OK;
}

lk_status lk_redis_batch_read_count(const struct batch *batch, lk_redis_connection *connection,
                                    const struct requests *done)
{
    lk_redis_reply count;
    lk_status status = lk_redis_connection_read(connection, &count, batch->deadline_us);
    if (status == LK_OK && count.root.type == REDIS_REPLY_INTEGER)
        for (lk_redis_request *request = done->head; request != NULL; request = request->next)
            request->reply->replicas =
                count.root.integer > INT32_MAX ? INT32_MAX : (int32_t)count.root.integer;
    return status;
}

void lk_redis_requests_fail(struct requests *requests, lk_status status, struct requests *done)
{
    while (requests->n > 0) {
        lk_redis_request *request = requests_take(requests);
        request->status = status;
        requests_add(done, request);
    }
}
