/*
 * What a search for a linearization still has to do. Taking and putting back are O(1); they undo
 * each other in the reverse order only (Knuth: Dancing links, 2000).
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
    struct linear_link *by_kind;   /* CHANGEs and LOOKs apart, in the order of invocations */
    struct linear_link *by_answer; /* both, in the order of answers */
    uint32_t *rank;                /* of an operation in the order of invocations */
    uint64_t *taken;               /* one bit per rank */
    uint32_t highest;              /* no rank beyond it is taken */
    uint32_t *maybes;              /* alike ones together, in the order of invocations */
    struct linear_group *groups;   /* of alike ones */
    uint32_t n_groups;
};

/* 0, or -1 without memory or beyond 2^32 operations. linear_queue_free() in any case. */
int linear_queue_init(struct linear_queue *queue, const struct linear_op *ops, size_t n);
void linear_queue_free(struct linear_queue *queue);

/* The answer that comes first among the outstanding ones: what is asked later has to wait.
 * INT64_MAX: none is outstanding. */
int64_t linear_queue_limit_us(const struct linear_queue *queue);
bool linear_queue_is_empty(const struct linear_queue *queue);
/* The outstanding ones of a kind, CHANGE or LOOK; LINEAR_NONE at the end. */
size_t linear_queue_first(const struct linear_queue *queue, enum linear_kind kind);
size_t linear_queue_next(const struct linear_queue *queue, size_t op);
bool linear_queue_is_outstanding(const struct linear_queue *queue, size_t op);
/* The first unused MAYBE of a group, or LINEAR_NONE. */
size_t linear_queue_of_group(const struct linear_queue *queue, uint32_t group);

void linear_queue_take(struct linear_queue *queue, size_t op);
void linear_queue_put_back(struct linear_queue *queue, size_t op);
void linear_queue_use(struct linear_queue *queue, uint32_t group);
void linear_queue_unuse(struct linear_queue *queue, uint32_t group);

/* The first 64 ranks of which not all are taken. */
uint32_t linear_queue_first_word(const struct linear_queue *queue);

#endif
