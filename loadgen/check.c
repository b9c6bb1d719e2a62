#include "check.h"
#include "wide.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void breach(struct check_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void breach(struct check_result *result, const char *format, ...)
{
    va_list arguments;
    if (result->breaches++ > 0)
        return;
    va_start(arguments, format);
    vsnprintf(result->example, sizeof result->example, format, arguments);
    va_end(arguments);
}

static bool is_item(const char *resource)
{
    return strncmp(resource, "item:", 5) == 0;
}

static bool is_account(const char *resource)
{
    return strncmp(resource, "account:", 8) == 0;
}

/* -- accepted changes in an order ----------------------------------------------------------------
 */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_version(const void *a, const void *b)
{
    const struct history_op *x = *(const struct history_op *const *)a;
    const struct history_op *y = *(const struct history_op *const *)b;
    int order = strcmp(x->resource, y->resource);
    return order != 0 ? order : compare_numbers(x->version, y->version);
}

static int by_order_id(const void *a, const void *b)
{
    const struct history_op *x = *(const struct history_op *const *)a;
    const struct history_op *y = *(const struct history_op *const *)b;
    return strcmp(x->order_id, y->order_id);
}

/* To be freed. Without memory for them *ret_n is 0, so that the count shows that nothing was
 * checked. */
static const struct history_op **accepted(const struct history *history,
                                          int (*order)(const void *, const void *), size_t *ret_n)
{
    size_t n = 0;
    const struct history_op **ops = calloc(history->n_ops, sizeof *ops);
    for (size_t i = 0; ops != NULL && i < history->n_ops; i++)
        if (history->ops[i].state == HISTORY_ACCEPTED && history->ops[i].resource[0] != '\0')
            ops[n++] = &history->ops[i];
    if (n > 1)
        qsort(ops, n, sizeof *ops, order);
    *ret_n = n;
    return ops;
}

static void check_set(const struct history *history, const struct check_audit *audit,
                      struct check_result *ret)
{
    size_t n;
    const struct history_op **ops = accepted(history, by_version, &n);
    (void)audit;
    ret->checked = n;
    for (size_t i = 1; i < n; i++) {
        const struct history_op *a = ops[i - 1], *b = ops[i];
        if (strcmp(a->resource, b->resource) == 0 && a->version == b->version)
            breach(ret,
                   "%s: version %" PRId64 " was made twice: %s read %" PRId64 " and wrote %" PRId64
                   ", %s read %" PRId64 " and wrote %" PRId64 "; one is lost",
                   a->resource, a->version, a->key, a->before, a->after, b->key, b->before,
                   b->after);
    }
    if (n > 1)
        qsort(ops, n, sizeof *ops, by_order_id);
    for (size_t i = 1; i < n; i++)
        if (ops[i]->order_id[0] != '\0' && strcmp(ops[i - 1]->order_id, ops[i]->order_id) == 0)
            breach(ret, "order %s was given to both %s and %s", ops[i]->order_id, ops[i - 1]->key,
                   ops[i]->key);
    free(ops);
}

/* Within the changes of one resource, in the order of their versions. */
static void check_chain(const struct history_op *const *ops, size_t n, struct check_result *ret)
{
    for (size_t i = 1; i < n; i++) {
        const struct history_op *a = ops[i - 1], *b = ops[i];
        if ((wide)b->version == (wide)a->version + 1 && b->before != a->after)
            breach(ret, "%s: %s wrote %" PRId64 ", but the next change, %s, had read %" PRId64,
                   a->resource, a->key, a->after, b->key, b->before);
        if (b->version > a->version && b->fence < a->fence && b->fence != 0)
            breach(ret,
                   "%s: %s wrote with fence %" PRId64 ", and after it %s with the older %" PRId64,
                   a->resource, a->key, a->fence, b->key, b->fence);
    }
    /* From the last one back: has one of those that follow been answered before this was asked? */
    const struct history_op *earliest = NULL;
    for (size_t i = n; i-- > 0;) {
        const struct history_op *op = ops[i];
        if (earliest != NULL && earliest->completed_us < op->invoked_us &&
            earliest->version > op->version)
            breach(ret,
                   "%s: %s was answered %" PRId64 " us before %s was asked for, "
                   "and yet follows it (versions %" PRId64 " and %" PRId64 ")",
                   op->resource, earliest->key,
                   wide_clip((wide)op->invoked_us - earliest->completed_us), op->key,
                   earliest->version, op->version);
        if (earliest == NULL || op->completed_us < earliest->completed_us)
            earliest = op;
    }
}

static void check_lock(const struct history *history, const struct check_audit *audit,
                       struct check_result *ret)
{
    size_t n;
    const struct history_op **ops = accepted(history, by_version, &n);
    (void)audit;
    ret->checked = n;
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n; end++)
            if (strcmp(ops[end]->resource, ops[first]->resource) != 0)
                break;
        check_chain(ops + first, end - first, ret);
    }
    free(ops);
}

static void check_idempotence(const struct history *history, const struct check_audit *audit,
                              struct check_result *ret)
{
    (void)audit;
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        ret->checked += op->answers > 1;
        if (op->differing > 0)
            breach(ret, "%s: %" PRIu64 " of its %" PRIu64 " answers differ from the first", op->key,
                   op->differing, op->answers);
    }
}

/* -- sums ----------------------------------------------------------------------------------------
 */

/* What the history says of one resource. */
struct sums {
    wide accepted;     /* pieces, or the sum of the changes */
    wide unknown_up;   /* by so much it may be more, ... */
    wide unknown_down; /* ... or less */
    uint64_t changes;
};

