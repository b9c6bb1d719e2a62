/*
 * sql-unique: a row per key, made unique by its primary key, with a lease by the database's clock.
 *
 * Algorithm: one statement takes the row: INSERT; if it is there, UPDATE when nobody holds it or
 *            its lease has ended. It raises the fence, a counter in the row. Release and renewal
 *            compare the token in their WHERE. A released row stays, with the token NULL, for the
 *            counter's sake.
 * Guarantee: one holder at a time across processes until its lease ends; only the holder can free
 *            it; fences rise with every grant of the key, and survive release, rollback and
 *            restart: a statement is committed before its answer comes. Right at READ COMMITTED:
 *            what is decided is decided on the newest version of the row, with the row locked.
 * Weakness:  leases follow the database server's wall clock, as in redis_token.c; waiters poll, in
 *            no order; a grant costs a durable commit. A failover to an asynchronous replica
 *            forgets locks and counters. SQLite: one machine only, and one writer at a time.
 * Source:    https://www.sqlite.org/lang_upsert.html;
 *            https://www.postgresql.org/docs/15/sql-select.html (FOR UPDATE SKIP LOCKED);
 *            M. Kleppmann, "How to do distributed locking", 2016 (fencing)
 *
 * A row with our own token is a late attempt of the same call. It is taken over.
 *
 * PostgreSQL has its own statements, because many run at once. In an upsert each try would queue
 * for the row only to find it held, and the holder's release would queue behind them. So a try
 * takes a row only if no other transaction has it (SKIP LOCKED), and only reads a row that is held.
 * A release waits for the transaction that has the row: it may be the attempt to be undone, not yet
 * committed.
 */
#include "providers.h"
#include "sql_guard.h"

/* LOCKS: the table; NOW: Unix time in ms. */
#define HELD(NOW) "token IS NOT NULL AND until_ms > " NOW
#define FREE(NOW) "(token IS NULL OR token = $2 OR until_ms <= " NOW ")"

/* clang-format off */
#define SQLITE_ACQUIRE(LOCKS, NOW)                                                                 \
    "INSERT INTO " LOCKS " (key, token, until_ms, fence) VALUES ($1, $2, " NOW " + $3, 1) "        \
    "ON CONFLICT (key) DO UPDATE SET token = $2, until_ms = " NOW " + $3, fence = fence + 1 "      \
    "WHERE " FREE(NOW) " RETURNING fence"
#define POSTGRES_ACQUIRE(LOCKS, NOW)                                                               \
    "WITH free AS ("                                                                               \
    "  SELECT key FROM " LOCKS " WHERE key = $1 AND " FREE(NOW) " FOR UPDATE SKIP LOCKED"          \
    "), taken AS ("                                                                                \
    "  UPDATE " LOCKS " AS l SET token = $2, until_ms = " NOW " + $3, fence = fence + 1"           \
    "  FROM free WHERE l.key = free.key RETURNING fence"                                           \
    "), made AS ("                                                                                 \
    "  INSERT INTO " LOCKS " (key, token, until_ms, fence) SELECT $1, $2, " NOW " + $3, 1"         \
    "  WHERE NOT EXISTS (SELECT 1 FROM " LOCKS " WHERE key = $1)"                                  \
    "  ON CONFLICT (key) DO NOTHING RETURNING fence"                                               \
    ") SELECT fence FROM taken UNION ALL SELECT fence FROM made"
#define WAS_HELD(NOW) " RETURNING CASE WHEN until_ms > " NOW " THEN 1 ELSE 0 END"
#define SQLITE_RELEASE(LOCKS, NOW)                                                                 \
    "UPDATE " LOCKS " SET token = NULL WHERE key = $1 AND token = $2" WAS_HELD(NOW)
#define POSTGRES_RELEASE(LOCKS, NOW)                                                               \
    "WITH standing AS (SELECT key, token FROM " LOCKS " WHERE key = $1 FOR UPDATE) "               \
    "UPDATE " LOCKS " AS l SET token = NULL FROM standing "                                        \
    "WHERE l.key = standing.key AND standing.token = $2" WAS_HELD(NOW)
#define RENEW(LOCKS, NOW)                                                                          \
    "UPDATE " LOCKS " SET until_ms = " NOW " + $3 "                                                \
    "WHERE key = $1 AND token = $2 AND until_ms > " NOW " RETURNING 1"
