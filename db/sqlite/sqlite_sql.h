/* Every statement of the SQLite engine. They are prepared when a connection opens.
 * X(use, name, sql); use: WRITE (the writer only), READ (readers only), BOTH. Lists of columns come
 * from columns.h. */
#ifndef DB_SQLITE_SQL_H
#define DB_SQLITE_SQL_H

#include "audit_sql.h"
#include "schema.h"

/* One statement stores a value and tests epoch, fence and version, or changes nothing.
 * ?1 id, ?2 value, ?3 version, ?4 epoch (orders: of the item), ?5 fence (0: none), ?6 expected
 * version (-1: any); not of orders: ?7 chain, ?8 guard and ?9 fence flag that it was read under */
#define PUT_HOLDS "(?6 = -1 OR version = ?6) AND (?5 = 0 OR last_fence <= ?5)"
#define PUT_WHERE " WHERE id = ?1 AND epoch = ?4 AND guard = ?8 AND fence = ?9 AND " PUT_HOLDS
/* ?2 delta, ?3 epoch, ?6 guard, ?4 and ?5: smallest and largest value that the delta can be added
 * to; SQLite would turn an overflow into a floating point number. */
#define ADD_LIMIT "9223372036854775807"

#define BITE     "64"   /* DB_BITE */
#define REFUSALS "4096" /* DB_REFUSALS_MAX */

