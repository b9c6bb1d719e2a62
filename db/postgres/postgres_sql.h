/* Every statement of the PostgreSQL engine; each connection prepares them all when it opens.
 * X(name, types, sql); types of the arguments: t text, i bigint, T and I arrays of them. */
#ifndef DB_POSTGRES_SQL_H
#define DB_POSTGRES_SQL_H

#include "audit_sql.h"

#define ITEM_COLUMNS                                                                               \
    "id, guard, initial_stock, stock, price, per_user_limit, reserve_s, fence, version, "          \
    "last_fence, epoch"
#define ACCOUNT_COLUMNS "id, guard, initial_balance, balance, fence, version, last_fence, epoch"
#define ORDER_COLUMNS   NEW_ORDER_COLUMNS ", last_fence"
#define NEW_ORDER_COLUMNS                                                                          \
    "id, item_id, user_id, quantity, amount, state, version, item_epoch, created_us, expires_us, " \
    "counted_user"
#define ANSWER_COLUMNS "key, request, http_status, body, at_us"
#define LEDGER_COLUMNS                                                                             \
    "resource, txn_id, delta, before, after, version_before, fence, epoch, guard, instance, at_us"

/* One statement stores a value and tests epoch, fence and version, or changes nothing. It waits for
 * the row's lock and then tests the row as it stands by then: at "read committed" by itself, above
 * it by failing (40001) and being run again.
 * $1 id, $2 value, $3 version, $4 epoch (orders: of the item), $5 fence (0: none), $6 expected
 * version (-1: any) */
#define PUT_HOLDS "($6 = -1 OR version = $6) AND ($5 = 0 OR last_fence <= $5)"
#define PUT_WHERE " WHERE id = $1 AND epoch = $4 AND " PUT_HOLDS
/* The epoch of an order's item is held from here to the end of the transaction (13.3.2 Row-Level
 * Locks): the key lock (HOLD_EPOCH) excludes a reset only. RESET_ITEM names id among its columns,
 * and so locks the row as for a new key; LOCK_ITEM and the UPDATEs of a sale do not, so no sale and
 * no payment of one item wait for each other. */
#define INT64_LARGEST "9223372036854775807"

