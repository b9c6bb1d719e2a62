/* The small checkers, and the table of all. */
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_breach(struct check_result *result, const char *format, ...)
{
    va_list arguments;
    if (result->breaches++ > 0)
        return;
    va_start(arguments, format);
    vsnprintf(result->example, sizeof result->example, format, arguments);
    va_end(arguments);
}

void check_undecided(struct check_result *result, const char *format, ...)
{
    va_list arguments;
    if (result->undecided++ > 0 || result->breaches > 0)
        return;
    va_start(arguments, format);
    vsnprintf(result->example, sizeof result->example, format, arguments);
    va_end(arguments);
}

bool check_is_item(const char *resource)
{
    return strncmp(resource, "item:", 5) == 0;
}

bool check_is_account(const char *resource)
{
    return strncmp(resource, "account:", 8) == 0;
}

const struct audit_row *check_audit_row(const struct check_audit *audit, const char *resource)
{
    for (size_t i = 0; audit != NULL && i < audit->n_rows; i++)
        if (strcmp(audit->rows[i].resource, resource) == 0)
            return &audit->rows[i];
    return NULL;
}

/* -- accepted changes in an order ---------------------------------------------------------------
 */

static int by_version(const void *a, const void *b)
{
    const struct history_op *x = *(const struct history_op *const *)a;
    const struct history_op *y = *(const struct history_op *const *)b;
    int order = strcmp(x->resource, y->resource);
    return order != 0 ? order : (x->version > y->version) - (x->version < y->version);
}

static int by_order_id(const void *a, const void *b)
{
    const struct history_op *x = *(const struct history_op *const *)a;
    const struct history_op *y = *(const struct history_op *const *)b;
    return strcmp(x->order_id, y->order_id);
}

static int by_order_closed(const void *a, const void *b)
{
    const struct history_op *x = *(const struct history_op *const *)a;
    const struct history_op *y = *(const struct history_op *const *)b;
    return strcmp(x->of_order, y->of_order);
}

static bool names_version(const struct history_op *op)
{
    return op->kind == HISTORY_CHANGE && op->resource[0] != '\0' &&
           op->version != HISTORY_NO_NUMBER;
}

static bool has_order(const struct history_op *op)
{
    return op->order_id[0] != '\0';
}

static bool closes_order(const struct history_op *op)
{
    return op->of_order[0] != '\0';
}

/* The accepted operations that concern a checker; the caller frees them. Without memory there are
 * none, and the result is undecided. */
static const struct history_op **accepted(const struct history *history,
                                          bool (*concerns)(const struct history_op *),
                                          int (*order)(const void *, const void *), size_t *ret_n,
                                          struct check_result *result)
{
    size_t n = 0;
    const struct history_op **ops = calloc(history->n_ops, sizeof *ops);
    if (ops == NULL)
        check_undecided(result, "out of memory");
    for (size_t i = 0; ops != NULL && i < history->n_ops; i++)
        if (history->ops[i].state == HISTORY_ACCEPTED && concerns(&history->ops[i]))
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
    (void)audit;
    const struct history_op **ops = accepted(history, names_version, by_version, &n, ret);
    ret->checked = n;
    for (size_t i = 1; i < n; i++) {
        const struct history_op *a = ops[i - 1], *b = ops[i];
        if (strcmp(a->resource, b->resource) == 0 && a->version == b->version)
            check_breach(
                ret,
                "%s: version %" PRId64 " was made twice: %s read %" PRId64 " and wrote %" PRId64
                ", %s read %" PRId64 " and wrote %" PRId64 "; one is lost",
                a->resource, a->version, a->key, a->before, a->after, b->key, b->before, b->after);
    }
    free(ops);
    ops = accepted(history, has_order, by_order_id, &n, ret);
    for (size_t i = 1; i < n; i++)
        if (strcmp(ops[i - 1]->order_id, ops[i]->order_id) == 0)
            check_breach(ret, "order %s was given to both %s and %s", ops[i]->order_id,
                         ops[i - 1]->key, ops[i]->key);
    free(ops);
    ops = accepted(history, closes_order, by_order_closed, &n, ret);
    for (size_t i = 1; i < n; i++)
        if (strcmp(ops[i - 1]->of_order, ops[i]->of_order) == 0)
            check_breach(ret, "order %s was paid or cancelled twice, by %s and by %s",
                         ops[i]->of_order, ops[i - 1]->key, ops[i]->key);
    free(ops);
}

