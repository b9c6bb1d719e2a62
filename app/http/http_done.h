/*
 * The way back from the workers: a list of finished operations that any thread adds to and the loop
 * thread takes whole. An eventfd wakes the loop once per batch: only the operation that finds the
 * list empty writes to it. After R. K. Treiber, "Systems Programming: Coping with Parallelism",
 * IBM RJ 5118 (1986); taking all at once needs no counter against reuse.
 */
#ifndef HTTP_DONE_H
#define HTTP_DONE_H

#include "op.h"

struct http_done {
    _Atomic(struct op *) newest;
    int wake_fd;
};

int http_done_open(struct http_done *done); /* 0, or -1 with errno */
void http_done_close(struct http_done *done);

/* Any thread. */
void http_done_push(struct http_done *done, struct op *op);

/* Wakes the loop without an operation. Any thread. */
void http_done_wake(struct http_done *done);

/* Loop thread: forgets the wake-ups that poll() reported. */
void http_done_woken(struct http_done *done);

/* Loop thread: everything finished, in order, linked by op->next; NULL for nothing. */
struct op *http_done_take(struct http_done *done);

#endif
