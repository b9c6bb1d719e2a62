/* Finds answers that contradict each other: first the shortest broken beginning of the history,
 * then a smallest set of its answers. */
#include "object.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 6 /* operations */ };

/* Bounds on the steps of all searches together (some tenths of a second) and of one. A search is
 * long when many answers do not count. At its bound a search has found no contradiction. */
static const uint64_t STEPS_MIN = 5 * 1000 * 1000, STEPS_PER_OP = 1000,
                      STEPS_OF_ONE_MIN = 500 * 1000, STEPS_OF_ONE_PER_OP = 40;
static const size_t BYTES_MAX = 32u << 20;

struct explanation {
    const struct object *object;
    uint32_t *order; /* operations whose answers can count, in order of answer */
    size_t n;
    bool *facts; /* the answers that count */
    int64_t asked_until_us;
    uint64_t steps_left;
};

static bool is_broken(struct explanation *explanation)
{
    uint64_t left = explanation->steps_left, steps;
    uint64_t most = STEPS_OF_ONE_MIN + STEPS_OF_ONE_PER_OP * explanation->object->n;
    struct linear_bound bound = {.steps = left < most ? left : most, .bytes = BYTES_MAX};
    enum linear_verdict verdict = object_check(explanation->object, explanation->facts,
                                               explanation->asked_until_us, &bound, &steps);
    explanation->steps_left -= steps < left ? steps : left;
    return verdict == LINEAR_BROKEN;
}

struct answer {
    int64_t at_us;
    uint32_t op;
};

static int by_time(const void *a, const void *b)
{
    const struct answer *x = a, *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return x->op < y->op ? -1 : 1;
}

static int line_up(struct explanation *explanation)
{
    const struct object *object = explanation->object;
    struct answer *answers = calloc(object->n + 1, sizeof *answers);
    explanation->order = calloc(object->n + 1, sizeof *explanation->order);
    explanation->facts = calloc(object->n + 1, sizeof *explanation->facts);
    bool whole = answers != NULL && explanation->order != NULL && explanation->facts != NULL;
    for (uint32_t i = 0; whole && i < object->n; i++)
        if (object->ops[i].event != OBJECT_MAYBE)
            answers[explanation->n++] =
                (struct answer){.at_us = object->ops[i].source->completed_us, .op = i};
    if (whole)
        qsort(answers, explanation->n, sizeof *answers, by_time);
    for (size_t i = 0; i < explanation->n; i++)
        explanation->order[i] = answers[i].op;
    free(answers);
    return whole ? 0 : -1;
}

/* Is the history broken if only the first n answers count, and only operations invoked before the
 * last of them? */
static bool beginning_is_broken(struct explanation *explanation, size_t n)
{
    for (size_t i = 0; i < explanation->n; i++)
        explanation->facts[explanation->order[i]] = i < n;
    explanation->asked_until_us =
        explanation->object->ops[explanation->order[n - 1]].source->completed_us;
    return is_broken(explanation);
}

/* The smallest n for which the first n answers contradict each other. */
static size_t shortest_beginning(struct explanation *explanation)
{
    size_t holds = 0, broken = explanation->n;
    while (broken - holds > 1) {
        size_t middle = holds + (broken - holds) / 2;
        if (beginning_is_broken(explanation, middle))
            broken = middle;
        else
            holds = middle;
    }
    return broken;
}

static void set_facts(struct explanation *explanation, size_t from, size_t to, bool count)
{
    for (size_t i = from; i < to; i++)
        explanation->facts[explanation->order[i]] = count;
}

/* No answer of order[from..to) counts at the start. Makes those count that are needed to
 * contradict the answers that count already. added: answers were added since the last check. */
static void need(struct explanation *explanation, size_t from, size_t to, bool added)
{
    if (added && is_broken(explanation))
        return;
    if (to - from == 1) {
        set_facts(explanation, from, to, true);
        return;
    }
    size_t middle = from + (to - from) / 2;
    set_facts(explanation, middle, to, true);
    need(explanation, from, middle, true);
    set_facts(explanation, middle, to, false);
    bool any = false;
    for (size_t i = from; i < middle; i++)
        any = any || explanation->facts[explanation->order[i]];
    need(explanation, middle, to, any);
}

