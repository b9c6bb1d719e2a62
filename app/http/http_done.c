#include "http_done.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

int http_done_open(struct http_done *done)
{
    atomic_init(&done->newest, NULL);
    done->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return done->wake_fd >= 0 ? 0 : -1;
}

void http_done_close(struct http_done *done)
{
    if (done->wake_fd >= 0)
        close(done->wake_fd);
    done->wake_fd = -1;
}

void http_done_wake(struct http_done *done)
{
    const uint64_t one = 1;
    ssize_t n = write(done->wake_fd, &one, sizeof(one));
    assert(n == (ssize_t)sizeof(one) || errno == EAGAIN); /* full: the thread wakes anyway */
}

void http_done_push(struct http_done *done, struct op *op)
{
    struct op *before = atomic_load_explicit(&done->newest, memory_order_relaxed);
    do
        op->next = before;
    while (!atomic_compare_exchange_weak_explicit(&done->newest, &before, op, memory_order_release,
                                                  memory_order_relaxed));
    if (before == NULL)
        http_done_wake(done);
}

void http_done_woken(struct http_done *done)
{
    uint64_t count;
    ssize_t n = read(done->wake_fd, &count, sizeof(count));
    assert(n == (ssize_t)sizeof(count) || errno == EAGAIN);
}

struct op *http_done_take(struct http_done *done)
{
    if (atomic_load_explicit(&done->newest, memory_order_relaxed) == NULL)
        return NULL;
    struct op *op = atomic_exchange_explicit(&done->newest, NULL, memory_order_acquire);
    struct op *oldest = NULL;
    while (op != NULL) {
        struct op *next = op->next;
        op->next = oldest;
        oldest = op;
        op = next;
    }
    return oldest;
}
