/* The writing half of db.h: checks every argument, then asks the engine. */
#include "engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

db_status db_run(db *store, db_work *work, void *arg, db_error *error)
{
    db_job job = {.work = work, .arg = arg, .error = error};
    db_run_many(store, &job, 1);
    return job.status;
}

static bool is_the_stores_fault(db_status status)
{
    switch (status) {
    case DB_UNAVAILABLE:
    case DB_FULL:
    case DB_READ_ONLY:
    case DB_CROWDED:
    case DB_UNKNOWN:
    case DB_FAILED:
        return true;
    default:
        return false;
    }
}

/* Where a server keeps the disk, it says so when that is full; else it was away. */
static bool may_want_room(const db *store, db_status status)
{
    if (store->engine->settle == NULL)
        return true;
    return status != DB_UNAVAILABLE && status != DB_CROWDED && status != DB_UNKNOWN;
}

void db_run_many(db *store, db_job *jobs, size_t n)
{
    assert(store && n >= 1 && n <= DB_JOBS_MAX);
    store->engine->run(store, jobs, n);
    for (size_t i = 0; i < n; i++) {
        if (!is_the_stores_fault(jobs[i].status))
            continue;
        atomic_fetch_add(&store->failures, 1);
        if (may_want_room(store, jobs[i].status))
            atomic_fetch_add(&store->room_failures, 1);
    }
}

bool db_commits_in_groups(const db *store)
{
    return store->engine->commits_in_groups;
}

bool db_item_ok(const db_item *row)
{
    return db_name_ok(row->id, DB_ID_MAX) && db_text_ok(row->guard, DB_GUARD_MAX) &&
           db_text_ok(row->chain, DB_HASH_LENGTH);
}

bool db_account_ok(const db_account *row)
{
    return db_name_ok(row->id, DB_ID_MAX) && db_text_ok(row->guard, DB_GUARD_MAX) &&
           db_text_ok(row->chain, DB_HASH_LENGTH);
}

bool db_guard_ok(const char *guard)
{
    return guard && db_text_ok(guard, DB_GUARD_MAX);
}

static bool state_ok(db_order_state state)
{
    return (unsigned)state <= DB_REFUNDED;
}

static bool order_ok(const db_order *row)
{
    return db_name_ok(row->id, DB_ID_MAX) && db_name_ok(row->item_id, DB_ID_MAX) &&
           db_name_ok(row->user_id, DB_ID_MAX) && state_ok(row->state) && row->quantity >= 1 &&
           row->item_epoch >= 1;
}

/* A fence alone does not tell whether another one has written since its holder read. */
static bool put_ok(const db_put *how)
{
    return how->fence >= 0 && how->expected_version >= (how->fence > 0 ? 0 : -1);
}

/* -- reading inside the transaction ----------------------------------------------------------- */

db_status db_tx_read_item(db_tx *tx, const char *id, bool for_update, db_item *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? tx->engine->tx_read_row(tx, TABLE_ITEMS, id, for_update, ret)
                                     : DB_NOT_FOUND;
}

db_status db_tx_read_account(db_tx *tx, const char *id, bool for_update, db_account *ret)
{
    return db_name_ok(id, DB_ID_MAX)
               ? tx->engine->tx_read_row(tx, TABLE_ACCOUNTS, id, for_update, ret)
               : DB_NOT_FOUND;
}

db_status db_tx_read_order(db_tx *tx, const char *id, bool for_update, db_order *ret)
{
    return db_name_ok(id, DB_ID_MAX)
               ? tx->engine->tx_read_row(tx, TABLE_ORDERS, id, for_update, ret)
               : DB_NOT_FOUND;
}

db_status db_tx_read_bought(db_tx *tx, const db_item *item, const char *user_id,
                            int64_t *ret_quantity)
{
    if (!db_name_ok(item->id, DB_ID_MAX) || !db_name_ok(user_id, DB_ID_MAX))
        return DB_NOT_FOUND;
    return tx->engine->tx_read_bought(tx, item, user_id, ret_quantity);
}

