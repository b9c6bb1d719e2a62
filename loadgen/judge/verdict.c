#include "verdict.h"
#include "text.h"
#include "wide.h"

#include <stdio.h>
#include <string.h>

bool verdict_is_broken(const struct verdict *verdict)
{
    struct verdict known = *verdict;
    known.unknown = 0;
#define VERDICT_ANY(name, text)                                                                    \
    if (known.name != 0)                                                                           \
        return true;
    VERDICT_MAP(VERDICT_ANY)
#undef VERDICT_ANY
    return false;
}

bool verdict_is_safe(const struct verdict *verdict)
{
    return !verdict_is_broken(verdict) && verdict->unknown == 0;
}

void verdict_worse(struct verdict *into, const struct verdict *other)
{
#define VERDICT_WORSE(name, text) into->name = into->name < other->name ? other->name : into->name;
    VERDICT_MAP(VERDICT_WORSE)
#undef VERDICT_WORSE
}

bool verdict_as_claimed(const struct verdict *verdict, bool claims_safe)
{
    return claims_safe ? verdict_is_safe(verdict) : verdict_is_broken(verdict);
}

void verdict_add(struct verdict *into, const struct verdict *from)
{
#define VERDICT_ADD(name, text) into->name = wide_clip((wide)into->name + from->name);
    VERDICT_MAP(VERDICT_ADD)
#undef VERDICT_ADD
}

char *verdict_text(const struct verdict *verdict, char *out, size_t size)
{
    const struct {
        const char *label;
        int64_t value;
    } worst_first[] = {
        {"OVERSOLD", verdict->oversold},
        {"OVER LIMIT", verdict->over_limit},
        {"NEGATIVE", verdict->negative},
        {"LOST", verdict->lost_amount},
        {"LOST UPDATES", verdict->lost_updates},
        {"DUPLICATES", verdict->duplicates},
        {"UNDERSOLD", verdict->undersold},
        {"MISMATCH", verdict->mismatch},
        {"WITNESSES DISAGREE", verdict->disagreements},
        {"REPLAY DIFFERS", verdict->replay_mismatch},
        {"BROKEN LEDGER", verdict->broken},
        {"UNKNOWN", verdict->unknown},
    };
    char count[TEXT_MAX];
    for (size_t i = 0; i < sizeof worst_first / sizeof *worst_first; i++)
        if (worst_first[i].value != 0) {
            snprintf(out, size, "%s %s", worst_first[i].label,
                     text_count(count, worst_first[i].value));
            return out;
        }
    snprintf(out, size, "OK");
    return out;
}

static int64_t at_least_0(wide value)
{
    return value > 0 ? wide_clip(value) : 0;
}

static wide distance(wide a, wide b)
{
    return a > b ? a - b : b - a;
}

static void take_audit(const struct audit_row *audit, struct verdict *verdict)
{
    verdict->oversold = audit->oversold;
    verdict->over_limit = audit->over_limit;
    verdict->lost_updates = audit->lost_updates;
    verdict->lost_amount = audit->lost_amount;
    verdict->duplicates = audit->duplicates;
    verdict->negative = audit->negative;
    verdict->broken = audit->broken;
}

void verdict_of_item(const struct audit_row *audit, const struct client_count *client,
                     struct verdict *ret)
{
    struct verdict verdict = {.unknown = client->unknown};
    const wide stock = (wide)audit->initial + audit->restocked;
    const wide sellable = stock < client->demand ? stock : client->demand;
    take_audit(audit, &verdict);
    verdict.undersold = at_least_0(sellable - audit->sold - client->unknown_amount);
    /* An unknown order explains at most its own pieces. */
    verdict.mismatch = at_least_0(distance(audit->sold, client->accepted) - client->unknown_amount);
    *ret = verdict;
}

void verdict_of_account(const struct audit_row *audit, const struct client_count *client,
                        struct verdict *ret)
{
    struct verdict verdict = {.unknown = client->unknown};
    take_audit(audit, &verdict);
    verdict.mismatch =
        at_least_0(distance(audit->ledger_sum, client->accepted) - client->unknown_amount);
    *ret = verdict;
}

/* -- the audit's JSON -------------------------------------------------------------------------- */

static int take_integer(const json_t *object, const char *name, int64_t *ret)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value))
        return -1;
    *ret = json_integer_value(value);
    return 0;
}

static int take_text(const json_t *object, const char *name, char *ret, size_t size)
{
    const char *value = json_string_value(json_object_get(object, name));
    if (value == NULL || strlen(value) >= size)
        return -1;
    strcpy(ret, value);
    return 0;
}

static int parse_ledger_row(const json_t *object, struct ledger_row *ret)
{
    return take_text(object, "txn_id", ret->txn_id, sizeof ret->txn_id) |
           take_text(object, "instance", ret->instance, sizeof ret->instance) |
           take_integer(object, "before", &ret->before) |
           take_integer(object, "after", &ret->after) |
           take_integer(object, "version_before", &ret->version_before) |
           take_integer(object, "at_us", &ret->at_us);
}

/* Takes the first fork whose two changes began from the same value: it shows the loss best. In a
 * fork of a fork the values differ. Without such a fork, takes the first. */
static int take_fork(const json_t *forks, struct audit_row *row)
{
    size_t i;
    const json_t *fork;
    json_array_foreach(forks, i, fork)
    {
        struct ledger_row pair[2] = {0};
        if (parse_ledger_row(json_array_get(fork, 0), &pair[0]) != 0 ||
            parse_ledger_row(json_array_get(fork, 1), &pair[1]) != 0)
            return -1;
        if (row->has_fork && pair[0].before != pair[1].before)
            continue;
        for (size_t side = 0; side < 2; side++) {
            pair[side].delta = wide_clip((wide)pair[side].after - pair[side].before);
            strcpy(pair[side].resource, row->resource);
            row->fork[side] = pair[side];
        }
        row->has_fork = true;
        if (pair[0].before == pair[1].before)
            return 0;
    }
    return 0;
}

int audit_row_parse(const json_t *object, struct audit_row *ret)
{
    struct audit_row row = {0};
    if (take_text(object, "resource", row.resource, sizeof row.resource) |
        take_integer(object, "initial", &row.initial) |
        take_integer(object, "current", &row.current) |
        take_integer(object, "ledger_sum", &row.ledger_sum) |
        take_integer(object, "sold", &row.sold) | take_integer(object, "oversold", &row.oversold) |
        take_integer(object, "lost_updates", &row.lost_updates) |
        take_integer(object, "lost_amount", &row.lost_amount) |
        take_integer(object, "duplicates", &row.duplicates))
        return -1;
    /* Optional fields: not every service reports them. */
    take_integer(object, "restocked", &row.restocked);
    take_integer(object, "over_limit", &row.over_limit);
    take_integer(object, "negative", &row.negative);
    take_integer(object, "broken", &row.broken);

    if (take_fork(json_object_get(object, "forks"), &row) != 0)
        return -1;
    *ret = row;
    return 0;
}

json_t *ledger_row_to_json(const struct ledger_row *row)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:I}", "resource", row->resource, "txn_id",
                     row->txn_id, "before", (json_int_t)row->before, "after",
                     (json_int_t)row->after, "version_before", (json_int_t)row->version_before,
                     "instance", row->instance, "at_us", (json_int_t)row->at_us);
}
