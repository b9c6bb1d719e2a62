/*
 * The outstanding operations of a search. Taking and putting back are O(1). Operations are put
 * back in the reverse order only (Knuth: Dancing links, 2000).
 */
#ifndef LINEAR_QUEUE_H
#define LINEAR_QUEUE_H

#include "linear.h"

struct linear_link {
    uint32_t previous, next;
};

struct linear_group {
    uint32_t first, n, used; /* of `maybes` */
};

struct linear_queue {
    const struct linear_op *ops;
    size_t n;
    struct linear_link *by_kind;   /* CHANGEs and LOOKs in separate lists, in order of invocation */
    struct linear_link *by_answer; /* both, in order of answer */
    uint32_t *rank;                /* of an operation, in order of invocation */
    uint64_t *taken;               /* one bit per rank */
    uint32_t highest;              /* no higher rank is taken */
    uint32_t *maybes;              /* like ones together, in order of invocation */
    struct linear_group *groups;   /* of like ones */
    uint32_t n_groups;
};

/* 0, or -1 without memory or beyond 2^32 operations. linear_queue_free() in any case. */
int linear_queue_init(struct linear_queue *queue, const struct linear_op *ops, size_t n);
void linear_queue_free(struct linear_queue *queue);

/* The earliest answer of the outstanding operations. Operations invoked later must wait.
 * INT64_MAX: none is outstanding. */
int64_t linear_queue_limit_us(const struct linear_queue *queue);
bool linear_queue_is_empty(const struct linear_queue *queue);
/* Iterates over the outstanding operations of a kind, CHANGE or LOOK; LINEAR_NONE at the end. */
size_t linear_queue_first(const struct linear_queue *queue, enum linear_kind kind);
size_t linear_queue_next(const struct linear_queue *queue, size_t op);
bool linear_queue_is_outstanding(const struct linear_queue *queue, size_t op);
/* The first unused MAYBE of a group, or LINEAR_NONE. */
size_t linear_queue_of_group(const struct linear_queue *queue, uint32_t group);

void linear_queue_take(struct linear_queue *queue, size_t op);
void linear_queue_put_back(struct linear_queue *queue, size_t op);
void linear_queue_use(struct linear_queue *queue, uint32_t group);
void linear_queue_unuse(struct linear_queue *queue, uint32_t group);

/* The index of the first word of `taken` that has an operation still outstanding. */
uint32_t linear_queue_first_word(const struct linear_queue *queue);

#endif