/* -- absolute values -------------------------------------------------------------------------- */

db_status db_tx_put_item(db_tx *tx, const db_item *row, const db_put *how)
{
    const struct new_value value = {row->id,    row->stock, row->version, row->epoch,
                                    row->chain, row->guard, row->fence};
    return db_item_ok(row) && put_ok(how) ? tx->engine->tx_put(tx, TABLE_ITEMS, &value, how)
                                          : DB_INVALID;
}

db_status db_tx_put_account(db_tx *tx, const db_account *row, const db_put *how)
{
    const struct new_value value = {row->id,    row->balance, row->version, row->epoch,
                                    row->chain, row->guard,   row->fence};
    return db_account_ok(row) && put_ok(how) ? tx->engine->tx_put(tx, TABLE_ACCOUNTS, &value, how)
                                             : DB_INVALID;
}

db_status db_tx_put_order(db_tx *tx, const db_order *row, const db_put *how)
{
    const struct new_value value = {
        .id = row->id, .value = row->state, .version = row->version, .epoch = row->item_epoch};
    if (!db_name_ok(row->id, DB_ID_MAX) || !state_ok(row->state) || !put_ok(how) ||
        !(how->former_sale || db_guard_ok(how->item_guard)))
        return DB_INVALID;
    db_status status =
        how->former_sale ? DB_OK
                         : tx->engine->tx_hold_epoch(tx, row->id, row->item_epoch, how->item_guard);
    return status == DB_OK ? tx->engine->tx_put(tx, TABLE_ORDERS, &value, how) : status;
}

/* -- conditional changes ---------------------------------------------------------------------- */

/* Neither below zero nor beyond 64 bits. */
static db_status add(db_tx *tx, enum db_table table, const char *id, const char *guard,
                     int64_t epoch, int64_t delta, struct added *ret)
{
    if (delta == INT64_MIN) /* no value is large enough */
        return DB_REFUSED;
    const struct addition what = {.id = id,
                                  .guard = guard,
                                  .epoch = epoch,
                                  .delta = delta,
                                  .least = -delta,
                                  .most = delta > 0 ? INT64_MAX - delta : INT64_MAX};
    return tx->engine->tx_add(tx, table, &what, ret);
}

db_status db_tx_add_item(db_tx *tx, db_item *row, int64_t delta)
{
    struct added now;
    db_status status = db_item_ok(row)
                           ? add(tx, TABLE_ITEMS, row->id, row->guard, row->epoch, delta, &now)
                           : DB_INVALID;
    if (status == DB_OK) {
        row->stock = now.value;
        row->version = now.version;
        memcpy(row->chain, now.chain, sizeof row->chain);
    }
    return status;
}

db_status db_tx_add_account(db_tx *tx, db_account *row, int64_t delta)
{
    struct added now;
    db_status status = db_account_ok(row)
                           ? add(tx, TABLE_ACCOUNTS, row->id, row->guard, row->epoch, delta, &now)
                           : DB_INVALID;
    if (status == DB_OK) {
        row->balance = now.value;
        row->version = now.version;
        memcpy(row->chain, now.chain, sizeof row->chain);
    }
    return status;
}

db_status db_tx_chain_item(db_tx *tx, const db_item *row)
{
    return db_item_ok(row) ? tx->engine->tx_chain(tx, TABLE_ITEMS, row->id, row->chain)
                           : DB_INVALID;
}

db_status db_tx_chain_account(db_tx *tx, const db_account *row)
{
    return db_account_ok(row) ? tx->engine->tx_chain(tx, TABLE_ACCOUNTS, row->id, row->chain)
                              : DB_INVALID;
}

