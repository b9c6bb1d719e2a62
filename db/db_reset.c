/* Beginning a row anew, and changing its terms: each writes a ledger row of its own. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

/* -- resets ----------------------------------------------------------------------------------- */

/* What a reset or a setting did to a row. */
struct reset {
    enum db_table table;
    const char *kind, *id; /* "item", "1" */
    int64_t old, now, version, epoch;
    char *chain; /* of the row */
    const char *guard, *instance;
};

/* The difference between the old value and the new one. */
static db_status reset_row(const db_tx *tx, const struct reset *reset, db_ledger_row *ret)
{
    *ret = (db_ledger_row){.kind = DB_KIND_RESET,
                           .before = reset->old,
                           .after = reset->now,
                           .version_before = reset->version - 1,
                           .epoch = reset->epoch,
                           .at_us = db_tx_now_us(tx)};
    snprintf(ret->resource, sizeof ret->resource, "%s:%s", reset->kind, reset->id);
    snprintf(ret->guard, sizeof ret->guard, "%s", reset->guard);
    snprintf(ret->instance, sizeof ret->instance, "%s", reset->instance);
    db_reset_txn(&ret->txn_id, ret->resource, reset->epoch);
    if (reset->table == TABLE_ACCOUNTS)
        snprintf(ret->counterpart, sizeof ret->counterpart, "%s", DB_SHOP_EQUITY);
    bool fits = !__builtin_sub_overflow(reset->now, reset->old, &ret->delta);
    return fits && ret->delta != INT64_MIN ? DB_OK : DB_INVALID;
}

/* The chain goes on: the reset's row follows the last one of the former epoch. */
static db_status book_reset(db_tx *tx, const struct reset *reset)
{
    db_ledger_row row, leg;
    db_status status = reset_row(tx, reset, &row);
    if (status != DB_OK)
        return status;
    db_ledger_seal(&row, reset->chain);
    status = tx->engine->tx_chain(tx, reset->table, reset->id, reset->chain);
    if (status == DB_OK)
        status = tx->engine->tx_insert(tx, TABLE_LEDGER, &row);
    if (status != DB_OK || row.counterpart[0] == '\0')
        return status;
    db_ledger_shop_leg(&row, &leg);
    return tx->engine->tx_insert(tx, TABLE_LEDGER, &leg);
}

/* A reset starts at its initial value: another current value beside it is the caller's mistake. */
db_status db_tx_reset_item(db_tx *tx, db_item *row, const char *guard, const char *instance)
{
    if (!db_item_ok(row) || !db_text_ok(guard, DB_GUARD_MAX) ||
        !db_text_ok(instance, DB_INSTANCE_MAX) ||
        (row->stock != 0 && row->stock != row->initial_stock))
        return DB_INVALID;
    db_item fresh = *row, old = {.stock = 0}, now = fresh;
    fresh.stock = row->initial_stock;
    fresh.version = fresh.epoch = 1;
    fresh.last_fence = 0;
    fresh.chain[0] = '\0';
    db_status status = tx->engine->tx_reset(tx, TABLE_ITEMS, &fresh, &old, &now);
    if (status == DB_OK && strcmp(old.guard, now.guard) != 0)
        status = tx->engine->tx_clear_fences(tx, now.id);
    const struct reset reset = {TABLE_ITEMS, "item",    now.id,    old.stock, now.stock,
                                now.version, now.epoch, now.chain, guard,     instance};
    if (status == DB_OK)
        status = book_reset(tx, &reset);
    if (status == DB_OK)
        *row = now;
    return status;
}

db_status db_tx_reset_account(db_tx *tx, db_account *row, const char *guard, const char *instance)
{
    if (!db_account_ok(row) || !db_text_ok(guard, DB_GUARD_MAX) ||
        !db_text_ok(instance, DB_INSTANCE_MAX) ||
        (row->balance != 0 && row->balance != row->initial_balance))
        return DB_INVALID;
    db_account fresh = *row, old = {.balance = 0}, now = fresh;
    fresh.balance = row->initial_balance;
    fresh.version = fresh.epoch = 1;
    fresh.last_fence = 0;
    fresh.chain[0] = '\0';
    db_status status = tx->engine->tx_reset(tx, TABLE_ACCOUNTS, &fresh, &old, &now);
    const struct reset reset = {TABLE_ACCOUNTS, "account", now.id,    old.balance, now.balance,
                                now.version,    now.epoch, now.chain, guard,       instance};
    if (status == DB_OK)
        status = book_reset(tx, &reset);
    if (status == DB_OK)
        *row = now;
    return status;
}

