/*
 * Stores of every schema version that ever was, with the tables as that version made them, and one
 * history. Both engines read these rows.
 *
 * Item 1 has a limit per user and was reset once, item 2 has no limit. Account u1 was reset once.
 * Each kind of ledger row is there, and an order in each state.
 */
#ifndef TESTS_DB_OLD_STORES_H
#define TESTS_DB_OLD_STORES_H

#include <stdio.h>

#define OLD_SQLITE(COUNTED_COLUMN, COUNTED_BY, LEDGER_INDEX)                                       \
    "CREATE TABLE items ( id TEXT PRIMARY KEY, guard TEXT NOT NULL, initial_stock INTEGER"         \
    " NOT NULL, stock INTEGER NOT NULL, price INTEGER NOT NULL, per_user_limit INTEGER NOT"        \
    " NULL, reserve_s INTEGER NOT NULL, fence INTEGER NOT NULL, version INTEGER NOT NULL,"         \
    " last_fence INTEGER NOT NULL, epoch INTEGER NOT NULL) STRICT, WITHOUT ROWID;"                 \
    "CREATE TABLE accounts ( id TEXT PRIMARY KEY, guard TEXT NOT NULL, initial_balance"            \
    " INTEGER NOT NULL, balance INTEGER NOT NULL, fence INTEGER NOT NULL, version INTEGER"         \
    " NOT NULL, last_fence INTEGER NOT NULL, epoch INTEGER NOT NULL) STRICT, WITHOUT ROWID;"       \
    "CREATE TABLE orders ( id TEXT PRIMARY KEY, item_id TEXT NOT NULL, user_id TEXT NOT"           \
    " NULL, quantity INTEGER NOT NULL, amount INTEGER NOT NULL, state INTEGER NOT NULL,"           \
    " version INTEGER NOT NULL, last_fence INTEGER NOT NULL DEFAULT 0, item_epoch INTEGER"         \
    " NOT NULL, created_us INTEGER NOT NULL, expires_us INTEGER NOT NULL" COUNTED_COLUMN           \
    ") STRICT, WITHOUT ROWID;"                                                                     \
    "CREATE INDEX orders_live ON orders(item_id, item_epoch, " COUNTED_BY " WHERE state <= 1;"     \
    "CREATE INDEX orders_unpaid ON orders(expires_us) WHERE state = 0;"                            \
    "CREATE TABLE ledger ( id INTEGER PRIMARY KEY, resource TEXT NOT NULL, epoch INTEGER"          \
    " NOT NULL, version_before INTEGER NOT NULL, txn_id TEXT NOT NULL, delta INTEGER NOT"          \
    " NULL, before INTEGER NOT NULL, after INTEGER NOT NULL, fence INTEGER NOT NULL, guard"        \
    " TEXT NOT NULL, instance TEXT NOT NULL, at_us INTEGER NOT NULL) STRICT;" LEDGER_INDEX         \
    "CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT,"           \
    " 'the ledger is append-only: book a correction instead'); END;"                               \
    "CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT,"         \
    " 'the ledger is append-only: book a correction instead'); END;"                               \
    "CREATE TABLE idempotency ( key TEXT PRIMARY KEY, request TEXT NOT NULL, http_status"          \
    " INTEGER NOT NULL, body TEXT NOT NULL, at_us INTEGER NOT NULL) STRICT;"                       \
    "CREATE TABLE locks ( key TEXT PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT"            \
    " NULL, expires_us INTEGER NOT NULL) STRICT, WITHOUT ROWID;"                                   \
    "CREATE TABLE tasks ( name TEXT PRIMARY KEY, instance TEXT NOT NULL, at_us INTEGER NOT"        \
    " NULL, done INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

