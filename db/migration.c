#include "migration.h"

#include <stddef.h>

/* -- rows that both engines copy alike -------------------------------------------------------- */

#define OLD_ITEM_COLUMNS                                                                           \
    "id, guard, initial_stock, stock, price, per_user_limit, reserve_s, fence, version,"           \
    " last_fence, epoch"
#define OLD_ACCOUNT_COLUMNS "id, guard, initial_balance, balance, fence, version, last_fence, epoch"
#define OLD_ORDER_COLUMNS                                                                          \
    "id, item_id, user_id, quantity, amount, state, version, last_fence, item_epoch, created_us,"  \
    " expires_us"

/* Version 1 counted each order by its user. */
#define COUNTED_USER_1                                                                             \
    "CASE WHEN (SELECT per_user_limit FROM old_items WHERE old_items.id = item_id) > 0"            \
    " THEN user_id ELSE '' END"
#define COPY(counted_user)                                                                         \
    "INSERT INTO items (" OLD_ITEM_COLUMNS ", chain) SELECT " OLD_ITEM_COLUMNS                     \
    ", '' FROM old_items;"                                                                         \
    "INSERT INTO accounts (" OLD_ACCOUNT_COLUMNS ", chain) SELECT " OLD_ACCOUNT_COLUMNS            \
    ", '' FROM old_accounts;"                                                                      \
    "INSERT INTO orders (" OLD_ORDER_COLUMNS ", counted_user) SELECT " OLD_ORDER_COLUMNS           \
    ", " counted_user " FROM old_orders;"                                                          \
    "INSERT INTO idempotency (" ANSWER_COLUMNS ") SELECT " ANSWER_COLUMNS " FROM old_idempotency;" \
    "INSERT INTO fences (key, fence) SELECT key, fence FROM old_locks;"                            \
    "INSERT INTO tasks (name, instance, at_us, done) SELECT name, instance, at_us, done"           \
    " FROM old_tasks;"                                                                             \
    "CREATE INDEX old_ledger_txn ON old_ledger(txn_id);"

/* -- the ledger ------------------------------------------------------------------------------- */

#define IS_RESET "l.txn_id = 'reset\t' || l.resource || ':' || CAST(l.epoch AS text)"
#define IS_TASK  "a.key IS NULL AND l.txn_id LIKE 'task\t%'"
#define OLD_LEDGER(order_of_task, order_of_body)                                                   \
    "SELECT resource, epoch, txn_id, after - before AS delta, before, after, version_before,"      \
    " fence, guard, instance, kind, order_id, CASE kind WHEN 'payment' THEN 'shop:revenue'"        \
    " WHEN 'change' THEN 'shop:cash' WHEN 'transfer' THEN (SELECT min(o.resource)"                 \
    " FROM old_ledger o WHERE o.txn_id = told.txn_id AND o.resource <> told.resource)"             \
    " WHEN 'reset' THEN CASE WHEN resource LIKE 'account:%' THEN 'shop:equity' ELSE '' END"        \
    " ELSE '' END AS counterpart, '' AS reason, '' AS reference, at_us, '' AS hash, id FROM"       \
    " (SELECT l.id, l.resource, l.epoch, l.txn_id, l.after, l.version_before, l.fence, l.guard,"   \
    " l.instance, l.at_us, CASE WHEN " IS_RESET " THEN coalesce(lag(l.after)"                      \
    " OVER (PARTITION BY l.resource ORDER BY l.id), 0) ELSE l.before END AS before,"               \
    " CASE WHEN " IS_RESET " THEN 'reset' WHEN " IS_TASK " THEN 'expiry'"                          \
    " WHEN l.resource LIKE 'item:%' THEN CASE WHEN l.delta < 0 THEN 'order'"                       \
    " ELSE 'cancellation' END WHEN a.request LIKE 'payment order=%' THEN 'payment'"                \
    " WHEN EXISTS (SELECT 1 FROM old_ledger o WHERE o.txn_id = l.txn_id"                           \
    " AND o.resource <> l.resource) THEN 'transfer' ELSE 'change' END AS kind,"                    \
    " CASE WHEN " IS_TASK " THEN " order_of_task                                                   \
    " WHEN a.request LIKE 'payment order=%' THEN substr(a.request, 15)"                            \
    " WHEN a.request LIKE 'cancellation order=%' THEN substr(a.request, 20)"                       \
    " WHEN a.request LIKE 'order item=%' AND a.body LIKE '{\"order_id\":\"%' THEN " order_of_body  \
    " ELSE '' END AS order_id"                                                                     \
    " FROM old_ledger l LEFT JOIN old_idempotency a ON a.key = l.txn_id) AS told"                  \
    " ORDER BY resource, epoch, version_before, id"
