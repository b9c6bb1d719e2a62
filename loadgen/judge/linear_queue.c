#include "linear_queue.h"

#include <stdlib.h>

/* The list heads, stored behind the operations. */
enum { END_CHANGES, END_LOOKS, ENDS };

struct sorted {
    int64_t at_us;
    uint64_t likeness;
    uint32_t op;
};

static int compare(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->likeness != y->likeness)
        return x->likeness < y->likeness ? -1 : 1;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return x->op < y->op ? -1 : 1;
}

static uint32_t end_of(const struct linear_queue *queue, enum linear_kind kind)
{
    return (uint32_t)queue->n + (kind == LINEAR_CHANGE ? END_CHANGES : END_LOOKS);
}

static void append(struct linear_link *links, uint32_t end, uint32_t op)
{
    links[op] = (struct linear_link){.previous = links[end].previous, .next = end};
    links[links[end].previous].next = op;
    links[end].previous = op;
}

static void unlink_op(struct linear_link *links, uint32_t op)
{
    links[links[op].previous].next = links[op].next;
    links[links[op].next].previous = links[op].previous;
}

static void relink_op(struct linear_link *links, uint32_t op)
{
    links[links[op].previous].next = op;
    links[links[op].next].previous = op;
}

/* Sorts the CHANGEs and LOOKs by invocation and by answer. */
static void line_up(struct linear_queue *queue, struct sorted *sorted)
{
    size_t n = 0;
    for (uint32_t i = 0; i < queue->n; i++)
        if (queue->ops[i].kind != LINEAR_MAYBE)
            sorted[n++] = (struct sorted){.at_us = queue->ops[i].invoked_us, .op = i};
    qsort(sorted, n, sizeof *sorted, compare);
    for (size_t i = 0; i < n; i++) {
        uint32_t op = sorted[i].op;
        append(queue->by_kind, end_of(queue, queue->ops[op].kind), op);
        queue->rank[op] = (uint32_t)i;
        sorted[i].at_us = queue->ops[op].answered_us;
    }
    qsort(sorted, n, sizeof *sorted, compare);
    for (size_t i = 0; i < n; i++)
        append(queue->by_answer, (uint32_t)queue->n, sorted[i].op);
}

static void group_maybes(struct linear_queue *queue, struct sorted *sorted)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < queue->n; i++)
        if (queue->ops[i].kind == LINEAR_MAYBE)
            sorted[n++] = (struct sorted){
                .at_us = queue->ops[i].invoked_us, .likeness = queue->ops[i].likeness, .op = i};
    qsort(sorted, n, sizeof *sorted, compare);
    for (uint32_t i = 0; i < n; i++) {
        queue->maybes[i] = sorted[i].op;
        if (i == 0 || sorted[i].likeness != sorted[i - 1].likeness)
            queue->groups[queue->n_groups++] = (struct linear_group){.first = i};
        queue->groups[queue->n_groups - 1].n++;
    }
}

int linear_queue_init(struct linear_queue *queue, const struct linear_op *ops, size_t n)
{
    *queue = (struct linear_queue){.ops = ops, .n = n};
    if (n >= UINT32_MAX - ENDS)
        return -1;
    struct sorted *sorted = calloc(n + 1, sizeof *sorted);
    queue->by_kind = calloc(n + ENDS, sizeof *queue->by_kind);
    queue->by_answer = calloc(n + ENDS, sizeof *queue->by_answer);
    queue->rank = calloc(n + 1, sizeof *queue->rank);
    queue->taken = calloc(n / 64 + 1, sizeof *queue->taken);
    queue->maybes = calloc(n + 1, sizeof *queue->maybes);
    queue->groups = calloc(n + 1, sizeof *queue->groups);
    bool whole = sorted != NULL && queue->by_kind != NULL && queue->by_answer != NULL &&
                 queue->rank != NULL && queue->taken != NULL && queue->maybes != NULL &&
                 queue->groups != NULL;
    for (uint32_t end = (uint32_t)n; whole && end < n + ENDS; end++) {
        queue->by_kind[end] = (struct linear_link){.previous = end, .next = end};
        queue->by_answer[end] = queue->by_kind[end];
    }
    if (whole) {
        line_up(queue, sorted);
        group_maybes(queue, sorted);
    }
    free(sorted);
    return whole ? 0 : -1;
}

void linear_queue_free(struct linear_queue *queue)
{
    free(queue->by_kind);
    free(queue->by_answer);
    free(queue->rank);
    free(queue->taken);
    free(queue->maybes);
    free(queue->groups);
    *queue = (struct linear_queue){0};
}

bool linear_queue_is_empty(const struct linear_queue *queue)
{
    return queue->by_answer[queue->n].next == queue->n;
}

int64_t linear_queue_limit_us(const struct linear_queue *queue)
{
    return linear_queue_is_empty(queue) ? INT64_MAX
                                        : queue->ops[queue->by_answer[queue->n].next].answered_us;
}

static size_t op_or_none(const struct linear_queue *queue, uint32_t op)
{
    return op < queue->n ? op : LINEAR_NONE;
}

size_t linear_queue_first(const struct linear_queue *queue, enum linear_kind kind)
{
    return op_or_none(queue, queue->by_kind[end_of(queue, kind)].next);
}

size_t linear_queue_next(const struct linear_queue *queue, size_t op)
{
    return op_or_none(queue, queue->by_kind[op].next);
}

bool linear_queue_is_outstanding(const struct linear_queue *queue, size_t op)
{
    uint32_t rank = queue->rank[op];
    return (queue->taken[rank / 64] >> rank % 64 & 1) == 0;
}

size_t linear_queue_of_group(const struct linear_queue *queue, uint32_t group)
{
    const struct linear_group *of = &queue->groups[group];
    return of->used < of->n ? queue->maybes[of->first + of->used] : LINEAR_NONE;
}

void linear_queue_take(struct linear_queue *queue, size_t op)
{
    uint32_t rank = queue->rank[op];
    unlink_op(queue->by_kind, (uint32_t)op);
    unlink_op(queue->by_answer, (uint32_t)op);
    queue->taken[rank / 64] |= UINT64_C(1) << rank % 64;
    if (rank > queue->highest)
        queue->highest = rank;
}

void linear_queue_put_back(struct linear_queue *queue, size_t op)
{
    uint32_t rank = queue->rank[op];
    relink_op(queue->by_answer, (uint32_t)op);
    relink_op(queue->by_kind, (uint32_t)op);
    queue->taken[rank / 64] &= ~(UINT64_C(1) << rank % 64);
}

void linear_queue_use(struct linear_queue *queue, uint32_t group)
{
    queue->groups[group].used++;
}

void linear_queue_unuse(struct linear_queue *queue, uint32_t group)
{
    queue->groups[group].used--;
}

uint32_t linear_queue_first_word(const struct linear_queue *queue)
{
    uint32_t first = (uint32_t)queue->n;
    for (enum linear_kind kind = LINEAR_CHANGE; kind <= LINEAR_LOOK; kind++) {
        size_t op = linear_queue_first(queue, kind);
        if (op != LINEAR_NONE && queue->rank[op] < first)
            first = queue->rank[op];
    }
    return first / 64;
}