#define OLD_POSTGRES(COUNTED_COLUMN, COUNTED_BY)                                                   \
    "CREATE TABLE seckill_schema (version bigint NOT NULL);"                                       \
    "CREATE TABLE items ( id text COLLATE \"C\" PRIMARY KEY, guard text NOT NULL,"                 \
    " initial_stock bigint NOT NULL, stock bigint NOT NULL, price bigint NOT NULL,"                \
    " per_user_limit bigint NOT NULL, reserve_s bigint NOT NULL, fence bigint NOT NULL,"           \
    " version bigint NOT NULL, last_fence bigint NOT NULL, epoch bigint NOT NULL) WITH"            \
    " (fillfactor = 50);"                                                                          \
    "CREATE TABLE accounts ( id text COLLATE \"C\" PRIMARY KEY, guard text NOT NULL,"              \
    " initial_balance bigint NOT NULL, balance bigint NOT NULL, fence bigint NOT NULL,"            \
    " version bigint NOT NULL, last_fence bigint NOT NULL, epoch bigint NOT NULL) WITH"            \
    " (fillfactor = 50);"                                                                          \
    "CREATE TABLE orders ( id text COLLATE \"C\" PRIMARY KEY, item_id text COLLATE \"C\""          \
    " NOT NULL, user_id text COLLATE \"C\" NOT NULL, quantity bigint NOT NULL, amount"             \
    " bigint NOT NULL, state bigint NOT NULL, version bigint NOT NULL, last_fence bigint"          \
    " NOT NULL DEFAULT 0, item_epoch bigint NOT NULL, created_us bigint NOT NULL,"                 \
    " expires_us bigint NOT NULL" COUNTED_COLUMN ");"                                              \
    "CREATE INDEX orders_live ON orders(item_id, item_epoch, " COUNTED_BY                          \
    " INCLUDE (quantity) WHERE state <= 1;"                                                        \
    "CREATE INDEX orders_unpaid ON orders(expires_us) WHERE state = 0;"                            \
    "CREATE TABLE ledger ( id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, resource"           \
    " text COLLATE \"C\" NOT NULL, epoch bigint NOT NULL, version_before bigint NOT NULL,"         \
    " txn_id text COLLATE \"C\" NOT NULL, delta bigint NOT NULL, before bigint NOT NULL,"          \
    " after bigint NOT NULL, fence bigint NOT NULL, guard text NOT NULL, instance text NOT"        \
    " NULL, at_us bigint NOT NULL);"                                                               \
    "CREATE INDEX ledger_chain ON ledger(resource, epoch, version_before, id);"                    \
    "CREATE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"          \
    " EXCEPTION 'the ledger is append-only: book a correction instead'; END $$;"                   \
    "CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger FOR EACH ROW EXECUTE"              \
    " FUNCTION ledger_refuses();"                                                                  \
    "CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger FOR EACH ROW EXECUTE"                \
    " FUNCTION ledger_refuses();"                                                                  \
    "CREATE TRIGGER ledger_keeps_all BEFORE TRUNCATE ON ledger EXECUTE FUNCTION"                   \
    " ledger_refuses();"                                                                           \
    "CREATE TABLE idempotency ( key text COLLATE \"C\" PRIMARY KEY, request text NOT NULL,"        \
    " http_status bigint NOT NULL, body text NOT NULL, at_us bigint NOT NULL);"                    \
    "CREATE TABLE locks ( key text COLLATE \"C\" PRIMARY KEY, owner text NOT NULL, fence"          \
    " bigint NOT NULL, expires_us bigint NOT NULL);"                                               \
    "CREATE TABLE tasks ( name text COLLATE \"C\" PRIMARY KEY, instance text NOT NULL,"            \
    " at_us bigint NOT NULL, done bigint NOT NULL);"

static const char sqlite_1_with_index[] =
    OLD_SQLITE("", "user_id, quantity)",
               "CREATE INDEX ledger_chain ON ledger(resource, epoch, version_before);");
static const char sqlite_1[] = OLD_SQLITE("", "user_id, quantity)", "");
static const char sqlite_2[] =
    OLD_SQLITE(", counted_user TEXT NOT NULL", "counted_user, quantity, state)", "");
static const char postgres_1[] = OLD_POSTGRES("", "user_id)");
static const char postgres_2[] =
    OLD_POSTGRES(", counted_user text COLLATE \"C\" NOT NULL", "counted_user)");

static const char old_rows[] =
    "INSERT INTO items VALUES ('1', 'sql-row', 10, 7, 5, 2, 900, 1, 9, 7, 2);"
    "INSERT INTO items VALUES ('2', '', 3, 2, 5, 0, 900, 0, 2, 0, 1);"
    "INSERT INTO accounts VALUES ('u1', '', 500, 500, 0, 4, 0, 2);"
    "INSERT INTO accounts VALUES ('u2', 'none', 50, 85, 1, 3, 3, 1);"
    "INSERT INTO locks VALUES ('item:1', '', 12, 0);"
    "INSERT INTO tasks VALUES ('close-orders', 'i1', 1500, 1);";

/* In version 1 without the last column. */
struct old_order {
    const char *values, *counted_user;
};
static const struct old_order old_orders[] = {
    {"'o1', '1', 'u1', 1, 5, 0, 1, 0, 1, 1000, 2000", "u1"},
    {"'o2', '1', 'u1', 2, 10, 1, 2, 7, 2, 1000, 2000", "u1"},
    {"'o3', '1', 'u2', 1, 5, 2, 2, 7, 2, 1000, 2000", "u2"},
    {"'o4', '1', 'u2', 1, 5, 3, 2, 7, 2, 1000, 2000", "u2"},
    {"'o5', '1', 'u3', 1, 5, 0, 1, 7, 2, 1000, 2000", "u3"},
    {"'o6', '2', 'u1', 1, 5, 0, 1, 0, 1, 1000, 2000", ""},
};

