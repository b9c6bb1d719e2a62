/*
 * Queues and the threads that serve them. Every operation goes through them, whatever --lanes says:
 * with --lanes off each operation is submitted without a name.
 *
 * Operations submitted under one name wait in one lane. An operation without a name has a lane of
 * its own. At most one thread at a time serves a lane: it takes up to `batch` of its operations, in
 * order of arrival. If more wait, the lane goes to the end of the run queue. So a lane with ten
 * thousand waiting operations holds no thread while it waits, and the next lane's turn comes after
 * one batch.
 *
 * With serve_many(), a thread takes all waiting lanes that have few operations each. At most two
 * threads do so at a time, so that the operations that arrive meanwhile gather for the next one.
 * A lane that would keep the others waiting is postponed: its next turn is a serve() of its own.
 */
#ifndef LANES_H
#define LANES_H

#include "op.h"

#include <stddef.h>

enum {
    LANES_MANY_MAX = 32, /* lanes of one serve_many() */
    LANES_PART_MAX = 8   /* operations of each */
};

struct lanes;

/* What serve_many() takes from one lane. */
struct lanes_part {
    struct op **ops;
    size_t n; /* in: at least 1; out: this many, at the beginning of ops, are postponed */
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
    /* NULL, or serves n >= 1 lanes with names. At most two threads at a time call it, so it must
     * not wait for a lock. */
    void (*serve_many)(void *state, struct lanes_part *parts, size_t n);
    void *ctx;
};

/* Starts the threads. NULL without memory or threads. */
struct lanes *lanes_open(const struct lanes_options *options);
/* Serves what waits, then ends the threads. Submit nothing any more. */
void lanes_close(struct lanes *lanes);

/* False: too many are waiting. Never blocks. */
bool lanes_submit(struct lanes *lanes, const char *name, struct op *op);

/* For serve(): operations under this name need not wait for each other. Each of ops, and each that
 * waits in the lane, gets a lane of its own. Operations submitted later do not wait for this turn.
 * Returns how many of ops have gone; the caller keeps the rest (no memory). */
size_t lanes_spread(struct lanes *lanes, const char *name, struct op **ops, size_t n);

/* For serve(): more operations wait under this name, and no other lane waits for a thread. */
bool lanes_goes_on(struct lanes *lanes, const char *name);
/* For serve(), after its operations: takes up to `batch` more of its own lane, out of turn. Returns
 * how many are in ops. */
size_t lanes_more(struct lanes *lanes, const char *name, struct op **ops);

/* Takes out the operations that wait, and for which gone() is true. Returns them, linked by
 * op->next; NULL: none. It walks through all that wait. */
struct op *lanes_withdraw(struct lanes *lanes, bool (*gone)(const struct op *op));

size_t lanes_waiting(struct lanes *lanes);

#endif