/* Changes without a fence are skipped. */
static void check_fence(const struct history *history, const struct check_audit *audit,
                        struct check_result *ret)
{
    size_t n;
    (void)audit;
    const struct history_op **ops = accepted(history, names_version, by_version, &n, ret);
    const struct history_op *newest = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct history_op *op = ops[i];
        if (newest != NULL && strcmp(newest->resource, op->resource) != 0)
            newest = NULL;
        if (op->fence == HISTORY_NO_NUMBER || op->fence == 0)
            continue;
        ret->checked++;
        if (newest != NULL && op->version > newest->version && op->fence < newest->fence)
            check_breach(ret,
                         "%s: %s wrote version %" PRId64 " with fence %" PRId64
                         ", and after it %s wrote version %" PRId64 " with the older %" PRId64,
                         op->resource, newest->key, newest->version, newest->fence, op->key,
                         op->version, op->fence);
        if (newest == NULL || op->fence > newest->fence)
            newest = op;
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
            check_breach(ret, "%s: %" PRIu64 " of its %" PRIu64 " answers differ from the first",
                         op->key, op->differing, op->answers);
    }
}

/* -- the service's audit ----------------------------------------------------------------------- */

static void check_figures(const struct audit_row *row, struct check_result *ret)
{
    const struct {
        const char *name;
        int64_t value;
    } figures[] = {
        {"oversold", row->oversold},
        {"over_limit", row->over_limit},
        {"lost_updates", row->lost_updates},
        {"lost_amount", row->lost_amount},
        {"duplicates", row->duplicates},
        {"negative", row->negative},
        {"broken", row->broken},
        {"forks", row->has_fork},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (figures[i].value != 0)
            check_breach(ret, "%s: the audit itself says %s=%" PRId64, row->resource,
                         figures[i].name, figures[i].value);
}

static void check_audit(const struct history *history, const struct check_audit *audit,
                        struct check_result *ret)
{
    for (size_t i = 0; audit != NULL && i < history->n_resources; i++) {
        const struct history_resource *resource = &history->resources[i];
        const struct audit_row *row = check_audit_row(audit, resource->name);
        ret->checked++;
        if (row == NULL) {
            check_breach(ret, "%s is not in the audit", resource->name);
            continue;
        }
        check_figures(row, ret);
        if (row->initial != resource->initial)
            check_breach(ret, "%s began with %" PRId64 ", the audit says with %" PRId64,
                         resource->name, resource->initial, row->initial);
        int64_t sum;
        if (__builtin_add_overflow(row->initial, row->ledger_sum, &sum) || sum != row->current)
            check_breach(ret,
                         "%s: the audit's ledger adds %" PRId64 " to %" PRId64
                         ", and yet it holds %" PRId64,
                         resource->name, row->ledger_sum, row->initial, row->current);
    }
}

/* -- all ----------------------------------------------------------------------------------------
 */

const struct checker checkers[] = {
    {"order", "items, accounts and users' limits", check_order},
    {"set", "acknowledged changes", check_set},
    {"stock", "acknowledged orders", check_stock},
    {"bank", "acknowledged changes of balances", check_bank},
    {"fence", "acknowledged changes with a fence", check_fence},
    {"idempotence", "keys that were answered more than once", check_idempotence},
    {"audit", "resources in the audit", check_audit},
};
const size_t n_checkers = sizeof checkers / sizeof *checkers;

enum check_verdict check_verdict(const struct check_result *results, size_t n)
{
    uint64_t checked = 0, breaches = 0, undecided = 0;
    for (size_t i = 0; i < n; i++) {
        checked += results[i].checked;
        breaches += results[i].breaches;
        undecided += results[i].undecided;
    }
    return breaches > 0    ? CHECK_BROKEN
           : undecided > 0 ? CHECK_UNDECIDED
           : checked > 0   ? CHECK_HOLDS
                           : CHECK_NOTHING;
}

const char *check_verdict_text(enum check_verdict verdict)
{
    static const char *const texts[] = {[CHECK_HOLDS] = "holds",
                                        [CHECK_BROKEN] = "broken",
                                        [CHECK_UNDECIDED] = "undecided",
                                        [CHECK_NOTHING] = "nothing"};
    return texts[verdict];
}