/* A row of tasks says how far the old ledger went. */
#define RECORD(now_us)                                                                             \
    "INSERT INTO tasks (name, instance, at_us, done) SELECT 'migrated', '', " now_us               \
    ", coalesce(max(id), 0) FROM old_ledger;"
#define CHAIN(table, kind)                                                                         \
    "UPDATE " table " SET chain = coalesce((SELECT hash FROM ledger"                               \
    " WHERE resource = '" kind ":' || " table                                                      \
    ".id ORDER BY epoch DESC, version_before DESC, id DESC LIMIT 1), '');"
#define DROP_OLD                                                                                   \
    "DROP TABLE old_items; DROP TABLE old_accounts; DROP TABLE old_orders; DROP TABLE old_ledger;" \
    "DROP TABLE old_idempotency; DROP TABLE old_locks; DROP TABLE old_tasks;"

/* -- SQLite ----------------------------------------------------------------------------------- */

#define SQLITE_OLD_LEDGER                                                                          \
    OLD_LEDGER("substr(l.txn_id, instr(l.txn_id, ':') + 1)",                                       \
               "substr(a.body, 14, instr(substr(a.body, 14), '\"') - 1)")
#define SQLITE_SET_ASIDE                                                                           \
    "DROP TRIGGER ledger_keeps_rows; DROP TRIGGER ledger_keeps_values;"                            \
    "DROP INDEX orders_live; DROP INDEX orders_unpaid; DROP INDEX IF EXISTS ledger_chain;"         \
    "ALTER TABLE items RENAME TO old_items; ALTER TABLE accounts RENAME TO old_accounts;"          \
    "ALTER TABLE orders RENAME TO old_orders; ALTER TABLE ledger RENAME TO old_ledger;"            \
    "ALTER TABLE idempotency RENAME TO old_idempotency; ALTER TABLE locks RENAME TO old_locks;"    \
    "ALTER TABLE tasks RENAME TO old_tasks;"
#define SQLITE_FINISH                                                                              \
    RECORD("CAST(strftime('%s', 'now') AS INTEGER) * 1000000")                                     \
    CHAIN("items", "item") CHAIN("accounts", "account") DROP_OLD

const struct migration *sqlite_migration(int64_t version)
{
    static const struct migration migrations[SCHEMA_VERSION] = {
        [1] = {NULL, SQLITE_SET_ASIDE, COPY(COUNTED_USER_1), SQLITE_OLD_LEDGER, SQLITE_FINISH},
        [2] = {NULL, SQLITE_SET_ASIDE, COPY("counted_user"), SQLITE_OLD_LEDGER, SQLITE_FINISH},
        [3] = {.in_place = sqlite_archive_sql},
    };
    return version >= 1 && version < SCHEMA_VERSION ? &migrations[version] : NULL;
}

/* -- PostgreSQL ------------------------------------------------------------------------------- */

/* Indexes and sequences keep their tables, but not their names. */
#define POSTGRES_SET_ASIDE                                                                         \
    "LOCK TABLE items, accounts, orders, ledger, idempotency, locks, tasks;"                       \
    "DROP FUNCTION ledger_refuses() CASCADE;"                                                      \
    "DO $$ DECLARE r record; BEGIN FOR r IN SELECT relname, relkind FROM pg_class"                 \
    " WHERE relnamespace = current_schema()::regnamespace AND relname IN ('items', 'items_pkey',"  \
    " 'accounts', 'accounts_pkey', 'orders', 'orders_pkey', 'orders_live', 'orders_unpaid',"       \
    " 'ledger', 'ledger_pkey', 'ledger_chain', 'ledger_id_seq', 'idempotency',"                    \
    " 'idempotency_pkey', 'locks', 'locks_pkey', 'tasks', 'tasks_pkey', 'seckill_schema')"         \
    " LOOP EXECUTE format('ALTER %s %I RENAME TO %I', CASE r.relkind WHEN 'r' THEN 'TABLE'"        \
    " WHEN 'i' THEN 'INDEX' ELSE 'SEQUENCE' END, r.relname, 'old_' || r.relname);"                 \
    " END LOOP; END $$;"