#define RAISE(LOCKS, NOW) LK_SQL_RAISE_FENCE(LOCKS)
#define CONFIRM(LOCKS, NOW)                                                                        \
    "SELECT 1 FROM " LOCKS " WHERE key = $1 AND token = $2 AND until_ms > " NOW
#define INFO(LOCKS, NOW)                                                                           \
    "SELECT key, CASE WHEN " HELD(NOW) " THEN token END, "                                         \
    "CASE WHEN " HELD(NOW) " THEN until_ms - " NOW " ELSE -1 END, fence FROM " LOCKS
#define INSPECT(LOCKS, NOW) INFO(LOCKS, NOW) " WHERE key = $1"
#define LIST(LOCKS, NOW)    INFO(LOCKS, NOW) " WHERE substr(key, 1, length($1)) = $1 AND " HELD(NOW)
#define FORCE(LOCKS, NOW)                                                                          \
    "UPDATE " LOCKS " SET token = NULL WHERE key = $1 AND " HELD(NOW) " RETURNING 1"

#define PING(LOCKS, NOW) "SELECT 1 FROM " LOCKS " LIMIT 1"

/* clang-format on */

#define SQLITE_LOCKS   "lockkit_locks"
#define POSTGRES_LOCKS "lockkit.locks"
#define SQLITE_NOW     "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
#define POSTGRES_NOW   "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
#define BOTH(STATEMENT)                                                                            \
    {                                                                                              \
        STATEMENT(SQLITE_LOCKS, SQLITE_NOW), STATEMENT(POSTGRES_LOCKS, POSTGRES_NOW)               \
    }

static const lk_sql_set statements = {
    .schema = {"CREATE TABLE IF NOT EXISTS " SQLITE_LOCKS " (key TEXT PRIMARY KEY, token TEXT,"
               " until_ms INTEGER NOT NULL, fence INTEGER NOT NULL) WITHOUT ROWID",
               LK_SQL_POSTGRES_SCHEMA},
    .settled = LK_SQL_GUARD_SETTLED,
    .n = LK_SQL_GUARD_STATEMENTS,
    .statements = {[LK_SQL_ACQUIRE] = {"ttn",
                                       {SQLITE_ACQUIRE(SQLITE_LOCKS, SQLITE_NOW),
                                        POSTGRES_ACQUIRE(POSTGRES_LOCKS, POSTGRES_NOW)}},
                   [LK_SQL_RELEASE] = {"tt",
                                       {SQLITE_RELEASE(SQLITE_LOCKS, SQLITE_NOW),
                                        POSTGRES_RELEASE(POSTGRES_LOCKS, POSTGRES_NOW)}},
                   [LK_SQL_RENEW] = {"ttn", BOTH(RENEW)},
                   [LK_SQL_RAISE] = {"tn", BOTH(RAISE)},
                   [LK_SQL_CONFIRM] = {"tt", BOTH(CONFIRM)},
                   [LK_SQL_INSPECT] = {"t", BOTH(INSPECT)},
                   [LK_SQL_LIST] = {"t", BOTH(LIST)},
                   [LK_SQL_FORCE] = {"t", BOTH(FORCE)},
                   [LK_SQL_PING] = {"", BOTH(PING)},
                   [LK_SQL_END] = {"ntn", {NULL, LK_SQL_POSTGRES_END_BACKEND}}},
};

static lk_status open_unique(const lk_context *context, void **ret_self, lk_error *error)
{
    return lk_sql_guard_open(context, &statements, ret_self, error);
}

const lk_provider lk_sql_unique = {
    .info = {.name = "sql-unique",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_FENCE | LK_CAP_SERVER_CLOCK,
             .algorithm =
                 "row with a unique key, inserted or, when free, updated by one statement; "
                 "lease by database time",
             .guarantee = "one holder at a time until its lease ends; only the holder frees it; "
                          "fences rise and survive restarts",
             .weakness = "a durable commit per grant; waiters poll, in no order",
             .source = "https://www.sqlite.org/lang_upsert.html"},
    .open = open_unique,
    .close = lk_sql_guard_close,
    .try_acquire = lk_sql_guard_try,
    .renew = lk_sql_guard_renew,
    .release = lk_sql_guard_release,
    .raise_fence = lk_sql_guard_raise_fence,
    .ping = lk_sql_guard_ping,
    .confirm = lk_sql_guard_confirm,
    .inspect = lk_sql_guard_inspect,
    .list = lk_sql_guard_list,
    .force_release = lk_sql_guard_force_release,
};
