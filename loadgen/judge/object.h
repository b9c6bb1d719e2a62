/*
 * One number of a history as an object for linear_check(): the stock of an item, the balance of an
 * account, or what an item's limit leaves a user. It starts at a known value. No accepted change
 * takes it below zero. Each accepted change raises its version by one.
 * The history owns the texts and operations, and outlives the object.
 */
#ifndef OBJECT_H
#define OBJECT_H

#include "history.h"
#include "linear.h"

enum { OBJECT_TEXT_MAX = 1200 };

enum object_event {
    OBJECT_CHANGED, /* by delta; the answer has the values read and written */
    OBJECT_MOVED,   /* by delta; the answer has no value: a transfer's other side, a payment */
    OBJECT_MAYBE,   /* perhaps by delta: the outcome is unknown */
    OBJECT_REFUSED, /* delta would have taken it below zero */
    OBJECT_READ     /* it was `after` */
};

struct object_op {
    const struct history_op *source;
    enum object_event event;
    int64_t delta, before, after;
    int64_t version; /* after the change, or as read; HISTORY_NO_NUMBER: not known */
};

struct object {
    char name[160];           /* "item:7", "item:7 for user u1" */
    const char *unit;         /* "stock", "balance", "allowance" */
    int64_t initial, version; /* version: HISTORY_NO_NUMBER: not known */
    struct object_op *ops;
    size_t n, room;
};

void object_free(struct object *object);
/* 0, or -1 without memory. */
int object_add(struct object *object, const struct object_op *op);

/* Is there an order in which all counting answers are right? ret_steps may be NULL.
 * - facts (NULL: all): does the answer of operation i count? If not, a READ is ignored, and other
 *   operations may have happened or not.
 * - asked_until_us: operations invoked later are ignored. */
enum linear_verdict object_check(const struct object *object, const bool *facts,
                                 int64_t asked_until_us, const struct linear_bound *bound,
                                 uint64_t *ret_steps);

/* For a LINEAR_BROKEN object: writes a smallest set of answers that cannot all be right, whatever
 * the outcomes of its other requests, one operation a line. Without any one of them the others can
 * be right. After QuickXplain (Junker, AAAI 2004). It takes some hundred searches with a common
 * bound. If the bound is reached, the set may be larger. */
void object_explain(const struct object *object, char ret[OBJECT_TEXT_MAX]);

#endif