#define HASH(chain, row)                                                                           \
    "encode(sha256(convert_to(" chain " || E'\\n' || " row ".resource || E'\\n' || " row           \
    ".epoch || E'\\n' || " row ".txn_id || E'\\n' || " row ".delta || E'\\n' || " row              \
    ".before || E'\\n' || " row ".after || E'\\n' || " row ".version_before || E'\\n' || " row     \
    ".fence || E'\\n' || " row ".guard || E'\\n' || " row ".instance || E'\\n' || " row            \
    ".kind || E'\\n' || " row ".order_id || E'\\n' || " row ".counterpart || E'\\n' || " row       \
    ".reason || E'\\n' || " row ".reference || E'\\n' || " row ".at_us || E'\\n',"                 \
    " 'UTF8')), 'hex')"
#define POSTGRES_OLD_LEDGER                                                                        \
    OLD_LEDGER("split_part(l.txn_id, ':', 2)", "split_part(a.body, '\"', 4)")
#define HASH_OF_ROW HASH("step", "r")
#define HASH_OF_LEG HASH("leg.hash", "leg")
/* step: what the rows of one version_before follow. Two of them are two heirs: a fork. */
#define POSTGRES_COPY_LEDGER                                                                       \
    "DO $$ DECLARE r record; leg record; last text := ''; chain text := ''; step text := '';"      \
    " of_epoch bigint; of_version bigint; BEGIN"                                                   \
    " FOR r IN " POSTGRES_OLD_LEDGER                                                               \
    " LOOP IF r.resource <> last THEN last := r.resource; chain := ''; of_epoch := NULL; END IF;"  \
    " IF (of_epoch, of_version) IS DISTINCT FROM (r.epoch, r.version_before) THEN"                 \
    " step := chain; of_epoch := r.epoch; of_version := r.version_before; END IF;"                 \
    " chain := " HASH_OF_ROW ";"                                                                   \
    " INSERT INTO ledger (" LEDGER_COLUMNS ") OVERRIDING SYSTEM VALUE VALUES (r.resource,"         \
    " r.epoch, r.txn_id, r.delta, r.before, r.after, r.version_before, r.fence, r.guard,"          \
    " r.instance, r.kind, r.order_id, r.counterpart, r.reason, r.reference, r.at_us, chain, "      \
    "r.id);"                                                                                       \
    " END LOOP;"                                                                                   \
    " PERFORM setval(pg_get_serial_sequence('ledger', 'id'), coalesce(max(id), 0) + 1, false)"     \
    " FROM ledger;"                                                                                \
    " FOR leg IN SELECT counterpart AS resource, 0 AS epoch, txn_id, -delta AS delta, 0 AS"        \
    " before, -delta AS after, 0 AS version_before, 0 AS fence, '' AS guard, instance, kind,"      \
    " order_id, resource AS counterpart, reason, reference, at_us, hash FROM ledger"               \
    " WHERE counterpart LIKE 'shop:%' ORDER BY id"                                                 \
    " LOOP INSERT INTO ledger (" NEW_LEDGER_COLUMNS ") VALUES (leg.resource, leg.epoch,"           \
    " leg.txn_id, leg.delta, leg.before, leg.after, leg.version_before, leg.fence, leg.guard,"     \
    " leg.instance, leg.kind, leg.order_id, leg.counterpart, leg.reason, leg.reference,"           \
    " leg.at_us, " HASH_OF_LEG "); END LOOP; END $$;"
#define POSTGRES_FINISH                                                                            \
    RECORD("(extract(epoch FROM now()) * 1000000)::bigint")                                        \
    CHAIN("items", "item") CHAIN("accounts", "account") DROP_OLD "DROP TABLE old_seckill_schema;"

const struct migration *postgres_migration(int64_t version)
{
    static const struct migration migrations[SCHEMA_VERSION] = {
        [1] = {NULL, POSTGRES_SET_ASIDE, COPY(COUNTED_USER_1), POSTGRES_COPY_LEDGER,
               POSTGRES_FINISH},
        [2] = {NULL, POSTGRES_SET_ASIDE, COPY("counted_user"), POSTGRES_COPY_LEDGER,
               POSTGRES_FINISH},
        [3] = {.in_place = postgres_archive_sql},
    };
    return version >= 1 && version < SCHEMA_VERSION ? &migrations[version] : NULL;
}
