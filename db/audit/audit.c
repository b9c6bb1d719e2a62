#include "audit.h"
#include "engine.h"

#include <string.h>

/* Goes on from the last row that was moved. Rows of former epochs are read only if all are. */
static void begin_carried(struct audit *audit, bool whole)
{
    const struct audit_head *head = &audit->head;
    if (head->carried_n == 0)
        return;
    if (whole || head->carried_epoch >= head->epoch)
        audit_chain_carry(&audit->chain, head);
    if (head->carried_epoch != head->epoch)
        return;
    audit->ledger_sum = head->carried_moved;
    audit->restocked = head->carried_restocked;
    audit->step = (struct audit_step){.version_before = head->carried_version, .rows = 1};
    audit->step.after[0] = head->carried_total;
    audit->first_is_kept = false;
    audit->any = true;
}

void audit_start(struct audit *audit, const struct audit_head *head, bool whole)
{
    db_audit_row *row = &audit->row;
    memset(row, 0, sizeof *row);
    audit->head = *head;
    audit->ledger_sum = audit->restocked = 0;
    audit->any = audit->has_previous = false;
    audit_chain_start(&audit->chain, whole);
    audit->previous.rows = audit->step.rows = 0;
    audit->first_is_kept = true;
    begin_carried(audit, whole);
    memcpy(row->resource, head->resource, sizeof row->resource);
    memcpy(row->guard, head->guard, sizeof row->guard);
    row->initial = head->initial;
    row->current = head->current;
    row->sold = head->sold;
    row->over_limit = head->over_limit;
    row->former_paid = head->former_paid;
    row->missing = head->missing;
    row->negative = head->current < 0;
    row->broken = head->stray_orders + (head->carried_epoch > head->epoch);
}

/* True for the reset's own row, the first of an epoch. Without it other rows may be missing. */
static bool opens_epoch(const struct audit *audit, const db_ledger_row *row)
{
    char txn_id[DB_KEY_MAX + 1];
    db_reset_txn(&txn_id, audit->head.resource, audit->head.epoch);
    return strcmp(row->txn_id, txn_id) == 0 && row->after == audit->head.initial;
}

/* True if a row of the step before ends with the value that `row` begins with. Steps with too many
 * rows are not checked. */
static bool continues_chain(const struct audit *audit, const db_ledger_row *row)
{
    const struct audit_step *previous = &audit->previous;
    if ((__int128)row->version_before - previous->version_before != 1)
        return false;
    if (previous->rows > AUDIT_FORK_WIDTH_MAX)
        return true;
    for (int64_t i = 0; i < previous->rows; i++)
        if (previous->after[i] == row->before)
            return true;
    return false;
}

static void add_fork(struct audit *audit, const db_ledger_row *row)
{
    db_audit_row *result = &audit->row;
    result->lost_updates++;
    if (audit->first_is_kept && result->n_forks < DB_FORKS_MAX) {
        result->forks[result->n_forks][0] = audit->first;
        result->forks[result->n_forks][1] = *row;
        result->n_forks++;
    }
}

/* A row that was moved continued this version already. */
static bool is_behind_carried(const struct audit *audit, const db_ledger_row *row)
{
    const struct audit_head *head = &audit->head;
    return head->carried_n > 0 && head->carried_epoch == head->epoch &&
           row->version_before < head->carried_version;
}

static void add_link(struct audit *audit, const db_ledger_row *row)
{
    int64_t expected_after;
    struct audit_step *step = &audit->step;
    if (audit->any && row->version_before == step->version_before) {
        add_fork(audit, row);
    } else {
        if (is_behind_carried(audit, row))
            audit->row.lost_updates++;
        audit->has_previous = audit->any;
        audit->previous = *step;
        step->version_before = row->version_before;
        step->rows = 0;
        audit->first = *row;
        audit->first_is_kept = true;
    }
    bool follows = audit->has_previous ? continues_chain(audit, row) : opens_epoch(audit, row);
    if (!follows || __builtin_add_overflow(row->before, row->delta, &expected_after) ||
        expected_after != row->after)
        audit->row.broken++;
    if (step->rows < AUDIT_FORK_WIDTH_MAX)
        step->after[step->rows] = row->after;
    step->rows++;
    audit->any = true;
}

/* Skips rows of older epochs. A row of a later epoch than the resource's own is broken. */
void audit_add(struct audit *audit, const db_ledger_row *row)
{
    audit->row.unchained += !audit_chain_add(&audit->chain, row);
    if (row->epoch < audit->head.epoch)
        return;
    if (row->kind != DB_KIND_RESET) /* the new value minus the one before the epoch */
        audit->ledger_sum += row->delta;
    if (row->kind == DB_KIND_RESTOCK)
        audit->restocked += row->delta;
    if (row->after < 0)
        audit->row.negative = 1;
    if (row->epoch == audit->head.epoch)
        add_link(audit, row);
    else
        audit->row.broken++;
}

static int64_t clamp(__int128 value)
{
    if (value > INT64_MAX)
        return INT64_MAX;
    return value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* The resource's version is one more than the newest version_before in the ledger. After a fork a
 * late writer may have set it back, but never ahead. */
static bool version_fits(const struct audit *audit)
{
    __int128 newest = audit->any ? (__int128)audit->step.version_before + 1 : 0;
    return audit->row.lost_updates ? audit->head.version <= newest
                                   : audit->any && audit->head.version == newest;
}

/* This epoch has no row besides the ones that were moved to the archive. */
static bool rests_on_carried(const struct audit *audit)
{
    return !audit->first_is_kept && audit->step.rows == 1;
}

void audit_finish(struct audit *audit, int64_t duplicates)
{
    db_audit_row *row = &audit->row;
    __int128 lost = (__int128)row->initial + audit->ledger_sum - row->current;
    row->ledger_sum = clamp(audit->ledger_sum);
    row->lost_amount = clamp(lost < 0 ? -lost : lost);
    row->duplicates = duplicates;
    if (!version_fits(audit))
        row->broken++;
    if (rests_on_carried(audit) && audit->step.after[0] != row->current)
        row->broken++;
    if (!audit->head.missing && !audit_chain_ends(&audit->chain, audit->head.chain))
        row->unchained++;
    if (strncmp(row->resource, "item:", 5) == 0) {
        __int128 over = (__int128)row->sold - row->initial - audit->restocked;
        row->restocked = clamp(audit->restocked);
        row->oversold = over > 0 ? clamp(over) : 0;
        if (audit->ledger_sum - audit->restocked + row->sold != 0) /* orders and ledger differ */
            row->broken++;
    }
    row->ok = row->missing == 0 && row->oversold == 0 && row->over_limit == 0 &&
              row->negative == 0 && row->lost_updates == 0 && row->lost_amount == 0 &&
              row->duplicates == 0 && row->broken == 0 && row->unchained == 0;
}