db_status db_tx_move_order(db_tx *tx, db_order *row, const char *item_guard, db_order_state from,
                           db_order_state to)
{
    if (!db_name_ok(row->id, DB_ID_MAX) || !state_ok(from) || !state_ok(to) ||
        !db_guard_ok(item_guard))
        return DB_INVALID;
    db_status status = tx->engine->tx_hold_epoch(tx, row->id, row->item_epoch, item_guard);
    if (status == DB_OK)
        status = tx->engine->tx_move_order(tx, row, from, to, &row->version);
    if (status == DB_OK)
        row->state = to;
    return status;
}

/* -- new rows --------------------------------------------------------------------------------- */

static db_status insert(db_tx *tx, enum db_table table, const void *row, db_status when_taken)
{
    db_status status = tx->engine->tx_insert(tx, table, row);
    return status == DB_REFUSED ? when_taken : status;
}

db_status db_tx_insert_order(db_tx *tx, const db_order *row)
{
    return order_ok(row) ? insert(tx, TABLE_ORDERS, row, DB_INVALID) : DB_INVALID;
}

int64_t db_tx_now_us(const db_tx *tx)
{
    return tx->engine->tx_now_us(tx);
}

/* Each text of the row ends within its array, and has one line. */
static bool texts_ok(const db_ledger_row *row)
{
    const struct {
        const char *text;
        size_t max;
    } texts[] = {{row->resource, DB_RESOURCE_MAX},    {row->txn_id, DB_KEY_MAX},
                 {row->guard, DB_GUARD_MAX},          {row->instance, DB_INSTANCE_MAX},
                 {row->order_id, DB_ID_MAX},          {row->reason, DB_REASON_MAX},
                 {row->counterpart, DB_RESOURCE_MAX}, {row->hash, DB_HASH_LENGTH},
                 {row->reference, DB_REFERENCE_MAX}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!db_text_ok(texts[i].text, texts[i].max) || strchr(texts[i].text, '\n'))
            return false;
    return row->resource[0] != '\0' && row->txn_id[0] != '\0';
}

db_status db_tx_append_ledger(db_tx *tx, const db_ledger_row *row)
{
    int64_t after;
    if (!texts_ok(row) || (unsigned)row->kind >= DB_KINDS || row->fence < 0 ||
        __builtin_add_overflow(row->before, row->delta, &after) || after != row->after)
        return DB_INVALID;
    return tx->engine->tx_insert(tx, TABLE_LEDGER, row);
}

db_status db_tx_insert_answer(db_tx *tx, const db_answer *row)
{
    if (!db_name_ok(row->key, DB_KEY_MAX) || !db_text_ok(row->request, DB_REQUEST_MAX) ||
        !db_text_ok(row->body, DB_BODY_MAX))
        return DB_INVALID;
    return insert(tx, TABLE_ANSWERS, row, DB_DUPLICATE);
}

/* -- tasks ------------------------------------------------------------------------------------ */

db_status db_tx_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                         int64_t done)
{
    if (!db_name_ok(name, DB_ID_MAX) || !db_text_ok(instance, DB_INSTANCE_MAX))
        return DB_INVALID;
    return tx->engine->tx_put_task(tx, name, instance, at_us, done);
}

/* -- fences ----------------------------------------------------------------------------------- */

struct next_fence {
    const char *resource;
    int64_t seen, fence;
};

static db_status take_next_fence(db_tx *tx, void *arg)
{
    struct next_fence *next = arg;
    return tx->engine->tx_next_fence(tx, next->resource, next->seen, &next->fence);
}

db_status db_next_fence(db *store, const char *resource, int64_t seen, int64_t *ret,
                        db_error *error)
{
    struct next_fence next = {.resource = resource, .seen = seen};
    if (!db_name_ok(resource, DB_RESOURCE_MAX) || seen < 0 || seen == INT64_MAX)
        return db_fail(error, DB_INVALID, "no fence is above %" PRId64 " for \"%.*s\"", seen,
                       DB_RESOURCE_MAX, resource);
    db_status status = db_run(store, take_next_fence, &next, error);
    if (status == DB_OK)
        *ret = next.fence;
    return status;
}
