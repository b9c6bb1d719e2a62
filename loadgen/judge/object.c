#include "object.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4, VERSION = 0, VALUE = 1 };

void object_free(struct object *object)
{
    free(object->ops);
    *object = (struct object){0};
}

int object_add(struct object *object, const struct object_op *op)
{
    if (object->n == object->room) {
        size_t room = object->room == 0 ? FIRST_ROOM : object->room * 2;
        struct object_op *grown = realloc(object->ops, room * sizeof *grown);
        if (grown == NULL)
            return -1;
        object->ops = grown;
        object->room = room;
    }
    object->ops[object->n++] = *op;
    return 0;
}

/* -- the model ----------------------------------------------------------------------------------
 */

/* A version that an answer names, and the value that its change had read. */
struct claim {
    int64_t version, before;
    size_t op;
};

struct judged {
    struct linear_op *linear;
    const struct object_op **ops; /* of linear */
    bool *maybe;                  /* of linear: the answer does not count */
    size_t n;
    struct claim *claims; /* by version */
    size_t n_claims;
};

static int by_version(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    return (x->version > y->version) - (x->version < y->version);
}

static const struct claim *claim_of(const struct judged *judged, int64_t version)
{
    const struct claim wanted = {.version = version};
    if (judged->n_claims == 0 || version < judged->claims[0].version ||
        version > judged->claims[judged->n_claims - 1].version)
        return NULL;
    return bsearch(&wanted, judged->claims, judged->n_claims, sizeof wanted, by_version);
}

static bool add(int64_t value, int64_t delta, int64_t *ret)
{
    return !__builtin_add_overflow(value, delta, ret) && *ret >= 0;
}

/* A change whose answer names no version. If an answer names the next version, only() has chosen
 * that change already. */
static bool step_unnamed(const struct judged *judged, int64_t delta,
                         const struct linear_state *state, struct linear_state *ret)
{
    int64_t version = state->words[VERSION], value;
    if (!add(state->words[VALUE], delta, &value))
        return false;
    if (version != HISTORY_NO_NUMBER) {
        if (version >= INT64_MAX - 1)
            return false;
        const struct claim *next = claim_of(judged, version + 2);
        if (next != NULL && next->before != HISTORY_NO_NUMBER && next->before != value)
            return false;
        version++;
    }
    *ret = (struct linear_state){.words = {[VERSION] = version, [VALUE] = value}};
    return true;
}

static bool step_changed(const struct judged *judged, const struct object_op *op,
                         const struct linear_state *state, struct linear_state *ret)
{
    int64_t version = state->words[VERSION], value;
    if (!add(state->words[VALUE], op->delta, &value) ||
        (op->event == OBJECT_CHANGED && (op->before != state->words[VALUE] || op->after != value)))
        return false;
    if (op->version == HISTORY_NO_NUMBER)
        return step_unnamed(judged, op->delta, state, ret);
    bool follows = version == HISTORY_NO_NUMBER ? op->version == judged->claims[0].version
                                                : version < INT64_MAX && op->version == version + 1;
    *ret = (struct linear_state){.words = {[VERSION] = op->version, [VALUE] = value}};
    return follows;
}

static bool step(const void *model, const struct linear_state *state, size_t i,
                 struct linear_state *ret)
{
    const struct judged *judged = model;
    const struct object_op *op = judged->ops[i];
    int64_t version = state->words[VERSION], value;
    if (judged->maybe[i])
        return step_unnamed(judged, op->delta, state, ret);
    if (op->event == OBJECT_CHANGED || op->event == OBJECT_MOVED)
        return step_changed(judged, op, state, ret);
    if (op->event == OBJECT_REFUSED)
        return !add(state->words[VALUE], op->delta, &value);
    bool same_version =
        version == HISTORY_NO_NUMBER || op->version == HISTORY_NO_NUMBER || version == op->version;
    return same_version && state->words[VALUE] == op->after;
}

/* If an answer names the next version, no other change can come next. */
static size_t only(const void *model, const struct linear_state *state)
{
    const struct judged *judged = model;
    int64_t version = state->words[VERSION];
    const struct claim *claim =
        version == HISTORY_NO_NUMBER || version == INT64_MAX ? NULL : claim_of(judged, version + 1);
    return claim == NULL ? LINEAR_NONE : claim->op;
}

/* -- an object as the search takes it ------------------------------------------------------------
 */

static void judged_free(struct judged *judged)
{
    free(judged->linear);
    free(judged->ops);
    free(judged->maybe);
    free(judged->claims);
}

static int judged_init(struct judged *judged, size_t n)
{
    judged->linear = calloc(n + 1, sizeof *judged->linear);
    judged->ops = calloc(n + 1, sizeof *judged->ops);
    judged->maybe = calloc(n + 1, sizeof *judged->maybe);
    judged->claims = calloc(n + 1, sizeof *judged->claims);
    bool whole = judged->linear != NULL && judged->ops != NULL && judged->maybe != NULL &&
                 judged->claims != NULL;
    return whole ? 0 : -1;
}

static void judge_op(struct judged *judged, const struct object_op *op, bool fact)
{
    bool maybe = op->event == OBJECT_MAYBE || !fact;
    bool look = op->event == OBJECT_READ || op->event == OBJECT_REFUSED;
    if (maybe && op->event == OBJECT_READ)
        return;
    judged->linear[judged->n] = (struct linear_op){.kind = maybe  ? LINEAR_MAYBE
                                                           : look ? LINEAR_LOOK
                                                                  : LINEAR_CHANGE,
                                                   .invoked_us = op->source->invoked_us,
                                                   .answered_us = op->source->completed_us,
                                                   .likeness = (uint64_t)op->delta};
    if (!maybe && !look && op->version != HISTORY_NO_NUMBER)
        judged->claims[judged->n_claims++] =
            (struct claim){.version = op->version,
                           .before = op->event == OBJECT_CHANGED ? op->before : HISTORY_NO_NUMBER,
                           .op = judged->n};
    judged->ops[judged->n] = op;
    judged->maybe[judged->n++] = maybe;
}

enum linear_verdict object_check(const struct object *object, const bool *facts,
                                 int64_t asked_until_us, const struct linear_bound *bound,
                                 uint64_t *ret_steps)
{
    struct judged judged = {0};
    enum linear_verdict verdict = LINEAR_UNDECIDED;
    if (ret_steps != NULL)
        *ret_steps = 0;
    if (judged_init(&judged, object->n) == 0) {
        for (size_t i = 0; i < object->n; i++)
            if (object->ops[i].source->invoked_us <= asked_until_us)
                judge_op(&judged, &object->ops[i], facts == NULL || facts[i]);
        qsort(judged.claims, judged.n_claims, sizeof *judged.claims, by_version);
        struct linear_model model = {
            .object = &judged,
            .first.words = {[VERSION] = object->version, [VALUE] = object->initial},
            .step = step,
            .only = only};
        verdict = linear_check(judged.linear, judged.n, &model, bound, ret_steps);
    }
    judged_free(&judged);
    return verdict;
}
