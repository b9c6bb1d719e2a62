/*
 * The queries of the audit, in SQL that both engines understand. Every number has 64 bits. The
 * answers are sorted by resource, byte by byte, so that they can be merged (audit.h).
 *
 * $1: the resource, '' for all. $2: its epoch; older rows are not read. With '' the rows of older
 * epochs are read, too, and skipped.
 */
#ifndef DB_AUDIT_SQL_H
#define DB_AUDIT_SQL_H

#include "columns.h"

/* The shop's own sides have no row whose value could be compared. ";" follows ":". */
#define AUDIT_THOSE_ROWS                                                                           \
    "(($1 = '' AND (resource < 'shop:' OR resource >= 'shop;')) OR"                                \
    " (resource = $1 AND epoch >= $2))"

/* The items of live orders. Each is found by one index search after the item before it, as there
 * are far more orders than items. */
#define AUDIT_ORDERED                                                                              \
    "WITH RECURSIVE ordered (id) AS (SELECT CASE WHEN $1 <> '' THEN substr($1, 6)"                 \
    " ELSE (SELECT min(item_id) FROM orders WHERE state <= 1) END"                                 \
    " UNION ALL SELECT (SELECT min(item_id) FROM orders WHERE item_id > ordered.id"                \
    " AND state <= 1) FROM ordered WHERE $1 = '' AND id IS NOT NULL)"

#define AUDIT_LIVE_ORDERS " FROM orders WHERE item_id = ordered.id AND state <= 1"

/* What is carried of the resource; nothing: zeros. */
#define AUDIT_CARRIED                                                                              \
    " coalesce(carried.epoch, 0), coalesce(carried.version_before, 0),"                            \
    " coalesce(carried.last_id, 0), coalesce(carried.hash, ''), coalesce(carried.total, 0),"       \
    " coalesce(carried.moved, 0), coalesce(carried.restocked, 0), coalesce(carried.n, 0)"

#define AUDIT_NO_SALE                                                                              \
    " CAST(0 AS bigint), CAST(0 AS bigint), CAST(0 AS bigint), CAST(0 AS bigint),"                 \
    " CAST(0 AS bigint),"

#define AUDIT_HEADS_OF_ACCOUNTS                                                                    \
    " SELECT 'account:' || id AS resource, guard, initial_balance, balance, version,"              \
    " accounts.epoch, chain," AUDIT_NO_SALE AUDIT_CARRIED                                          \
    " FROM accounts LEFT JOIN carried ON carried.resource = 'account:' || accounts.id"             \
    " WHERE $1 = '' OR (id = substr($1, 9) AND 'account:' || id = $1)"

#define AUDIT_HEADS_OF_ITEMS                                                                       \
    " SELECT 'item:' || id, guard, initial_stock, stock, version, items.epoch, chain, 0,"          \
    " (SELECT CAST(coalesce(sum(quantity), 0) AS bigint) FROM orders"                              \
    " WHERE item_id = items.id AND item_epoch = items.epoch AND state <= 1),"                      \
    " (SELECT count(*) FROM orders"                                                                \
    " WHERE item_id = items.id AND item_epoch > items.epoch AND state <= 1),"                      \
    " CASE WHEN per_user_limit > 0 THEN (SELECT CAST(coalesce(sum(beyond), 0) AS bigint)"          \
    " FROM (SELECT sum(quantity) - items.per_user_limit AS beyond FROM orders"                     \
    " WHERE item_id = items.id AND item_epoch = items.epoch AND state <= 1"                        \
    " AND counted_user <> ''"                                                                      \
    " GROUP BY counted_user HAVING sum(quantity) > items.per_user_limit) AS users) ELSE 0 END,"    \
    " (SELECT CAST(coalesce(sum(amount), 0) AS bigint) FROM orders"                                \
    " WHERE item_id = items.id AND item_epoch < items.epoch AND state <= 1 AND state = "           \
    "1)," AUDIT_CARRIED " FROM items LEFT JOIN carried ON carried.resource = 'item:' || items.id"  \
    " WHERE $1 = '' OR (id = substr($1, 6) AND 'item:' || id = $1)"