static void add_effect(struct sums *sums, enum history_state state, wide amount)
{
    if (state == HISTORY_ACCEPTED)
        sums->accepted += amount;
    else if (state == HISTORY_UNKNOWN && amount > 0)
        sums->unknown_up += amount;
    else if (state == HISTORY_UNKNOWN)
        sums->unknown_down -= amount;
    sums->changes += state == HISTORY_ACCEPTED;
}

static struct sums sum_up(const struct history *history, const char *resource)
{
    struct sums sums = {0};
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        if (strcmp(op->resource, resource) == 0)
            add_effect(&sums, op->state, op->amount);
        if (strcmp(op->other, resource) == 0)
            add_effect(&sums, op->state, -(wide)op->amount);
    }
    return sums;
}

/* NULL: there is no audit, or it knows nothing of the resource, which is a breach. */
static const struct audit_row *audited(const struct check_audit *audit, const char *resource,
                                       struct check_result *ret)
{
    if (audit == NULL)
        return NULL;
    for (size_t i = 0; i < audit->n_rows; i++)
        if (strcmp(audit->rows[i].resource, resource) == 0)
            return &audit->rows[i];
    breach(ret, "%s is not in the audit", resource);
    return NULL;
}

/* No answer may tell of less than nothing, nor add up wrongly. */
static void check_answers(const struct history *history, bool (*concerns)(const char *resource),
                          int sign, struct check_result *ret)
{
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        if (op->state != HISTORY_ACCEPTED || !concerns(op->resource))
            continue;
        ret->checked++;
        wide change = sign * (wide)op->amount;
        if (op->after < 0)
            breach(ret, "%s left %s at %" PRId64, op->key, op->resource, op->after);
        if (op->after != op->before + change)
            breach(ret, "%s changed %s by %" PRId64 ", but from %" PRId64 " to %" PRId64, op->key,
                   op->resource, wide_clip(change), op->before, op->after);
    }
}

static void check_stock(const struct history *history, const struct check_audit *audit,
                        struct check_result *ret)
{
    check_answers(history, is_item, -1, ret);
    for (size_t i = 0; i < history->n_resources; i++) {
        const struct history_resource *item = &history->resources[i];
        if (!is_item(item->name))
            continue;
        struct sums sums = sum_up(history, item->name);
        const struct audit_row *row = audited(audit, item->name, ret);
        if (sums.accepted > item->initial)
            breach(ret, "%s: %" PRId64 " pieces were sold of %" PRId64, item->name,
                   wide_clip(sums.accepted), item->initial);
        if (row != NULL &&
            (row->sold < sums.accepted || row->sold > sums.accepted + sums.unknown_up))
            breach(ret, "%s: %" PRId64 " pieces were acknowledged, %" PRId64 " are stored as sold",
                   item->name, wide_clip(sums.accepted), row->sold);
        if (row != NULL && row->current != (wide)row->initial - row->sold)
            breach(ret, "%s: %" PRId64 " of %" PRId64 " pieces are sold, and yet %" PRId64 " left",
                   item->name, row->sold, row->initial, row->current);
    }
}

static bool is_known(const struct history *history, const char *resource)
{
    for (size_t i = 0; i < history->n_resources; i++)
        if (strcmp(history->resources[i].name, resource) == 0)
            return true;
    return false;
}

/* A transfer between known accounts leaves their sum as it is, whatever became of it. */
static void check_total(const struct history *history, wide initial, wide current,
                        struct check_result *ret)
{
    struct sums sums = {0};
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        bool here = is_account(op->resource) && is_known(history, op->resource);
        if (op->other[0] == '\0' && here)
            add_effect(&sums, op->state, op->amount);
        else if (op->other[0] != '\0' && here != is_known(history, op->other))
            return; /* to or from elsewhere */
    }
    wide expected = initial + sums.accepted;
    if (current < expected - sums.unknown_down || current > expected + sums.unknown_up)
        breach(ret, "all accounts together should hold %" PRId64 ", but hold %" PRId64,
               wide_clip(expected), wide_clip(current));
}

static void check_bank(const struct history *history, const struct check_audit *audit,
                       struct check_result *ret)
{
    wide initial = 0, current = 0;
    bool all_seen = audit != NULL;
    check_answers(history, is_account, 1, ret);
    for (size_t i = 0; i < history->n_resources; i++) {
        const struct history_resource *account = &history->resources[i];
        if (!is_account(account->name))
            continue;
        const struct audit_row *row = audited(audit, account->name, ret);
        if (row == NULL) {
            all_seen = false;
            continue;
        }
        initial += account->initial;
        current += row->current;
        struct sums sums = sum_up(history, account->name);
        wide expected = account->initial + sums.accepted;
        if (row->current < expected - sums.unknown_down ||
            row->current > expected + sums.unknown_up)
            breach(ret,
                   "%s: %" PRId64 " and %" PRIu64 " acknowledged changes of %" PRId64
                   " together make %" PRId64 ", but it holds %" PRId64,
                   account->name, account->initial, sums.changes, wide_clip(sums.accepted),
                   wide_clip(expected), row->current);
    }
    if (all_seen)
        check_total(history, initial, current, ret);
}

const struct checker checkers[] = {
    {"set", "acknowledged changes", check_set},
    {"stock", "acknowledged orders", check_stock},
    {"bank", "acknowledged changes of balances", check_bank},
    {"lock", "acknowledged changes", check_lock},
    {"idempotence", "keys that were answered more than once", check_idempotence},
};
const size_t n_checkers = sizeof checkers / sizeof *checkers;
