/* Checks the sum of the acknowledged changes of each resource against its limits and the audit. */
#include "check.h"
#include "wide.h"

#include <inttypes.h>
#include <stdlib.h>

/* The sums of one resource's changes. */
struct sums {
    wide accepted;     /* of the changes */
    wide unknown_up;   /* it may be higher by this ... */
    wide unknown_down; /* ... or lower by this */
    uint64_t changes;
};

static void add_effect(struct sums *sums, enum history_state state, wide delta)
{
    if (state == HISTORY_ACCEPTED)
        sums->accepted += delta;
    else if (state == HISTORY_UNKNOWN && delta > 0)
        sums->unknown_up += delta;
    else if (state == HISTORY_UNKNOWN)
        sums->unknown_down -= delta;
    sums->changes += state == HISTORY_ACCEPTED;
}

/* The sums of each resource, in order; the caller frees them. Without memory: NULL, and an
 * undecided result. */
static struct sums *sum_up(const struct history *history, struct check_result *ret)
{
    struct sums *sums = calloc(history->n_resources + 1, sizeof *sums);
    if (sums == NULL)
        check_undecided(ret, "out of memory");
    for (size_t i = 0; sums != NULL && i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        const struct history_resource *resource = history_resource_of(history, op->resource);
        const struct history_resource *other = history_resource_of(history, op->other);
        if (op->kind == HISTORY_READ)
            continue;
        if (resource != NULL)
            add_effect(&sums[resource - history->resources], op->state, op->delta);
        if (other != NULL)
            add_effect(&sums[other - history->resources], op->state, -(wide)op->delta);
    }
    return sums;
}

/* The value in an accepted answer must be at least 0 and must add up. */
static void check_answers(const struct history *history, bool (*concerns)(const char *resource),
                          struct check_result *ret)
{
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->state != HISTORY_ACCEPTED || !concerns(op->resource) || op->kind == HISTORY_READ)
            continue;
        ret->checked++;
        if (op->after < 0)
            check_breach(ret, "%s left %s at %" PRId64, op->key, op->resource, op->after);
        if (op->kind == HISTORY_CHANGE && op->after != op->before + (wide)op->delta)
            check_breach(ret, "%s changed %s by %" PRId64 ", but from %" PRId64 " to %" PRId64,
                         op->key, op->resource, op->delta, op->before, op->after);
    }
}

void check_stock(const struct history *history, const struct check_audit *audit,
                 struct check_result *ret)
{
    struct sums *sums = sum_up(history, ret);
    check_answers(history, check_is_item, ret);
    for (size_t i = 0; sums != NULL && i < history->n_resources; i++) {
        const struct history_resource *item = &history->resources[i];
        const struct audit_row *row = check_audit_row(audit, item->name);
        if (!check_is_item(item->name))
            continue;
        wide sold = -sums[i].accepted, more = sums[i].unknown_down, less = sums[i].unknown_up;
        if (sold - less > item->initial)
            check_breach(ret, "%s: %" PRId64 " pieces were sold of %" PRId64, item->name,
                         wide_clip(sold), item->initial);
        if (row != NULL && (row->sold < sold - less || row->sold > sold + more))
            check_breach(ret,
                         "%s: %" PRId64 " pieces were acknowledged, %" PRId64 " are stored as sold",
                         item->name, wide_clip(sold), row->sold);
        if (row != NULL && row->current != (wide)row->initial - row->sold)
            check_breach(ret,
                         "%s: %" PRId64 " of %" PRId64 " pieces are sold, and yet %" PRId64 " left",
                         item->name, row->sold, row->initial, row->current);
    }
    free(sums);
}

/* A transfer between known accounts does not change their sum, whatever its outcome. */
static void check_total(const struct history *history, wide initial, wide current,
                        struct check_result *ret)
{
    struct sums sums = {0};
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        bool here = check_is_account(op->resource) && op->kind != HISTORY_READ &&
                    history_resource_of(history, op->resource) != NULL;
        if (op->other[0] == '\0' && here)
            add_effect(&sums, op->state, op->delta);
        else if (op->other[0] != '\0' && here != (history_resource_of(history, op->other) != NULL))
            return; /* one of its accounts is not known */
    }
    wide expected = initial + sums.accepted;
    if (current < expected - sums.unknown_down || current > expected + sums.unknown_up)
        check_breach(ret, "all accounts together should hold %" PRId64 ", but hold %" PRId64,
                     wide_clip(expected), wide_clip(current));
}

void check_bank(const struct history *history, const struct check_audit *audit,
                struct check_result *ret)
{
    struct sums *sums = sum_up(history, ret);
    wide initial = 0, current = 0;
    bool all_seen = audit != NULL;
    check_answers(history, check_is_account, ret);
    for (size_t i = 0; sums != NULL && i < history->n_resources; i++) {
        const struct history_resource *account = &history->resources[i];
        const struct audit_row *row = check_audit_row(audit, account->name);
        if (!check_is_account(account->name))
            continue;
        all_seen = all_seen && row != NULL;
        if (row == NULL)
            continue;
        initial += account->initial;
        current += row->current;
        wide expected = account->initial + sums[i].accepted;
        if (row->current < expected - sums[i].unknown_down ||
            row->current > expected + sums[i].unknown_up)
            check_breach(ret,
                         "%s: %" PRId64 " and %" PRIu64 " acknowledged changes of %" PRId64
                         " together make %" PRId64 ", but it holds %" PRId64,
                         account->name, account->initial, sums[i].changes,
                         wide_clip(sums[i].accepted), wide_clip(expected), row->current);
    }
    if (sums != NULL && all_seen)
        check_total(history, initial, current, ret);
    free(sums);
}