/* Live orders name them. */
#define AUDIT_HEADS_OF_ORDERED                                                                     \
    " SELECT 'item:' || id, '', 0, 0, 0, 0, '', 1,"                                                \
    " (SELECT CAST(sum(quantity) AS bigint)" AUDIT_LIVE_ORDERS "),"                                \
    " (SELECT count(*)" AUDIT_LIVE_ORDERS "), 0, 0," AUDIT_CARRIED                                 \
    " FROM ordered LEFT JOIN carried ON carried.resource = 'item:' || ordered.id"                  \
    " WHERE ($1 = '' OR 'item:' || id = $1) AND EXISTS (SELECT 1" AUDIT_LIVE_ORDERS                \
    ") AND NOT EXISTS (SELECT 1 FROM items WHERE items.id = ordered.id)"

/* Rows that were moved name them, and no live order. */
#define AUDIT_HEADS_OF_CARRIED                                                                     \
    " SELECT resource, '', 0, 0, 0, 0, '', 1, 0, 0, 0, 0," AUDIT_CARRIED " FROM carried"           \
    " WHERE ($1 = '' OR resource = $1) AND (resource < 'shop:' OR resource >= 'shop;')"            \
    " AND NOT EXISTS (SELECT 1 FROM accounts WHERE 'account:' || accounts.id = resource"           \
    " AND accounts.id = substr(resource, 9))"                                                      \
    " AND NOT EXISTS (SELECT 1 FROM items WHERE 'item:' || items.id = resource"                    \
    " AND items.id = substr(resource, 6))"                                                         \
    " AND NOT EXISTS (SELECT 1 FROM orders WHERE 'item:' || item_id = resource"                    \
    " AND item_id = substr(resource, 6) AND state <= 1)"

/* Accounts, items, and items that are missing. Columns as in AUDIT_HEAD_ROW (audit.h). */
#define AUDIT_HEADS_SQL                                                                            \
    AUDIT_ORDERED AUDIT_HEADS_OF_ACCOUNTS " UNION ALL" AUDIT_HEADS_OF_ITEMS                        \
                                          " UNION ALL" AUDIT_HEADS_OF_ORDERED                      \
                                          " UNION ALL" AUDIT_HEADS_OF_CARRIED " ORDER BY resource"

#define AUDIT_ROWS_SQL                                                                             \
    "SELECT " LEDGER_COLUMNS " FROM ledger WHERE " AUDIT_THOSE_ROWS                                \
    " ORDER BY resource, epoch, version_before, id"

/* Movements of money: all rows but those of stock, and of terms that changed. ";" follows ":". */
#define AUDIT_MONEY_SQL                                                                            \
    "SELECT " LEDGER_COLUMNS " FROM ledger WHERE (resource < 'item:' OR resource >= 'item;')"      \
    " AND NOT (kind = 'setting' AND delta = 0)"                                                    \
    " ORDER BY txn_id, id"

/* Orders whose state and whose money differ. The sum in two halves, as SQLite's sum() fails beyond
 * 64 bits. */
#define AUDIT_UNPAID_SQL                                                                           \
    "SELECT count(*) FROM (SELECT id FROM (SELECT id, amount AS n FROM orders WHERE state = 1"     \
    " UNION ALL SELECT order_id, delta FROM ledger WHERE resource >= 'account:'"                   \
    " AND resource < 'account;' AND order_id <> ''"                                                \
    " UNION ALL SELECT order_id, delta FROM carried_orders) AS moved GROUP BY id"                  \
    " HAVING sum(n >> 32) * 4294967296 + sum(n & 4294967295) <> 0) AS unpaid"

/* Rows beyond the first of one txn_id. Columns as in AUDIT_REPEATS_ROW (audit.h). */
#define AUDIT_REPEATS_SQL                                                                          \
    "SELECT resource, epoch, CAST(sum(n - 1) AS bigint) FROM (SELECT resource, epoch,"             \
    " count(*) AS n FROM ledger WHERE " AUDIT_THOSE_ROWS                                           \
    " GROUP BY resource, epoch, txn_id HAVING count(*) > 1) AS repeated"                           \
    " GROUP BY resource, epoch ORDER BY resource, epoch"

#endif
