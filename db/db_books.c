/* The books as a whole: each movement of money has two legs, and paid orders have their payment. */
#include "engine.h"

#include <string.h>

enum { LEGS = 2 };

/* The rows of one transaction. */
struct movement {
    db_ledger_row legs[LEGS];
    int64_t rows; /* more than two are counted, and not kept */
    __int128 sum;
};

struct audit {
    db_books *books;
    struct movement now;
    __int128 total;
};

static bool names(const db_ledger_row *row, const db_ledger_row *other)
{
    return strcmp(row->counterpart, other->resource) == 0;
}

static bool is_balanced(const struct movement *movement)
{
    return movement->rows == LEGS && movement->sum == 0 &&
           names(&movement->legs[0], &movement->legs[1]) &&
           names(&movement->legs[1], &movement->legs[0]);
}

static bool is_of_shop(const db_ledger_row *row)
{
    return strncmp(row->resource, "shop:", 5) == 0;
}

/* The shop's leg follows the other one. Rows of accounts are in the chain of their account, which
 * db_audit() walks along. */
static bool shop_leg_follows(const struct movement *movement)
{
    char hash[DB_HASH_LENGTH + 1];
    for (int i = 0; i < LEGS && i < movement->rows; i++) {
        const db_ledger_row *leg = &movement->legs[i], *other = &movement->legs[1 - i];
        if (!is_of_shop(leg))
            continue;
        db_ledger_hash(leg, movement->rows == LEGS ? other->hash : "", hash);
        if (strcmp(hash, leg->hash) != 0)
            return false;
    }
    return true;
}

static void finish(struct audit *audit)
{
    const struct movement *movement = &audit->now;
    if (movement->rows == 0)
        return;
    audit->books->transactions++;
    audit->books->unbalanced += !is_balanced(movement);
    audit->books->unchained += !shop_leg_follows(movement);
    audit->now.rows = 0;
    audit->now.sum = 0;
}

static int add(void *arg, const db_ledger_row *row)
{
    struct audit *audit = arg;
    if (audit->now.rows > 0 && strcmp(audit->now.legs[0].txn_id, row->txn_id) != 0)
        finish(audit);
    if (audit->now.rows < LEGS)
        audit->now.legs[audit->now.rows] = *row;
    audit->now.rows++;
    audit->now.sum += row->delta;
    audit->total += row->delta;
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
    db_books books = {.ok = false};
    struct audit audit = {.books = &books};
    db_status status = db_read_money(reader, add, &audit, error);
    if (status != DB_OK)
        return status;
    finish(&audit);
    books.total = clamp(audit.total);
    status = reader->engine->read_unpaid(reader, &books.unpaid);
    if (status != DB_OK)
        return db_fail(error, status, "orders and payments: %s", db_status_text(status));
    books.ok =
        books.unbalanced == 0 && books.unchained == 0 && books.total == 0 && books.unpaid == 0;
    *ret = books;
    return DB_OK;
}
