#include "redis_batch.h"

#include <assert.h>
#include <string.h>

void lk_redis_batch_fill(struct batch *batch, struct calls *queue)
{
    assert(batch->calls.n == 0);
    batch->counting = false;
    while (queue->n > 0 && batch->calls.n < LK_REDIS_BATCH_MAX) {
        lk_redis_call *call = calls_take(queue);
        batch->counting |= (call->flags & LK_REDIS_COUNTED) != 0;
        calls_add(&batch->calls, call);
    }
}

lk_status lk_redis_batch_write(struct batch *batch, lk_redis_stream *stream,
                               const char *wait_command, _Atomic uint64_t *commands)
{
    static char asking[] = "*1\r\n$6\r\nASKING\r\n";
    struct iovec iov[2 * LK_REDIS_BATCH_MAX + 1];
    size_t n = 0;
    for (lk_redis_call *call = batch->calls.head; call != NULL; call = call->next) {
        if (call->flags & LK_REDIS_ASKING)
            iov[n++] = (struct iovec){.iov_base = asking, .iov_len = sizeof asking - 1};
        iov[n++] = (struct iovec){.iov_base = call->command.bytes, .iov_len = call->command.length};
    }
    if (batch->counting)
        iov[n++] =
            (struct iovec){.iov_base = (char *)wait_command, .iov_len = strlen(wait_command)};
    atomic_fetch_add_explicit(commands, n, memory_order_relaxed);
    batch->written = lk_redis_stream_write(stream, iov, n, batch->deadline_us);
    return batch->written;
}

lk_status lk_redis_calls_read(struct calls *calls, lk_redis_stream *stream, int64_t deadline_us,
                              struct calls *done, bool *demoted)
{
    lk_status status = LK_OK;
    while (calls->n > 0) {
        lk_redis_call *call = calls->head;
        if (call->flags & LK_REDIS_ASKING)
            status = lk_redis_stream_read(stream, call->reply, deadline_us);
        if (status == LK_OK)
            status = lk_redis_stream_read(stream, call->reply, deadline_us);
        if (status == LK_OK && lk_redis_reply_refuses(call->reply))
            status = lk_redis_stream_refused(stream, call->reply);
        if (status != LK_OK)
            return status;
        *demoted |= call->reply->root.type == REDIS_REPLY_ERROR &&
                    strncmp(call->reply->root.text, "READONLY", 8) == 0;
        call->status = LK_OK;
        calls_add(done, calls_take(calls));
    }
    return LK_OK;
}

lk_status lk_redis_batch_read_count(const struct batch *batch, lk_redis_stream *stream,
                                    const struct calls *done)
{
    lk_redis_reply count;
    lk_status status = lk_redis_stream_read(stream, &count, batch->deadline_us);
    if (status == LK_OK && count.root.type == REDIS_REPLY_INTEGER)
        for (lk_redis_call *call = done->head; call != NULL; call = call->next)
            call->reply->replicas =
                count.root.integer > INT32_MAX ? INT32_MAX : (int32_t)count.root.integer;
    return status;
}

void lk_redis_calls_fail(struct calls *calls, lk_status status, struct calls *done)
{
    while (calls->n > 0) {
        lk_redis_call *call = calls_take(calls);
        call->status = status;
        calls_add(done, call);
    }
}