#define SQLITE_SQL_MAP(X)                                                                          \
    X(WRITE, BEGIN_WRITE, "BEGIN IMMEDIATE")                                                       \
    X(READ, BEGIN_READ, "BEGIN")                                                                   \
    X(BOTH, COMMIT, "COMMIT")                                                                      \
    X(BOTH, ROLLBACK, "ROLLBACK")                                                                  \
    X(WRITE, SAVEPOINT, "SAVEPOINT run")                                                           \
    X(WRITE, RELEASE, "RELEASE run")                                                               \
    X(WRITE, UNDO, "ROLLBACK TO run")                                                              \
    X(READ, PING, "SELECT 1 FROM sqlite_schema LIMIT 1")                                           \
    X(BOTH, READ_ITEM, "SELECT " ITEM_COLUMNS " FROM items WHERE id = ?1")                         \
    X(BOTH, READ_ACCOUNT, "SELECT " ACCOUNT_COLUMNS " FROM accounts WHERE id = ?1")                \
    X(BOTH, READ_ORDER, "SELECT " ORDER_COLUMNS " FROM orders WHERE id = ?1")                      \
    X(READ, READ_ANSWER, "SELECT " ANSWER_COLUMNS " FROM idempotency WHERE key = ?1")              \
    X(BOTH, READ_BOUGHT,                                                                           \
      "SELECT coalesce(sum(quantity), 0) FROM orders"                                              \
      " WHERE item_id = ?1 AND item_epoch = ?2 AND counted_user = ?3 AND state <= 1")              \
    X(READ, READ_SOLD,                                                                             \
      "SELECT coalesce(sum(quantity), 0) FROM orders"                                              \
      " WHERE item_id = ?1 AND item_epoch = ?2 AND state <= 1")                                    \
    X(READ, READ_EXPIRED,                                                                          \
      "SELECT " EXPIRED_COLUMNS " FROM orders WHERE state = 0 AND expires_us <= ?1"                \
      " AND (expires_us, id) > (?2, ?3) ORDER BY expires_us, id LIMIT ?4")                         \
    X(READ, READ_BITE,                                                                             \
      "SELECT count(*), coalesce(sum(old), 0), coalesce(max(key), '') FROM (SELECT key,"           \
      " CASE WHEN at_us < ?2 AND body <> '' THEN 1 ELSE 0 END AS old FROM idempotency"             \
      " WHERE key > ?1 ORDER BY key LIMIT " BITE ") AS keys")                                      \
    X(READ, READ_REFUSALS,                                                                         \
      "WITH kept AS MATERIALIZED (SELECT coalesce((SELECT at_us FROM idempotency"                  \
      " WHERE http_status >= 400 ORDER BY at_us DESC LIMIT 1 OFFSET ?1 - 1), 0) AS edge"           \
      " FROM sqlite_schema WHERE name = '" SCHEMA_REFUSALS "')"                                    \
      " SELECT (SELECT count(*) FROM (SELECT 1 FROM idempotency WHERE http_status >= 400"          \
      " AND at_us < edge ORDER BY at_us LIMIT " REFUSALS ") AS older), edge FROM kept")            \
    X(READ, AUDIT_HEADS, AUDIT_HEADS_SQL)                                                          \
    X(READ, AUDIT_ROWS, AUDIT_ROWS_SQL)                                                            \
    X(READ, AUDIT_REPEATS, AUDIT_REPEATS_SQL)                                                      \
    X(READ, MONEY, AUDIT_MONEY_SQL)                                                                \
    X(READ, UNPAID, AUDIT_UNPAID_SQL)                                                              \
    X(READ, FEED, /* ?1 is the transaction */                                                      \
      "SELECT " LEDGER_COLUMNS " FROM ledger WHERE id > ?2 ORDER BY id LIMIT ?3")                  \
    X(READ, FEED_END, "SELECT coalesce(max(id), 0) FROM ledger")                                   \
    X(READ, STATEMENT,                                                                             \
      "SELECT " LEDGER_COLUMNS " FROM ledger WHERE resource = ?1"                                  \
      " AND (epoch, version_before, id) > (?2, ?3, ?4)"                                            \
      " ORDER BY epoch, version_before, id LIMIT ?5")                                              \
    X(READ, ORDERS_OF_USER,                                                                        \
      "SELECT " ORDER_COLUMNS " FROM orders WHERE user_id = ?1 AND id < ?2"                        \
      " ORDER BY id DESC LIMIT ?3")                                                                \
    X(READ, CARRIED,                                                                               \
      "SELECT " CARRIED_COLUMNS " FROM carried WHERE resource > ?1 ORDER BY resource LIMIT ?2")    \
    X(READ, CARRIED_OF, "SELECT " CARRIED_COLUMNS " FROM carried WHERE resource = ?1")             \
    X(READ, CARRIED_ORDERS,                                                                        \
      "SELECT " CARRIED_ORDER_COLUMNS " FROM carried_orders WHERE order_id > ?1"                   \
      " ORDER BY order_id LIMIT ?2")                                                               \
    X(READ, PARTS, "SELECT " PART_COLUMNS " FROM archives WHERE part > ?1 ORDER BY part LIMIT ?2") \
    X(READ, NEWEST_PART, "SELECT " PART_COLUMNS " FROM archives ORDER BY part DESC LIMIT ?1")      \
    X(WRITE, PUT_CARRIED,                                                                          \
      "INSERT OR REPLACE INTO carried (" CARRIED_COLUMNS ") VALUES (" ARGUMENTS(CARRIED_ROW) ")")  \
    X(WRITE, CARRY_ORDER,                                                                          \
      "INSERT INTO carried_orders (order_id, delta) VALUES (?1, ?2) ON CONFLICT (order_id) DO "    \
      "UPDATE SET delta = delta + ?2")                                                             \
    X(WRITE, DROP_EVEN_ORDER, "DELETE FROM carried_orders WHERE order_id = ?1 AND delta = 0")      \
    X(WRITE, INSERT_PART,                                                                          \
      "INSERT INTO archives (" PART_COLUMNS ") SELECT " ARGUMENTS(                                 \
          PART_ROW) " WHERE ?1 = (SELECT coalesce(max(part), 0) + 1 FROM archives)")               \
    X(WRITE, DELETE_PART, "DELETE FROM ledger WHERE id <= ?1")                                     \
    X(WRITE, PUT_ITEM,                                                                             \
      "UPDATE items SET stock = ?2, version = ?3, last_fence = max(last_fence, ?5),"               \
      " chain = ?7" PUT_WHERE)                                                                     \
    X(WRITE, PUT_ACCOUNT,                                                                          \
      "UPDATE accounts SET balance = ?2, version = ?3, last_fence = max(last_fence, ?5),"          \
      " chain = ?7" PUT_WHERE)                                                                     \
    X(WRITE, CHAIN_ITEM, "UPDATE items SET chain = ?2 WHERE id = ?1")                              \
    X(WRITE, CHAIN_ACCOUNT, "UPDATE accounts SET chain = ?2 WHERE id = ?1")                        \
    X(WRITE, PUT_ORDER,                                                                            \
      "UPDATE orders SET state = ?2, version = ?3, last_fence = max(last_fence, ?5)"               \
      " WHERE id = ?1 AND item_epoch = ?4 AND " PUT_HOLDS)                                         \
    X(WRITE, HOLD_EPOCH,                                                                           \
      "SELECT 1 FROM items WHERE id = (SELECT item_id FROM orders WHERE orders.id = ?1)"           \
      " AND epoch = ?2 AND guard = ?3")                                                            \
    X(WRITE, SET_ITEM,                                                                             \
      "UPDATE items SET guard = ?2, price = ?3, per_user_limit = ?4, reserve_s = ?5, fence = ?6,"  \
      " version = ?7, last_fence = ?8, chain = ?9 WHERE id = ?1")                                  \
    X(WRITE, SET_ACCOUNT,                                                                          \
      "UPDATE accounts SET guard = ?2, fence = ?3, version = ?4, last_fence = ?5, chain = ?6"      \
      " WHERE id = ?1")                                                                            \
    X(WRITE, CLEAR_FENCES,                                                                         \
      "UPDATE orders SET last_fence = 0, version = version + 1"                                    \
      " WHERE item_id = ?1 AND state <= 1 AND last_fence > 0")                                     \
    X(WRITE, MOST_BOUGHT,                                                                          \
      "SELECT coalesce(max(n), 0) FROM (SELECT sum(quantity) AS n FROM orders"                     \
      " WHERE item_id = ?1 AND item_epoch = ?2 AND counted_user <> '' AND state <= 1"              \
      " GROUP BY counted_user)")                                                                   \
    X(WRITE, WHY_ITEM,                                                                             \
      "SELECT CASE WHEN guard = ?2 THEN epoch ELSE 0 END, last_fence"                              \
      " FROM items WHERE id = ?1")                                                                 \
    X(WRITE, WHY_ACCOUNT,                                                                          \
      "SELECT CASE WHEN guard = ?2 THEN epoch ELSE 0 END, last_fence"                              \
      " FROM accounts WHERE id = ?1")                                                              \
    X(WRITE, WHY_ORDER, "SELECT item_epoch, last_fence FROM orders WHERE id = ?1")                 \
    X(WRITE, ADD_ITEM,                                                                             \
      "UPDATE items SET stock = stock + ?2, version = version + 1"                                 \
      " WHERE id = ?1 AND epoch = ?3 AND guard = ?6"                                               \
      " AND stock BETWEEN ?4 AND ?5 AND version < " ADD_LIMIT " RETURNING stock, version, chain")  \
    X(WRITE, ADD_ACCOUNT,                                                                          \
      "UPDATE accounts SET balance = balance + ?2, version = version + 1"                          \
      " WHERE id = ?1 AND epoch = ?3 AND guard = ?6"                                               \
      " AND balance BETWEEN ?4 AND ?5 AND version < " ADD_LIMIT                                    \
      " RETURNING balance, version, chain")                                                        \
    X(WRITE, MOVE_ORDER,                                                                           \
      "UPDATE orders SET state = ?3, version = version + 1 WHERE id = ?1 AND state = ?2"           \
      " RETURNING version")                                                                        \
    X(WRITE, INSERT_ANSWERS,                                                                       \
      "INSERT OR IGNORE INTO idempotency (" ANSWER_COLUMNS ")"                                     \
      " SELECT " ANSWER_COLUMNS " FROM new_answers")                                               \
    X(WRITE, INSERT_ORDERS,                                                                        \
      "INSERT OR IGNORE INTO orders (" ORDER_COLUMNS ")"                                           \
      " SELECT " ORDER_COLUMNS " FROM new_orders")                                                 \
    X(WRITE, APPEND_LEDGER,                                                                        \
      "INSERT OR FAIL INTO ledger (" NEW_LEDGER_COLUMNS ")"                                        \
      " VALUES (" ARGUMENTS(NEW_LEDGER_ROW) ")")                                                   \
    X(WRITE, RESET_ITEM,                                                                           \
      "INSERT INTO items (" ITEM_COLUMNS                                                           \
      ") VALUES (" ARGUMENTS(ITEM_ROW) ")"                                                         \
                                       " ON CONFLICT (id) DO UPDATE SET " RESET_SET(               \
                                           "items", ITEM_GIVEN) " RETURNING " ITEM_COLUMNS)        \
    X(WRITE, RESET_ACCOUNT,                                                                        \
      "INSERT INTO accounts (" ACCOUNT_COLUMNS ") VALUES (" ARGUMENTS(                             \
          ACCOUNT_ROW) ")"                                                                         \
                       " ON CONFLICT (id) DO UPDATE SET " RESET_SET(                               \
                           "accounts", ACCOUNT_GIVEN) " RETURNING " ACCOUNT_COLUMNS)               \
    X(WRITE, PUT_TASK,                                                                             \
      "INSERT INTO tasks (name, instance, at_us, done) VALUES (?1, ?2, ?3, ?4)"                    \
      " ON CONFLICT (name) DO UPDATE SET instance = ?2, at_us = ?3, done = ?4")                    \
    X(WRITE, PRUNE_REFUSALS,                                                                       \
      "DELETE FROM idempotency WHERE key > ?1 AND key <= ?2 AND at_us < ?3"                        \
      " AND http_status >= 400")                                                                   \
    X(WRITE, PRUNE_ANSWERS,                                                                        \
      "UPDATE idempotency SET request = '', body = '' WHERE key > ?1 AND key <= ?2"                \
      " AND at_us < ?3 AND http_status < 400 AND body <> ''")                                      \
    X(WRITE, PRUNE_OLDEST_REFUSALS,                                                                \
      "DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency"                      \
      " WHERE http_status >= 400 AND at_us < ?1 ORDER BY at_us LIMIT " BITE ")")                   \
    X(WRITE, NEXT_FENCE,                                                                           \
      "INSERT INTO fences (key, fence) VALUES (?1, ?2 + 1)"                                        \
      " ON CONFLICT (key) DO UPDATE SET fence = max(fence, ?2) + 1 RETURNING fence")

enum sqlite_sql {
#define SQLITE_SQL_ENUM(use, name, text) SQL_##name,
    SQLITE_SQL_MAP(SQLITE_SQL_ENUM)
#undef SQLITE_SQL_ENUM
        SQL_COUNT
};

#endif
