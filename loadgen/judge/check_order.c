/* Linearizability of each item, each account, and what an item's limit leaves each user. */
#include "check.h"
#include "object.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most a few seconds and 400 MB for one object. Ordinary histories need far less. */
static const struct linear_bound bound = {.steps = 300 * 1000 * 1000, .bytes = 400u << 20};

/* The role of one operation for one object. */
struct part {
    const char *resource, *user; /* texts of the history; user "": the resource itself */
    struct object_op op;
};

struct parts {
    struct part *items;
    size_t n;
};

static int compare_texts(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a, b);
}

static int by_object(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int order = compare_texts(x->resource, y->resource);
    if (order == 0)
        order = compare_texts(x->user, y->user);
    return order != 0 ? order
                      : (x->op.source->invoked_us > y->op.source->invoked_us) -
                            (x->op.source->invoked_us < y->op.source->invoked_us);
}

/* -- the parts of an operation ----------------------------------------------------------------- */

/* False: the operation says nothing: not sent, or refused for another reason. told: the answer has
 * the values read and written. */
static bool event_of(const struct history_op *op, const char *refused_as, bool told,
                     enum object_event *ret)
{
    switch (op->state) {
    case HISTORY_UNSENT:
        return false;
    case HISTORY_UNKNOWN:
        *ret = OBJECT_MAYBE;
        return op->kind != HISTORY_READ && op->delta != 0;
    case HISTORY_ACCEPTED:
        *ret = op->kind == HISTORY_READ ? OBJECT_READ : told ? OBJECT_CHANGED : OBJECT_MOVED;
        return true;
    case HISTORY_REFUSED:
        *ret = OBJECT_REFUSED;
        return op->kind != HISTORY_READ && strcmp(op->problem, refused_as) == 0;
    }
    return false;
}

static void add_part(struct parts *parts, const struct history_op *source, const char *resource,
                     const char *user, enum object_event event, int64_t delta, int64_t version)
{
    parts->items[parts->n++] = (struct part){.resource = resource,
                                             .user = user,
                                             .op = {.source = source,
                                                    .event = event,
                                                    .delta = delta,
                                                    .before = source->before,
                                                    .after = source->after,
                                                    .version = version}};
}

/* At most three: the number itself, a transfer's other side, the user's limit. */
enum { PARTS_MAX = 3 };

static void take_apart(const struct history *history, const struct history_op *op,
                       struct parts *parts)
{
    const struct history_resource *resource = history_resource_of(history, op->resource);
    const struct history_resource *other = history_resource_of(history, op->other);
    const int64_t none = HISTORY_NO_NUMBER;
    bool item = check_is_item(op->resource);
    enum object_event event;
    if (resource != NULL &&
        event_of(op, item ? "sold-out" : "insufficient-funds", op->kind == HISTORY_CHANGE, &event))
        add_part(parts, op, op->resource, "", event, op->delta,
                 op->kind == HISTORY_CHANGE || op->kind == HISTORY_READ ? op->version : none);
    /* A refused transfer says nothing about the receiving account. */
    if (other != NULL && event_of(op, "", false, &event) && op->delta != INT64_MIN)
        add_part(parts, op, op->other, "", event, -op->delta, op->other_version);
    if (resource != NULL && item && resource->limit > 0 && op->kind != HISTORY_READ &&
        op->user[0] != '\0' && event_of(op, "user-limit", false, &event))
        add_part(parts, op, op->resource, op->user, event, op->delta, none);
}

/* The audit counts as a read after all answers. */
static void add_audit(const struct history *history, const struct check_audit *audit,
                      struct history_op *reads, struct parts *parts)
{
    for (size_t i = 0; audit != NULL && i < history->n_resources; i++) {
        const char *name = history->resources[i].name;
        const struct audit_row *row = check_audit_row(audit, name);
        reads[i] = (struct history_op){.key = "the audit",
                                       .problem = "",
                                       .invoked_us = INT64_MAX,
                                       .completed_us = INT64_MAX,
                                       .version = HISTORY_NO_NUMBER,
                                       .after = row != NULL ? row->current : 0};
        if (row != NULL)
            add_part(parts, &reads[i], name, "", OBJECT_READ, 0, HISTORY_NO_NUMBER);
    }
}

/* -- judging -------------------------------------------------------------------------------------
 */

static void judge(const struct object *object, struct check_result *ret)
{
    char example[OBJECT_TEXT_MAX];
    ret->checked++;
    switch (object_check(object, NULL, INT64_MAX, &bound, NULL)) {
    case LINEAR_HOLDS:
        return;
    case LINEAR_BROKEN:
        if (ret->breaches == 0)
            object_explain(object, example);
        check_breach(ret, "%s", ret->breaches == 0 ? example : "");
        return;
    case LINEAR_UNDECIDED:
        check_undecided(ret,
                        "%s: not decided: too many orders of its %zu operations to try them all",
                        object->name, object->n);
    }
}

/* The parts of one object. */
static void judge_parts(const struct history *history, const struct part *parts, size_t n,
                        struct check_result *ret)
{
    const struct history_resource *resource = history_resource_of(history, parts->resource);
    bool limit = parts->user[0] != '\0';
    struct object object = {.unit = limit                            ? "allowance"
                                    : check_is_item(parts->resource) ? "stock"
                                                                     : "balance",
                            .initial = limit ? resource->limit : resource->initial,
                            .version = limit ? HISTORY_NO_NUMBER : resource->version};
    snprintf(object.name, sizeof object.name, limit ? "%.80s for user %.60s" : "%.80s",
             parts->resource, parts->user);
    bool whole = true, answered = false;
    for (size_t i = 0; i < n && whole; i++) {
        whole = object_add(&object, &parts[i].op) == 0;
        answered = answered || parts[i].op.event != OBJECT_MAYBE;
    }
    if (whole && answered) /* unknown outcomes alone fit any order: they prove nothing */
        judge(&object, ret);
    else if (!whole)
        check_undecided(ret, "out of memory");
    object_free(&object);
}

/* A resource whose initial value is not known cannot be judged. */
static void find_undeclared(const struct history *history, struct check_result *ret)
{
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        const char *const changed[] = {op->resource, op->other};
        for (int k = 0; k < 2 && op->state == HISTORY_ACCEPTED; k++)
            if (changed[k][0] != '\0' && history_resource_of(history, changed[k]) == NULL)
                check_undecided(ret, "%s: not decided: the history does not say how it began",
                                changed[k]);
    }
}

void check_order(const struct history *history, const struct check_audit *audit,
                 struct check_result *ret)
{
    struct parts parts = {
        .items = calloc(history->n_ops * PARTS_MAX + history->n_resources, sizeof *parts.items)};
    struct history_op *reads = calloc(history->n_resources + 1, sizeof *reads);
    if (parts.items == NULL || reads == NULL) {
        check_undecided(ret, "out of memory");
        goto out;
    }
    find_undeclared(history, ret);
    for (size_t i = 0; i < history->n_ops; i++)
        take_apart(history, &history->ops[i], &parts);
    add_audit(history, audit, reads, &parts);
    if (parts.n > 1)
        qsort(parts.items, parts.n, sizeof *parts.items, by_object);
    for (size_t first = 0, end; first < parts.n; first = end) {
        const struct part *of = &parts.items[first];
        for (end = first + 1; end < parts.n; end++)
            if (parts.items[end].resource != of->resource || parts.items[end].user != of->user)
                break;
        judge_parts(history, of, end - first, ret);
    }
out:
    free(parts.items);
    free(reads);
}
