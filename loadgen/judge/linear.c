/* The search. Its memory is in linear_memo.c, its outstanding operations in linear_queue.c. */
#include "linear.h"
#include "linear_memo.h"
#include "linear_queue.h"

#include <stdlib.h>

/* One applied operation, with what is needed to undo it. */
struct frame {
    uint32_t op;
    uint32_t group; /* of a MAYBE */
    enum linear_kind kind;
    bool alone; /* there is no alternative to it */
    struct linear_state before;
};

struct search {
    const struct linear_op *ops;
    const struct linear_model *model;
    const struct linear_bound *bound;
    struct linear_queue queue;
    struct linear_memo memo;
    struct linear_state state;
    struct frame *frames;
    size_t depth;
    uint64_t steps;
    bool exhausted;
};

static bool try_step(struct search *search, size_t op, struct linear_state *ret)
{
    search->steps += search->ops[op].kind == LINEAR_LOOK ? 1 : LINEAR_STEPS_PER_CHANGE;
    if (search->steps > search->bound->steps)
        search->exhausted = true;
    return search->model->step(search->model->object, &search->state, op, ret);
}

static void push(struct search *search, size_t op, uint32_t group, bool alone)
{
    enum linear_kind kind = search->ops[op].kind;
    search->frames[search->depth++] = (struct frame){
        .op = (uint32_t)op, .group = group, .kind = kind, .alone = alone, .before = search->state};
    if (kind == LINEAR_MAYBE)
        linear_queue_use(&search->queue, group);
    else
        linear_queue_take(&search->queue, op);
}

/* Undoes the last operation. */
static struct frame pop(struct search *search)
{
    struct frame frame = search->frames[--search->depth];
    search->state = frame.before;
    if (frame.kind == LINEAR_MAYBE)
        linear_queue_unuse(&search->queue, frame.group);
    else
        linear_queue_put_back(&search->queue, frame.op);
    return frame;
}

/* Applies all LOOKs that fit now. */
static void look(struct search *search)
{
    struct linear_queue *queue = &search->queue;
    struct linear_state unused;
    for (size_t op = linear_queue_first(queue, LINEAR_LOOK); op != LINEAR_NONE;) {
        if (search->ops[op].invoked_us > linear_queue_limit_us(queue))
            break;
        size_t next = linear_queue_next(queue, op);
        if (try_step(search, op, &unused))
            push(search, op, 0, true);
        op = next;
    }
}

/* Applies op if it fits and leads to a new pair. */
static bool advance(struct search *search, size_t op, uint32_t group)
{
    struct linear_state next;
    if (!try_step(search, op, &next))
        return false;
    push(search, op, group, false);
    search->state = next;
    enum linear_seen seen = linear_memo_add(&search->memo, &search->queue, &search->state);
    if (seen == LINEAR_FULL)
        search->exhausted = true;
    if (seen != LINEAR_KNOWN)
        return true;
    pop(search);
    return false;
}

/* Applies the only change that can come next. */
static bool advance_only(struct search *search, size_t op)
{
    struct linear_state next;
    if (!linear_queue_is_outstanding(&search->queue, op) ||
        search->ops[op].invoked_us > linear_queue_limit_us(&search->queue) ||
        !try_step(search, op, &next))
        return false;
    push(search, op, 0, true);
    search->state = next;
    return true;
}

/* Applies the next change that fits, after the undone one (NULL: from the first). */
static bool change(struct search *search, const struct frame *after)
{
    struct linear_queue *queue = &search->queue;
    int64_t limit_us = linear_queue_limit_us(queue);
    uint32_t group = after != NULL && after->kind == LINEAR_MAYBE ? after->group + 1 : 0;
    size_t only = search->model->only(search->model->object, &search->state);
    if (only != LINEAR_NONE)
        return advance_only(search, only);
    size_t op = LINEAR_NONE;
    if (after == NULL)
        op = linear_queue_first(queue, LINEAR_CHANGE);
    else if (after->kind == LINEAR_CHANGE)
        op = linear_queue_next(queue, after->op);
    for (; op != LINEAR_NONE && !search->exhausted; op = linear_queue_next(queue, op)) {
        if (search->ops[op].invoked_us > limit_us)
            break;
        if (advance(search, op, 0))
            return true;
    }
    for (; group < queue->n_groups && !search->exhausted; group++) {
        op = linear_queue_of_group(queue, group);
        if (op != LINEAR_NONE && search->ops[op].invoked_us <= limit_us &&
            advance(search, op, group))
            return true;
    }
    return false;
}

static enum linear_verdict run(struct search *search)
{
    const struct frame *after = NULL;
    struct frame taken_back;
    for (;;) {
        if (after == NULL)
            look(search);
        if (linear_queue_is_empty(&search->queue))
            return LINEAR_HOLDS;
        bool moved = !search->exhausted && change(search, after);
        if (search->exhausted)
            return LINEAR_UNDECIDED;
        after = NULL;
        if (moved)
            continue;
        do {
            if (search->depth == 0)
                return LINEAR_BROKEN;
            taken_back = pop(search);
        } while (taken_back.alone);
        after = &taken_back;
    }
}

enum linear_verdict linear_check(const struct linear_op *ops, size_t n,
                                 const struct linear_model *model, const struct linear_bound *bound,
                                 uint64_t *ret_steps)
{
    struct search search = {.ops = ops, .model = model, .bound = bound, .state = model->first};
    enum linear_verdict verdict = LINEAR_UNDECIDED;
    search.frames = calloc(n + 1, sizeof *search.frames);
    if (search.frames != NULL && linear_queue_init(&search.queue, ops, n) == 0) {
        linear_memo_init(&search.memo, bound->bytes);
        verdict = run(&search);
        linear_memo_free(&search.memo);
    }
    linear_queue_free(&search.queue);
    free(search.frames);
    if (ret_steps != NULL)
        *ret_steps = search.steps;
    return verdict;
}
