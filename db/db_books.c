/* The books as a whole: each movement of money has two legs, and paid orders have their payment. */
#include "engine.h"

#include <string.h>

static bool names(const db_ledger_row *row, const db_ledger_row *other)
{
    return strcmp(row->counterpart, other->resource) == 0;
}

static bool is_balanced(const struct db_movement *movement)
{
    return movement->rows == DB_LEGS && movement->sum == 0 &&
           names(&movement->legs[0], &movement->legs[1]) &&
           names(&movement->legs[1], &movement->legs[0]);
}

static bool is_of_shop(const db_ledger_row *row)
{
    return strncmp(row->resource, "shop:", 5) == 0;
}

/* The shop's leg follows the other one. Rows of accounts are in the chain of their account, which
 * db_audit() walks along. */
static bool shop_leg_follows(const struct db_movement *movement)
{
    char hash[DB_HASH_LENGTH + 1];
    for (int i = 0; i < DB_LEGS && i < movement->rows; i++) {
        const db_ledger_row *leg = &movement->legs[i], *other = &movement->legs[1 - i];
        if (!is_of_shop(leg))
            continue;
        db_ledger_hash(leg, movement->rows == DB_LEGS ? other->hash : "", hash);
        if (strcmp(hash, leg->hash) != 0)
            return false;
    }
    return true;
}

void db_legs_finish(struct db_legs *legs)
{
    const struct db_movement *movement = &legs->now;
    if (movement->rows == 0)
        return;
    legs->books.transactions++;
    legs->books.unbalanced += !is_balanced(movement);
    legs->books.unchained += !shop_leg_follows(movement);
    legs->now.rows = 0;
    legs->now.sum = 0;
}

void db_legs_add(struct db_legs *legs, const db_ledger_row *row)
{
    if (legs->now.rows > 0 && strcmp(legs->now.legs[0].txn_id, row->txn_id) != 0)
        db_legs_finish(legs);
    if (legs->now.rows < DB_LEGS)
        legs->now.legs[legs->now.rows] = *row;
    legs->now.rows++;
    legs->now.sum += row->delta;
    legs->total += row->delta;
}

static int add(void *arg, const db_ledger_row *row)
{
    db_legs_add(arg, row);
    return 0;
}

/* Rows that were moved had both their legs, so they sum to zero. */
static int add_carried(void *arg, const db_carried *carried)
{
    struct db_legs *legs = arg;
    if (strncmp(carried->resource, "item:", 5) != 0)
        legs->total += carried->total;
    return 0;
}

static int64_t clamp(__int128 value)
{
    if (value > INT64_MAX)
        return INT64_MAX;
    return value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

db_status db_audit_books(db_reader *reader, db_books *ret, db_error *error)
{
    struct db_legs legs = {.total = 0};
    db_books *books = &legs.books;
    db_status status = db_read_money(reader, add, &legs, error);
    if (status != DB_OK)
        return status;
    db_legs_finish(&legs);
    status = db_read_carried(reader, add_carried, &legs);
    if (status != DB_OK)
        return db_fail(error, status, "what is carried: %s", db_status_text(status));
    books->total = clamp(legs.total);
    status = reader->engine->read_unpaid(reader, &books->unpaid);
    if (status != DB_OK)
        return db_fail(error, status, "orders and payments: %s", db_status_text(status));
    books->ok =
        books->unbalanced == 0 && books->unchained == 0 && books->total == 0 && books->unpaid == 0;
    *ret = *books;
    return DB_OK;
}
