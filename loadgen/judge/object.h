/*
 * One number of a history as an object that linear_check() can judge: the stock of an item, the
 * balance of an account, or what an item's limit leaves a user. It starts at a known value, no
 * accepted change takes it below zero, and each accepted change raises its version by one.
 * Texts and operations belong to the history, which outlives the object.
 */
#ifndef OBJECT_H
#define OBJECT_H

#include "history.h"
#include "linear.h"

enum { OBJECT_TEXT_MAX = 1200 };

enum object_event {
    OBJECT_CHANGED, /* by delta; the answer told what was read and written */
    OBJECT_MOVED,   /* by delta; the answer told no value: a transfer's other side, a payment */
    OBJECT_MAYBE,   /* perhaps by delta: the outcome is unknown */
    OBJECT_REFUSED, /* delta would have taken it below zero */
    OBJECT_READ     /* it was `after` */
};

struct object_op {
    const struct history_op *source;
    enum object_event event;
    int64_t delta, before, after;
    int64_t version; /* after the change, or as read; HISTORY_NO_NUMBER: not told */
};

struct object {
    char name[160];           /* "item:7", "item:7 for user u1" */
    const char *unit;         /* "stock", "balance", "allowance" */
    int64_t initial, version; /* version: HISTORY_NO_NUMBER: not told */
    struct object_op *ops;
    size_t n, room;
};

void object_free(struct object *object);
/* 0, or -1 without memory. */
int object_add(struct object *object, const struct object_op *op);

/* Is there an order in which all of its answers are right? `facts` (NULL: all) says of each
 * operation whether its answer counts; one whose answer does not may have happened or not, and a
 * READ then says nothing. asked_until_us: what was asked later does not count at all. ret_steps may
 * be NULL. */
enum linear_verdict object_check(const struct object *object, const bool *facts,
                                 int64_t asked_until_us, const struct linear_bound *bound,
                                 uint64_t *ret_steps);

/* Of one that is LINEAR_BROKEN: a smallest set of its answers that cannot all be right, whatever
 * became of its other requests, one operation a line. Smallest: without any one of them the others
 * can be right. After QuickXplain (Junker, AAAI 2004). It takes some hundred searches, bounded
 * together; where they are too long the set may be larger. */
void object_explain(const struct object *object, char ret[OBJECT_TEXT_MAX]);

#endif
