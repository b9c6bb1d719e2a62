/* Every statement of the PostgreSQL engine; each connection prepares them all when it opens.
 * X(name, types, sql); types of the arguments: t text, i bigint, T and I arrays of them. Lists of
 * columns come from columns.h. In their arguments each "?" is the next one. */
#ifndef DB_POSTGRES_SQL_H
#define DB_POSTGRES_SQL_H

#include "audit_sql.h"
#include "schema.h"

/* The types of a row's columns: "ttiiti...". */
#define LETTER_TEXT        "t"
#define LETTER_INT         "i"
#define LETTER_FLAG        "i"
#define LETTER_STATE       "i"
#define LETTER_KIND        "t"
#define LETTER_HTTP        "i"
#define LETTER_COUNTED     "t"
#define LETTER(kind, name) LETTER_##kind
#define TYPES(row)         row(LETTER, LETTER)
/* Arrays of them. */
#define ARRAY_TEXT        "T"
#define ARRAY_INT         "I"
#define ARRAY_FLAG        "I"
#define ARRAY_STATE       "I"
#define ARRAY_KIND        "T"
#define ARRAY_HTTP        "I"
#define ARRAY_COUNTED     "T"
#define ARRAY(kind, name) ARRAY_##kind
#define ARRAYS(row)       row(ARRAY, ARRAY)

/* One statement stores a value and tests epoch, fence and version, or changes nothing. It waits for
 * the row's lock and then tests the newest row. Above "read committed" it fails instead (40001),
 * and the work is run again.
 *
 * $1 id, $2 value, $3 version, $4 epoch (orders: of the item), $5 fence (0: none), $6 expected
 * version (-1: any); not of orders: $7 chain, $8 guard and $9 fence flag that it was read under */
#define PUT_HOLDS "($6 = -1 OR version = $6) AND ($5 = 0 OR last_fence <= $5)"
#define PUT_WHERE " WHERE id = $1 AND epoch = $4 AND guard = $8 AND fence = $9 AND " PUT_HOLDS
/* HOLD_EPOCH keeps epoch and guard of an order's item until the transaction ends. Its key lock
 * (13.3.2 Row-Level Locks) excludes only HOLD_ITEM, which resets and changes of settings begin
 * with, and RESET_ITEM, which sets id. LOCK_ITEM and the UPDATEs of a sale do not, so sales and
 * payments of one item do not wait for each other. */
#define INT64_LARGEST    "9223372036854775807"
#define BACKEND_START_US "(extract(epoch FROM backend_start) * 1000000)::bigint"
#define CLOCK_US         "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

#define BITE     "64"   /* DB_BITE */
#define REFUSALS "4096" /* DB_REFUSALS_MAX */

/* Every transaction below it has ended. Those at it and above may still commit. */
#define FEED_HORIZON "pg_snapshot_xmin(pg_current_snapshot())"