/* -- in words ------------------------------------------------------------------------------------
 */

static void describe(const struct object *object, const struct object_op *op, int64_t zero_us,
                     char *out, size_t size)
{
    const struct history_op *source = op->source;
    char what[200], asked[40] = "audit", version[40] = "";
    if (op->version != HISTORY_NO_NUMBER)
        snprintf(version, sizeof version, ", version %" PRId64, op->version);
    if (op->event == OBJECT_CHANGED)
        snprintf(what, sizeof what, "changed by %+" PRId64 ", %s %" PRId64 " -> %" PRId64 "%s",
                 op->delta, object->unit, op->before, op->after, version);
    else if (op->event == OBJECT_MOVED)
        snprintf(what, sizeof what, "changed by %+" PRId64 "%s", op->delta, version);
    else if (op->event == OBJECT_REFUSED)
        snprintf(what, sizeof what, "refused (%s): change by %+" PRId64, source->problem,
                 op->delta);
    else
        snprintf(what, sizeof what, "read %s %" PRId64 "%s", object->unit, op->after, version);
    if (source->invoked_us != INT64_MAX)
        snprintf(asked, sizeof asked, "asked %.3f ms, answered %.3f ms",
                 ((double)source->invoked_us - (double)zero_us) / 1000,
                 ((double)source->completed_us - (double)zero_us) / 1000);
    snprintf(out, size, "\n    %.60s  %s: %s", source->key, asked, what);
}

static int by_invocation(const void *a, const void *b)
{
    const struct object_op *x = *(const struct object_op *const *)a;
    const struct object_op *y = *(const struct object_op *const *)b;
    return (x->source->invoked_us > y->source->invoked_us) -
           (x->source->invoked_us < y->source->invoked_us);
}

static void print(const struct explanation *explanation, int64_t zero_us, char ret[OBJECT_TEXT_MAX])
{
    const struct object *object = explanation->object;
    const struct object_op *shown[SHOWN_MAX] = {NULL};
    size_t n = 0, facts = 0;
    /* Show the latest answers: they show the contradiction. */
    for (size_t i = explanation->n; i-- > 0;) {
        uint32_t op = explanation->order[i];
        facts += explanation->facts[op];
        if (explanation->facts[op] && n < SHOWN_MAX)
            shown[n++] = &object->ops[op];
    }
    qsort(shown, n, sizeof *shown, by_invocation);
    char start[80];
    if (object->version == HISTORY_NO_NUMBER)
        snprintf(start, sizeof start, "%s %" PRId64, object->unit, object->initial);
    else
        snprintf(start, sizeof start, "%s %" PRId64 ", version %" PRId64, object->unit,
                 object->initial, object->version);
    snprintf(ret, OBJECT_TEXT_MAX,
             "%s began with %s; %zu answer%s cannot be right together in any order, whatever became"
             " of the other %zu requests:",
             object->name, start, facts, facts == 1 ? "" : "s", object->n - facts);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(ret);
        describe(object, shown[i], zero_us, ret + length, OBJECT_TEXT_MAX - length);
    }
    if (facts > n) {
        size_t length = strlen(ret);
        snprintf(ret + length, OBJECT_TEXT_MAX - length, "\n    and %zu before them", facts - n);
    }
}

void object_explain(const struct object *object, char ret[OBJECT_TEXT_MAX])
{
    struct explanation explanation = {.object = object,
                                      .steps_left = STEPS_MIN + STEPS_PER_OP * object->n};
    snprintf(ret, OBJECT_TEXT_MAX, "%s: no order of its %zu operations explains their answers",
             object->name, object->n);
    if (line_up(&explanation) == 0 && explanation.n > 0) {
        int64_t zero_us = INT64_MAX;
        for (size_t i = 0; i < object->n; i++)
            if (object->ops[i].source->invoked_us < zero_us)
                zero_us = object->ops[i].source->invoked_us;
        size_t n = shortest_beginning(&explanation);
        beginning_is_broken(&explanation, n);
        set_facts(&explanation, 0, n - 1, false);
        if (n > 1 && !is_broken(&explanation))
            need(&explanation, 0, n - 1, false);
        print(&explanation, zero_us, ret);
    }
    free(explanation.order);
    free(explanation.facts);
}