/* -- settings --------------------------------------------------------------------------------- */

db_status db_tx_hold_item(db_tx *tx, const char *id, db_item *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? tx->engine->tx_hold_item(tx, id, ret) : DB_NOT_FOUND;
}

/* The row of the change, sealed: delta 0. */
static db_ledger_row setting_row(const db_tx *tx, const struct reset *of, const db_setting *setting)
{
    db_ledger_row ret = {.kind = DB_KIND_SETTING,
                         .before = of->now,
                         .after = of->now,
                         .version_before = of->version,
                         .epoch = of->epoch,
                         .at_us = db_tx_now_us(tx)};
    snprintf(ret.resource, sizeof ret.resource, "%s:%s", of->kind, of->id);
    snprintf(ret.txn_id, sizeof ret.txn_id, "%s", setting->txn_id);
    snprintf(ret.guard, sizeof ret.guard, "%s", setting->guard_name);
    snprintf(ret.instance, sizeof ret.instance, "%s", setting->instance);
    db_ledger_seal(&ret, of->chain);
    return ret;
}

static bool setting_ok(const db_setting *setting, int64_t version)
{
    return db_guard_ok(setting->former_guard) && db_guard_ok(setting->guard_name) &&
           db_text_ok(setting->instance, DB_INSTANCE_MAX) &&
           db_name_ok(setting->txn_id, DB_KEY_MAX) && version < INT64_MAX;
}

/* Orders of its users hold the item's row, so what they have bought stays as it is read. */
static db_status limit_allows(db_tx *tx, const db_item *row, db_setting *setting)
{
    if (!setting->limit_falls)
        return DB_OK;
    db_status status = tx->engine->tx_most_bought(tx, row, &setting->bought);
    return status == DB_OK && setting->bought > row->per_user_limit ? DB_REFUSED : status;
}

db_status db_tx_set_item(db_tx *tx, db_item *row, db_setting *setting)
{
    if (!db_item_ok(row) || !setting_ok(setting, row->version))
        return DB_INVALID;
    db_status status = limit_allows(tx, row, setting);
    if (status != DB_OK)
        return status;
    db_item now = *row;
    const struct reset of = {.kind = "item",
                             .id = now.id,
                             .now = now.stock,
                             .version = now.version,
                             .epoch = now.epoch,
                             .chain = now.chain};
    const db_ledger_row ledger = setting_row(tx, &of, setting);
    now.version++;
    if (strcmp(now.guard, setting->former_guard) != 0) {
        now.last_fence = 0;
        status = tx->engine->tx_clear_fences(tx, now.id);
    }
    if (status == DB_OK)
        status = tx->engine->tx_set_item(tx, &now);
    if (status == DB_OK)
        status = tx->engine->tx_insert(tx, TABLE_LEDGER, &ledger);
    if (status == DB_OK)
        *row = now;
    return status;
}

db_status db_tx_set_account(db_tx *tx, db_account *row, const db_setting *setting)
{
    if (!db_account_ok(row) || !setting_ok(setting, row->version))
        return DB_INVALID;
    db_account now = *row;
    const struct reset of = {.kind = "account",
                             .id = now.id,
                             .now = now.balance,
                             .version = now.version,
                             .epoch = now.epoch,
                             .chain = now.chain};
    const db_ledger_row ledger = setting_row(tx, &of, setting);
    now.version++;
    if (strcmp(now.guard, setting->former_guard) != 0)
        now.last_fence = 0;
    db_status status = tx->engine->tx_set_account(tx, &now);
    if (status == DB_OK)
        status = tx->engine->tx_insert(tx, TABLE_LEDGER, &ledger);
    if (status == DB_OK)
        *row = now;
    return status;
}