#define POSTGRES_SQL_MAP(X)                                                                        \
    X(BEGIN_WRITE, "", "BEGIN READ WRITE")                                                         \
    X(BEGIN_HOLD, "", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")                           \
    X(BEGIN_READ, "", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")                           \
    X(TAKE_LONGER, "", /* PG_AUDIT_ANSWER_MS; and ends when the client has gone */                 \
      "SELECT set_config('statement_timeout', '60000', true),"                                     \
      " set_config('client_connection_check_interval', '500', true)")                              \
    X(COMMIT, "", "COMMIT")                                                                        \
    X(END_READ, "", "COMMIT")                                                                      \
    X(ROLLBACK, "", "ROLLBACK")                                                                    \
    X(TRANSACTION, "", "SELECT coalesce(pg_current_xact_id_if_assigned()::text::bigint, 0)")       \
    X(IS_UNDECIDED, "i", /* 0: committed, aborted, or so old that it must be one of them */        \
      "SELECT coalesce(pg_xact_status($1::text::xid8) = 'in progress', false)::int::bigint")       \
    X(BACKEND, "",                                                                                 \
      "SELECT pid::bigint, " BACKEND_START_US ", " CLOCK_US                                        \
      " FROM pg_stat_activity WHERE pid = pg_backend_pid()")                                       \
    X(END_TRANSACTION, "iii", /* processes with this number: others; ours, told to end */          \
      "SELECT count(*) FILTER (WHERE NOT ours),"                                                   \
      " count(*) FILTER (WHERE ours AND pg_terminate_backend(pid)) FROM"                           \
      " (SELECT pid, pid = $2 AND " BACKEND_START_US " = $3 AS ours FROM pg_stat_activity"         \
      " WHERE backend_xid = $1::text::xid8::xid AND pid <> pg_backend_pid()) AS running")          \
    X(PING, "", "SELECT 1 FROM seckill_schema")                                                    \
    X(READ_ITEM, "t", "SELECT " ITEM_COLUMNS " FROM items WHERE id = $1")                          \
    X(LOCK_ITEM, "t", "SELECT " ITEM_COLUMNS " FROM items WHERE id = $1 FOR NO KEY UPDATE")        \
    X(READ_ACCOUNT, "t", "SELECT " ACCOUNT_COLUMNS " FROM accounts WHERE id = $1")                 \
    X(HOLD_ITEM, "t", "SELECT " ITEM_COLUMNS " FROM items WHERE id = $1 FOR UPDATE")               \
    X(LOCK_ACCOUNT, "t", "SELECT " ACCOUNT_COLUMNS " FROM accounts WHERE id = $1 FOR UPDATE")      \
    X(READ_ORDER, "t", "SELECT " ORDER_COLUMNS " FROM orders WHERE id = $1")                       \
    X(LOCK_ORDER, "t", "SELECT " ORDER_COLUMNS " FROM orders WHERE id = $1 FOR UPDATE")            \
    X(READ_ANSWER, "t", "SELECT " ANSWER_COLUMNS " FROM idempotency WHERE key = $1")               \
    X(FIND_ANSWER, "t", "SELECT 1::bigint FROM idempotency WHERE key = $1")                        \
    X(FIND_ANSWERS, "T", /* no join: its plan would depend on the size of the table at first */    \
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
      "SELECT " EXPIRED_COLUMNS " FROM orders WHERE state = 0 AND expires_us <= $1"                \
      " AND (expires_us, id) > ($2, $3) ORDER BY expires_us, id LIMIT $4")                         \
    X(READ_BITE, "ti",                                                                             \
      "SELECT count(*), coalesce(sum(old), 0)::bigint, coalesce(max(key), '') FROM (SELECT key,"   \
      " CASE WHEN at_us < $2 AND body <> '' THEN 1 ELSE 0 END AS old FROM idempotency"             \
      " WHERE key > $1 ORDER BY key LIMIT " BITE ") AS keys")                                      \
    X(READ_REFUSALS, "i",                                                                          \
      "WITH kept AS MATERIALIZED (SELECT coalesce((SELECT at_us FROM idempotency"                  \
      " WHERE http_status >= 400 ORDER BY at_us DESC LIMIT 1 OFFSET $1 - 1), 0) AS edge)"          \
      " SELECT (SELECT count(*) FROM (SELECT 1 FROM idempotency WHERE http_status >= 400"          \
      " AND at_us < edge ORDER BY at_us LIMIT " REFUSALS ") AS older), edge FROM kept"             \
      " WHERE to_regclass('" SCHEMA_REFUSALS "') IS NOT NULL")                                     \
    X(AUDIT_HEADS, "t", "DECLARE heads NO SCROLL CURSOR FOR " AUDIT_HEADS_SQL)                     \
    X(AUDIT_ROWS, "ti", "DECLARE rows NO SCROLL CURSOR FOR " AUDIT_ROWS_SQL)                       \
    X(AUDIT_REPEATS, "ti", "DECLARE repeats NO SCROLL CURSOR FOR " AUDIT_REPEATS_SQL)              \
    X(AUDIT_MONEY, "", "DECLARE money NO SCROLL CURSOR FOR " AUDIT_MONEY_SQL)                      \
    X(UNPAID, "", AUDIT_UNPAID_SQL)                                                                \
    X(FETCH_MONEY, "", "FETCH 1000 FROM money")                                                    \
    X(FEED, "iii",                                                                                 \
      "SELECT " LEDGER_COLUMNS " FROM ledger WHERE (txid, id) > ($1::text::xid8, $2)"              \
      " AND txid < " FEED_HORIZON " ORDER BY txid, id LIMIT $3")                                   \
    X(FEED_TRANSACTION, "i", "SELECT txid::text::bigint FROM ledger WHERE id = $1")                \
    X(FEED_END, "", "SELECT " FEED_HORIZON "::text::bigint - 1")                                   \
    X(FEED_NEWEST, "", /* the newest row: 0 shown, 1 waiting, 2 from a transaction to come */      \
      "SELECT coalesce((SELECT CASE WHEN txid < " FEED_HORIZON " THEN 0"                           \
      " WHEN txid < pg_snapshot_xmax(pg_current_snapshot()) THEN 1 ELSE 2 END"                     \
      " FROM ledger ORDER BY txid DESC, id DESC LIMIT 1), 0)::bigint")                             \
    X(FEED_BLOCKER, "", /* the oldest transaction that has a number */                             \
      "SELECT coalesce((SELECT format('a transaction of process %s (%s, %s) that began %s s ago'," \
      " pid, application_name, state, extract(epoch FROM now() - xact_start)::bigint)"             \
      " FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()"           \
      " ORDER BY age(backend_xid) DESC LIMIT 1),"                                                  \
      " (SELECT format('the prepared transaction %s', gid) FROM pg_prepared_xacts"                 \
      " ORDER BY age(transaction) DESC LIMIT 1), '')")                                             \
    X(STATEMENT, "tiiii",                                                                          \
      "SELECT " LEDGER_COLUMNS " FROM ledger WHERE resource = $1"                                  \
      " AND (epoch, version_before, id) > ($2, $3, $4)"                                            \
      " ORDER BY epoch, version_before, id LIMIT $5")                                              \
    X(ORDERS_OF_USER, "tti", /* with user_id = $1 the index of ids has the order, too */           \
      "SELECT " ORDER_COLUMNS " FROM orders WHERE user_id >= $1 AND (user_id, id) < ($1, $2)"      \
      " ORDER BY user_id DESC, id DESC LIMIT $3")                                                  \
    X(CARRIED, "ti",                                                                               \
      "SELECT " CARRIED_COLUMNS " FROM carried WHERE resource > $1 ORDER BY resource LIMIT $2")    \
    X(CARRIED_OF, "t", "SELECT " CARRIED_COLUMNS " FROM carried WHERE resource = $1")              \
    X(CARRIED_ORDERS, "ti",                                                                        \
      "SELECT " CARRIED_ORDER_COLUMNS " FROM carried_orders WHERE order_id > $1"                   \
      " ORDER BY order_id LIMIT $2")                                                               \
    X(PARTS, "ii", "SELECT " PART_COLUMNS " FROM archives WHERE part > $1 ORDER BY part LIMIT $2") \
    X(NEWEST_PART, "i", "SELECT " PART_COLUMNS " FROM archives ORDER BY part DESC LIMIT $1")       \
    X(PUT_CARRIED, TYPES(CARRIED_ROW),                                                             \
      "INSERT INTO carried (" CARRIED_COLUMNS ") VALUES (" ARGUMENTS(                              \
          CARRIED_ROW) ")"                                                                         \
                       " ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, "            \
                       "version_before = excluded.version_before,"                                 \
                       " last_id = excluded.last_id, hash = excluded.hash, total = "               \
                       "excluded.total,"                                                           \
                       " moved = excluded.moved, restocked = excluded.restocked, n = excluded.n")  \
    X(CARRY_ORDER, "ti",                                                                           \
      "INSERT INTO carried_orders AS old (order_id, delta) VALUES ($1, $2)"                        \
      " ON CONFLICT (order_id) DO UPDATE SET delta = old.delta + $2")                              \
    X(DROP_EVEN_ORDER, "t", "DELETE FROM carried_orders WHERE order_id = $1 AND delta = 0")        \
    X(INSERT_PART, TYPES(PART_ROW),                                                                \
      "INSERT INTO archives (" PART_COLUMNS                                                        \
      ") VALUES (" ARGUMENTS(PART_ROW) ")"                                                         \
                                       " ON CONFLICT DO NOTHING")                                  \
    X(DELETE_PART, "ii",                                                                           \
      "WITH gone AS (DELETE FROM ledger WHERE (txid, id) <= ($1::text::xid8, $2)"                  \
      " RETURNING 1) SELECT count(*) FROM gone")                                                   \
    X(FETCH_HEADS, "", "FETCH 1000 FROM heads")                                                    \
    X(FETCH_ROWS, "", "FETCH 1000 FROM rows")                                                      \
    X(FETCH_REPEATS, "", "FETCH 1000 FROM repeats")                                                \
    X(CLOSE_LISTS, "", "CLOSE ALL")                                                                \
    X(PUT_ITEM, "tiiiiitti",                                                                       \
      "UPDATE items SET stock = $2, version = $3, last_fence = greatest(last_fence, $5),"          \
      " chain = $7" PUT_WHERE)                                                                     \
    X(PUT_ACCOUNT, "tiiiiitti",                                                                    \
      "UPDATE accounts SET balance = $2, version = $3, last_fence = greatest(last_fence, $5),"     \
      " chain = $7" PUT_WHERE)                                                                     \
    X(CHAIN_ITEM, "tt", "UPDATE items SET chain = $2 WHERE id = $1")                               \
    X(CHAIN_ACCOUNT, "tt", "UPDATE accounts SET chain = $2 WHERE id = $1")                         \
    X(PUT_ORDER, "tiiiii",                                                                         \
      "UPDATE orders SET state = $2, version = $3, last_fence = greatest(last_fence, $5)"          \
      " WHERE id = $1 AND item_epoch = $4 AND " PUT_HOLDS)                                         \
    X(HOLD_EPOCH, "tit",                                                                           \
      "SELECT 1 FROM items WHERE id = (SELECT item_id FROM orders WHERE orders.id = $1)"           \
      " AND epoch = $2 AND guard = $3 FOR KEY SHARE")                                              \
    X(SET_ITEM, "ttiiiiiit",                                                                       \
      "UPDATE items SET guard = $2, price = $3, per_user_limit = $4, reserve_s = $5, fence = $6,"  \
      " version = $7, last_fence = $8, chain = $9 WHERE id = $1")                                  \
    X(SET_ACCOUNT, "ttiiit",                                                                       \
      "UPDATE accounts SET guard = $2, fence = $3, version = $4, last_fence = $5, chain = $6"      \
      " WHERE id = $1")                                                                            \
    X(CLEAR_FENCES, "t",                                                                           \
      "UPDATE orders SET last_fence = 0, version = version + 1"                                    \
      " WHERE item_id = $1 AND state <= 1 AND last_fence > 0")                                     \
    X(MOST_BOUGHT, "ti",                                                                           \
      "SELECT coalesce(max(n), 0)::bigint FROM (SELECT sum(quantity) AS n FROM orders"             \
      " WHERE item_id = $1 AND item_epoch = $2 AND counted_user <> '' AND state <= 1"              \
      " GROUP BY counted_user) AS bought")                                                         \
    X(WHY_ITEM, "tt",                                                                              \
      "SELECT CASE WHEN guard = $2 THEN epoch ELSE 0 END, last_fence"                              \
      " FROM items WHERE id = $1")                                                                 \
    X(WHY_ACCOUNT, "tt",                                                                           \
      "SELECT CASE WHEN guard = $2 THEN epoch ELSE 0 END, last_fence"                              \
      " FROM accounts WHERE id = $1")                                                              \
    X(WHY_ORDER, "t", "SELECT item_epoch, last_fence FROM orders WHERE id = $1")                   \
    X(ADD_ITEM, "tiiiit", /* $4 and $5: smallest and largest value that $2 can be added to */      \
      "UPDATE items SET stock = stock + $2, version = version + 1"                                 \
      " WHERE id = $1 AND epoch = $3 AND guard = $6"                                               \
      " AND stock BETWEEN $4 AND $5 AND version < " INT64_LARGEST                                  \
      " RETURNING stock, version, chain")                                                          \
    X(ADD_ACCOUNT, "tiiiit",                                                                       \
      "UPDATE accounts SET balance = balance + $2, version = version + 1"                          \
      " WHERE id = $1 AND epoch = $3 AND guard = $6"                                               \
      " AND balance BETWEEN $4 AND $5 AND version < " INT64_LARGEST                                \
      " RETURNING balance, version, chain")                                                        \
    X(MOVE_ORDER, "tii",                                                                           \
      "UPDATE orders SET state = $3, version = version + 1 WHERE id = $1 AND state = $2"           \
      " RETURNING version")                                                                        \
    X(INSERT_ORDER, TYPES(ORDER_ROW),                                                              \
      "INSERT INTO orders (" ORDER_COLUMNS                                                         \
      ") VALUES (" ARGUMENTS(ORDER_ROW) ")"                                                        \
                                        " ON CONFLICT DO NOTHING")                                 \
    X(INSERT_ORDERS, ARRAYS(ORDER_ROW),                                                            \
      "INSERT INTO orders (" ORDER_COLUMNS ") SELECT * FROM unnest(" ARGUMENTS(ORDER_ROW) ")")     \
    X(APPEND_LEDGER, TYPES(NEW_LEDGER_ROW),                                                        \
      "INSERT INTO ledger (" NEW_LEDGER_COLUMNS ") VALUES (" ARGUMENTS(NEW_LEDGER_ROW) ")")        \
    X(APPEND_LEDGERS, ARRAYS(NEW_LEDGER_ROW),                                                      \
      "INSERT INTO ledger (" NEW_LEDGER_COLUMNS                                                    \
      ") SELECT * FROM unnest(" ARGUMENTS(NEW_LEDGER_ROW) ")")                                     \
    X(INSERT_ANSWER, TYPES(ANSWER_ROW),                                                            \
      "INSERT INTO idempotency (" ANSWER_COLUMNS                                                   \
      ") VALUES (" ARGUMENTS(ANSWER_ROW) ")"                                                       \
                                         " ON CONFLICT DO NOTHING")                                \
    X(INSERT_ANSWERS, ARRAYS(ANSWER_ROW),                                                          \
      "INSERT INTO idempotency (" ANSWER_COLUMNS                                                   \
      ") SELECT * FROM unnest(" ARGUMENTS(ANSWER_ROW) ")")                                         \
    X(RESET_ITEM, TYPES(ITEM_ROW),                                                                 \
      "INSERT INTO items (" ITEM_COLUMNS ") VALUES (" ARGUMENTS(                                   \
          ITEM_ROW) ")"                                                                            \
                    " ON CONFLICT (id) DO UPDATE SET id = excluded.id, " RESET_SET(                \
                        "items", ITEM_GIVEN) " RETURNING " ITEM_COLUMNS)                           \
    X(RESET_ACCOUNT, TYPES(ACCOUNT_ROW),                                                           \
      "INSERT INTO accounts (" ACCOUNT_COLUMNS ") VALUES (" ARGUMENTS(                             \
          ACCOUNT_ROW) ")"                                                                         \
                       " ON CONFLICT (id) DO UPDATE SET " RESET_SET(                               \
                           "accounts", ACCOUNT_GIVEN) " RETURNING " ACCOUNT_COLUMNS)               \
    X(PUT_TASK, "ttii",                                                                            \
      "INSERT INTO tasks (name, instance, at_us, done) VALUES ($1, $2, $3, $4)"                    \
      " ON CONFLICT (name) DO UPDATE SET instance = $2, at_us = $3, done = $4")                    \
    X(PRUNE_REFUSALS, "tti",                                                                       \
      "DELETE FROM idempotency WHERE key > $1 AND key <= $2 AND at_us < $3"                        \
      " AND http_status >= 400")                                                                   \
    X(PRUNE_ANSWERS, "tti",                                                                        \
      "UPDATE idempotency SET request = '', body = '' WHERE key > $1 AND key <= $2"                \
      " AND at_us < $3 AND http_status < 400 AND body <> ''")                                      \
    X(PRUNE_OLDEST_REFUSALS, "i",                                                                  \
      "DELETE FROM idempotency WHERE key = ANY (ARRAY(SELECT key FROM idempotency"                 \
      " WHERE http_status >= 400 AND at_us < $1 ORDER BY at_us LIMIT " BITE ")) RETURNING 1")      \
    X(NEXT_FENCE, "ti",                                                                            \
      "INSERT INTO fences AS old (key, fence) VALUES ($1, $2 + 1)"                                 \
      " ON CONFLICT (key) DO UPDATE SET fence = greatest(old.fence, $2) + 1 RETURNING fence")

enum postgres_sql {
#define POSTGRES_SQL_ENUM(name, types, text) SQL_##name,
    POSTGRES_SQL_MAP(POSTGRES_SQL_ENUM)
#undef POSTGRES_SQL_ENUM
        SQL_COUNT
};

#endif