#define POSTGRES_SQL_MAP(X)                                                                        \
    X(BEGIN_WRITE, "", "BEGIN READ WRITE")                                                         \
    X(BEGIN_READ, "", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")                           \
    X(TAKE_LONGER, "", "SET LOCAL statement_timeout = 60000") /* PG_AUDIT_ANSWER_MS */             \
    X(COMMIT, "", "COMMIT")                                                                        \
    X(END_READ, "", "COMMIT")                                                                      \
    X(ROLLBACK, "", "ROLLBACK")                                                                    \
    X(TRANSACTION, "", "SELECT coalesce(pg_current_xact_id_if_assigned()::text::bigint, 0)")       \
    X(IS_UNDECIDED, "i", /* 0: committed, aborted, or so old that it must be one of them */        \
      "SELECT coalesce(pg_xact_status($1::text::xid8) = 'in progress', false)::int::bigint")       \
    X(END_TRANSACTION, "i",                                                                        \
      "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity"             \
      " WHERE backend_xid = $1::text::xid8::xid AND pid <> pg_backend_pid()")                      \
    X(PING, "", "SELECT 1 FROM seckill_schema")                                                    \
    X(READ_ITEM, "t", "SELECT " ITEM_COLUMNS " FROM items WHERE id = $1")                          \
    X(LOCK_ITEM, "t", "SELECT " ITEM_COLUMNS " FROM items WHERE id = $1 FOR NO KEY UPDATE")        \
    X(READ_ACCOUNT, "t", "SELECT " ACCOUNT_COLUMNS " FROM accounts WHERE id = $1")                 \
    X(LOCK_ACCOUNT, "t", "SELECT " ACCOUNT_COLUMNS " FROM accounts WHERE id = $1 FOR UPDATE")      \
    X(READ_ORDER, "t", "SELECT " ORDER_COLUMNS " FROM orders WHERE id = $1")                       \
    X(LOCK_ORDER, "t", "SELECT " ORDER_COLUMNS " FROM orders WHERE id = $1 FOR UPDATE")            \
    X(READ_ANSWER, "t", "SELECT " ANSWER_COLUMNS " FROM idempotency WHERE key = $1")               \
    X(FIND_ANSWER, "t", "SELECT 1::bigint FROM idempotency WHERE key = $1")                        \
    X(FIND_ANSWERS, "T", /* no join: its plan would depend on how full the table was at first */   \
      "SELECT n FROM unnest($1) WITH ORDINALITY AS asked (k, n)"                                   \
      " WHERE (SELECT true FROM idempotency WHERE key = k)")                                       \
    X(READ_BOUGHT, "tit",                                                                          \
      "SELECT coalesce(sum(quantity), 0)::bigint FROM orders"                                      \
      " WHERE item_id = $1 AND item_epoch = $2 AND counted_user = $3 AND state <= 1")              \
    X(READ_BOUGHT_OF_MANY, "TIT",                                                                  \
      "SELECT (SELECT coalesce(sum(quantity), 0)::bigint FROM orders"                              \
      " WHERE item_id = i AND item_epoch = e AND counted_user = u AND state <= 1)"                 \
      " FROM unnest($1, $2, $3) WITH ORDINALITY AS asked (i, e, u, n) ORDER BY n")                 \
    X(READ_SOLD, "ti",                                                                             \
      "SELECT coalesce(sum(quantity), 0)::bigint FROM orders"                                      \
      " WHERE item_id = $1 AND item_epoch = $2 AND state <= 1")                                    \
    X(READ_EXPIRED, "iiti",                                                                        \
      "SELECT expires_us, id, item_id FROM orders WHERE state = 0 AND expires_us <= $1"            \
      " AND (expires_us, id) > ($2, $3) ORDER BY expires_us, id LIMIT $4")                         \
    X(AUDIT_HEADS, "t", "DECLARE heads NO SCROLL CURSOR FOR " AUDIT_HEADS_SQL)                     \
    X(AUDIT_ROWS, "ti", "DECLARE rows NO SCROLL CURSOR FOR " AUDIT_ROWS_SQL)                       \
    X(AUDIT_REPEATS, "ti", "DECLARE repeats NO SCROLL CURSOR FOR " AUDIT_REPEATS_SQL)              \
    X(LEDGER_PAGE, "ii", AUDIT_PAGE_SQL)                                                           \
    X(LEDGER_END, "", AUDIT_END_SQL)                                                               \
    X(FETCH_HEADS, "", "FETCH 1000 FROM heads")                                                    \
    X(FETCH_ROWS, "", "FETCH 1000 FROM rows")                                                      \
    X(FETCH_REPEATS, "", "FETCH 1000 FROM repeats")                                                \
    X(CLOSE_LISTS, "", "CLOSE ALL")                                                                \
    X(PUT_ITEM, "tiiiii",                                                                          \
      "UPDATE items SET stock = $2, version = $3, last_fence = greatest(last_fence, "              \
      "$5)" PUT_WHERE)                                                                             \
    X(PUT_ACCOUNT, "tiiiii",                                                                       \
      "UPDATE accounts SET balance = $2, version = $3,"                                            \
      " last_fence = greatest(last_fence, $5)" PUT_WHERE)                                          \
    X(PUT_ORDER, "tiiiii",                                                                         \
      "UPDATE orders SET state = $2, version = $3, last_fence = greatest(last_fence, $5)"          \
      " WHERE id = $1 AND item_epoch = $4 AND " PUT_HOLDS)                                         \
    X(HOLD_EPOCH, "ti",                                                                            \
      "SELECT 1 FROM items WHERE id = (SELECT item_id FROM orders WHERE orders.id = $1)"           \
      " AND epoch = $2 FOR KEY SHARE")                                                             \
    X(WHY_ITEM, "t", "SELECT epoch, last_fence FROM items WHERE id = $1")                          \
    X(WHY_ACCOUNT, "t", "SELECT epoch, last_fence FROM accounts WHERE id = $1")                    \
    X(WHY_ORDER, "t", "SELECT item_epoch, last_fence FROM orders WHERE id = $1")                   \
    X(ADD_ITEM, "tiiii", /* $4 and $5: smallest and largest value that $2 can be added to */       \
      "UPDATE items SET stock = stock + $2, version = version + 1"                                 \
      " WHERE id = $1 AND epoch = $3 AND stock BETWEEN $4 AND $5 AND version < " INT64_LARGEST     \
      " RETURNING stock, version")                                                                 \
    X(ADD_ACCOUNT, "tiiii",                                                                        \
      "UPDATE accounts SET balance = balance + $2, version = version + 1"                          \
      " WHERE id = $1 AND epoch = $3 AND balance BETWEEN $4 AND $5 AND version < " INT64_LARGEST   \
      " RETURNING balance, version")                                                               \
    X(MOVE_ORDER, "tii",                                                                           \
      "UPDATE orders SET state = $3, version = version + 1 WHERE id = $1 AND state = $2"           \
      " RETURNING state, version")                                                                 \
    X(INSERT_ORDER, "tttiiiiiiit",                                                                 \
      "INSERT INTO orders (" NEW_ORDER_COLUMNS ")"                                                 \
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING")             \
    X(INSERT_ORDERS, "TTTIIIIIIIT",                                                                \
      "INSERT INTO orders (" NEW_ORDER_COLUMNS ")"                                                 \
      " SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)")                       \
    X(APPEND_LEDGER, "ttiiiiiitti",                                                                \
      "INSERT INTO ledger (" LEDGER_COLUMNS ")"                                                    \
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)")                                    \
    X(APPEND_LEDGERS, "TTIIIIIITTI",                                                               \
      "INSERT INTO ledger (" LEDGER_COLUMNS ")"                                                    \
      " SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)")                       \
    X(INSERT_ANSWER, "ttiti",                                                                      \
      "INSERT INTO idempotency (" ANSWER_COLUMNS ") VALUES ($1, $2, $3, $4, $5)"                   \
      " ON CONFLICT DO NOTHING")                                                                   \
    X(INSERT_ANSWERS, "TTITI",                                                                     \
      "INSERT INTO idempotency (" ANSWER_COLUMNS ") SELECT * FROM unnest($1, $2, $3, $4, $5)")     \
    X(RESET_ITEM, "ttiiiii",                                                                       \
      "INSERT INTO items AS old (" ITEM_COLUMNS ")"                                                \
      " VALUES ($1, $2, $3, $3, $4, $5, $6, $7, 1, 0, 1)"                                          \
      " ON CONFLICT (id) DO UPDATE SET id = $1, guard = $2, initial_stock = $3, stock = $3,"       \
      " price = $4, per_user_limit = $5, reserve_s = $6, fence = $7, version = old.version + 1,"   \
      " last_fence = 0, epoch = old.epoch + 1 RETURNING version, epoch")                           \
    X(RESET_ACCOUNT, "ttii",                                                                       \
      "INSERT INTO accounts AS old (" ACCOUNT_COLUMNS ") VALUES ($1, $2, $3, $3, $4, 1, 0, 1)"     \
      " ON CONFLICT (id) DO UPDATE SET guard = $2, initial_balance = $3, balance = $3,"            \
      " fence = $4, version = old.version + 1, last_fence = 0, epoch = old.epoch + 1"              \
      " RETURNING version, epoch")                                                                 \
    X(PUT_TASK, "ttii",                                                                            \
      "INSERT INTO tasks (name, instance, at_us, done) VALUES ($1, $2, $3, $4)"                    \
      " ON CONFLICT (name) DO UPDATE SET instance = $2, at_us = $3, done = $4")                    \
    X(NEXT_FENCE, "ti",                                                                            \
      "INSERT INTO locks AS old (key, owner, fence, expires_us) VALUES ($1, '', $2 + 1, 0)"        \
      " ON CONFLICT (key) DO UPDATE SET fence = greatest(old.fence, $2) + 1 RETURNING fence")

enum postgres_sql {
#define POSTGRES_SQL_ENUM(name, types, text) SQL_##name,
    POSTGRES_SQL_MAP(POSTGRES_SQL_ENUM)
#undef POSTGRES_SQL_ENUM
        SQL_COUNT
};

#endif