/* The answers that say what a ledger row was. k4 was pruned, so a cancellation of some order. */
static const char *const old_answers[] = {
    "'k1', 'order item=1 user_id=u1 quantity=1', 201, '{\"order_id\":\"o1\",\"item_id\":\"1\"}', "
    "1000",
    "'k2', 'order item=1 user_id=u1 quantity=2', 201, '{\"order_id\":\"o2\",\"item_id\":\"1\"}', "
    "1001",
    "'k3', 'order item=1 user_id=u2 quantity=1', 201, '{\"order_id\":\"o3\",\"item_id\":\"1\"}', "
    "1002",
    "'k4', '', 201, '', 1003",
    "'k5', 'order item=1 user_id=u2 quantity=1', 201, '{\"order_id\":\"o4\",\"item_id\":\"1\"}', "
    "1004",
    "'k6', 'order item=1 user_id=u3 quantity=1', 201, '{\"order_id\":\"o5\",\"item_id\":\"1\"}', "
    "1005",
    "'k7', 'payment order=o2', 201, '{\"order_id\":\"o2\"}', 1006",
    "'k8', 'transfer from=u1 to=u2 amount=30', 201, '{}', 1007",
    "'k9', 'transaction account=u2 amount=5', 201, '{}', 1008",
    "'k10', 'order item=1 user_id=u2 quantity=9', 409, '{}', 1009",
    "'k11', 'order item=2 user_id=u1 quantity=1', 201, '{\"order_id\":\"o6\",\"item_id\":\"2\"}', "
    "1010",
};

/* What a row of the ledger was, and what it must become. */
struct old_ledger_row {
    const char *resource;
    int epoch, version_before;
    const char *txn_id;
    int delta, before, after;
    /* then: */
    const char *kind, *order_id, *counterpart;
    int delta_now;
};
static const struct old_ledger_row old_ledger[] = {
    {"item:1", 1, 0, "reset\titem:1:1", 0, 100, 100, "reset", "", "", 100},
    {"item:1", 1, 1, "k1", -1, 100, 99, "order", "o1", "", -1},
    {"item:1", 2, 2, "reset\titem:1:2", 0, 10, 10, "reset", "", "", -89},
    {"item:1", 2, 3, "k2", -2, 10, 8, "order", "o2", "", -2},
    {"item:1", 2, 4, "k3", -1, 8, 7, "order", "o3", "", -1},
    {"item:1", 2, 5, "k4", 1, 7, 8, "cancellation", "", "", 1},
    {"item:1", 2, 6, "k5", -1, 8, 7, "order", "o4", "", -1},
    {"item:1", 2, 7, "task\tclose-order:o4", 1, 7, 8, "expiry", "o4", "", 1},
    {"item:1", 2, 8, "k6", -1, 8, 7, "order", "o5", "", -1},
    {"account:u1", 1, 0, "reset\taccount:u1:1", 0, 100, 100, "reset", "", "shop:equity", 100},
    {"account:u2", 1, 0, "reset\taccount:u2:1", 0, 50, 50, "reset", "", "shop:equity", 50},
    {"account:u1", 1, 1, "k7", -10, 100, 90, "payment", "o2", "shop:revenue", -10},
    {"account:u1", 1, 2, "k8", -30, 90, 60, "transfer", "", "account:u2", -30},
    {"account:u2", 1, 1, "k8", 30, 50, 80, "transfer", "", "account:u1", 30},
    {"account:u2", 1, 2, "k9", 5, 80, 85, "change", "", "shop:cash", 5},
    {"account:u1", 2, 3, "reset\taccount:u1:2", 0, 500, 500, "reset", "", "shop:equity", 440},
    {"item:2", 1, 0, "reset\titem:2:1", 0, 3, 3, "reset", "", "", 3},
    {"item:2", 1, 1, "k11", -1, 3, 2, "order", "o6", "", -1},
};
enum { OLD_ROWS = sizeof old_ledger / sizeof *old_ledger, OLD_LEGS = 5 };

/* Fills the tables of a version. run() runs a statement. */
static inline void old_store_fill(int version, void (*run)(void *arg, const char *sql), void *arg)
{
    char sql[1024];
    run(arg, old_rows);
    for (size_t i = 0; i < sizeof old_orders / sizeof *old_orders; i++) {
        const struct old_order *order = &old_orders[i];
        if (version == 1)
            snprintf(sql, sizeof sql, "INSERT INTO orders VALUES (%s)", order->values);
        else
            snprintf(sql, sizeof sql, "INSERT INTO orders VALUES (%s, '%s')", order->values,
                     order->counted_user);
        run(arg, sql);
    }
    for (size_t i = 0; i < sizeof old_answers / sizeof *old_answers; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO idempotency VALUES (%s)", old_answers[i]);
        run(arg, sql);
    }
    for (int i = 0; i < OLD_ROWS; i++) {
        const struct old_ledger_row *row = &old_ledger[i];
        snprintf(
            sql, sizeof sql,
            "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after,"
            " fence, guard, instance, at_us)"
            " VALUES ('%s', %d, %d, '%s', %d, %d, %d, 3, 'sql-row', 'i1', %d)",
            row->resource, row->epoch, row->version_before, row->txn_id, row->delta, row->before,
            row->after, 1000 + i);
        run(arg, sql);
    }
}

#endif
