/*
 * Queues and the threads that serve them.
 *
 * Operations submitted under one name wait in one lane. At any time one thread at most serves a
 * lane: it takes up to `batch` of its operations in order of arrival, and when the lane has more,
 * the lane goes to the end of the line. So a lane with ten thousand waiting operations holds no
 * thread while it waits for its turn, and the next lane's turn comes after one batch.
 * An operation without a name is a lane of its own.
 *
 * Many lanes with few operations each are served together, if serve_together() is there: a thread
 * takes all that wait, and few threads do so at a time, so that what comes meanwhile gathers for
 * the next of them. As nobody in such a company may be kept waiting by another, what would have to
 * wait is left, and served later, its lane by itself.
 */
#ifndef LANES_H
#define LANES_H

#include "op.h"

#include <stddef.h>

enum {
    LANES_TOGETHER = 32, /* lanes that are served together, at most */
    LANES_SHARE = 8      /* operations of each, at most */
};

struct lanes;

/* What is taken from one lane of those that are served together. */
struct lanes_share {
    struct op **ops;
    size_t n; /* in: at least 1; out: so many of ops, at their beginning, are left */
};

struct lanes_options {
    const char *thread_name; /* at most 15 characters; borrowed */
    size_t threads, batch;
    size_t waiting_max; /* operations that no thread has taken yet */
    /* What serve() is given: one for each thread, made by lanes_open(), which fails on NULL. */
    void *(*state_new)(void *ctx);
    void (*state_free)(void *state);
    /* Serves n >= 1 operations of one lane. */
    void (*serve)(void *state, struct op **ops, size_t n);
    /* NULL, or: serves n >= 1 lanes with names. Two threads at a time do, so that it must not wait
     * for what may take long. */
    void (*serve_together)(void *state, struct lanes_share *shares, size_t n);
    void *ctx;
};

/* Starts the threads. NULL without memory or threads. */
struct lanes *lanes_open(const struct lanes_options *options);
/* Serves what waits and ends the threads. Nothing may be submitted any more. */
void lanes_close(struct lanes *lanes);

/* False: too many are waiting. Never blocks. */
bool lanes_submit(struct lanes *lanes, const char *name, struct op *op);

/* For serve(): operations under this name need not wait for each other. ops, and those that wait in
 * the lane, go on as lanes of their own; what is submitted from now on does not wait for this turn.
 * Returns how many of ops; the caller keeps the rest (no memory). */
size_t lanes_spread(struct lanes *lanes, const char *name, struct op **ops, size_t n);

/* For serve(): more operations wait under this name, and no other lane waits for a thread. */
bool lanes_goes_on(struct lanes *lanes, const char *name);
/* For serve(), once its operations are done: up to `batch` further ones of its own lane, which goes
 * on without waiting for its turn. Returns how many are in ops. */
size_t lanes_more(struct lanes *lanes, const char *name, struct op **ops);

size_t lanes_waiting(struct lanes *lanes);

#endif
