/*
 * sql-unique-forever: the textbook's lock table, without a lease.
 *
 * Algorithm: INSERT of a row whose key is unique; if the row exists, the lock is refused. Release
 *            deletes the row that has our token.
 * Guarantee: one holder at a time across processes; only the holder can free it.
 * Weakness:  no lease: the row of a dead holder stays, and locks everybody out, until somebody
 *            deletes it by hand. What got no answer is taken back by its token, in the background
 *            if need be, and on PostgreSQL only once the session that it was sent on has ended: so
 *            nothing is left, if its client is not closed before. No fence: the release deletes
 *            the row and any counter in it.
 * Source:    the "lock table" of many articles; https://www.sqlite.org/lang_conflict.html
 */
#include "providers.h"
#include "sql_guard.h"

#define ACQUIRE(ROWS)                                                                              \
    "INSERT INTO " ROWS " (key, token) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING RETURNING 0"
#define RELEASE(ROWS) "DELETE FROM " ROWS " WHERE key = $1 AND token = $2 RETURNING 1"
#define CONFIRM(ROWS) "SELECT 1 FROM " ROWS " WHERE key = $1 AND token = $2"
#define INFO(ROWS)    "SELECT key, token, -1, 0 FROM " ROWS
#define INSPECT(ROWS) INFO(ROWS) " WHERE key = $1"
#define LIST(ROWS)    INFO(ROWS) " WHERE substr(key, 1, length($1)) = $1"
#define FORCE(ROWS)   "DELETE FROM " ROWS " WHERE key = $1 RETURNING 1"
#define PING(ROWS)    "SELECT 1 FROM " ROWS " LIMIT 1"

#define BOTH(STATEMENT)                                                                            \
    {                                                                                              \
        STATEMENT("lockkit_rows"), STATEMENT("lockkit.rows")                                       \
    }

static const lk_sql_set statements = {
    .schema = {"CREATE TABLE IF NOT EXISTS lockkit_rows (key TEXT PRIMARY KEY, token TEXT NOT NULL)"
               " WITHOUT ROWID",
               LK_SQL_POSTGRES_SCHEMA},
    .settled = LK_SQL_GUARD_SETTLED,
    .n = LK_SQL_GUARD_STATEMENTS,
    .statements = {[LK_SQL_ACQUIRE] = {"tt", BOTH(ACQUIRE)},
                   [LK_SQL_RELEASE] = {"tt", BOTH(RELEASE)},
                   [LK_SQL_CONFIRM] = {"tt", BOTH(CONFIRM)},
                   [LK_SQL_INSPECT] = {"t", BOTH(INSPECT)},
                   [LK_SQL_LIST] = {"t", BOTH(LIST)},
                   [LK_SQL_FORCE] = {"t", BOTH(FORCE)},
                   [LK_SQL_PING] = {"", BOTH(PING)},
                   [LK_SQL_END] = {"ntn", {NULL, LK_SQL_POSTGRES_END_BACKEND}}},
};

static lk_status open_forever(const lk_context *context, void **ret_self, lk_error *error)
{
    return lk_sql_guard_open(context, &statements, ret_self, error);
}

const lk_provider lk_sql_unique_forever = {
    .info = {.name = "sql-unique-forever",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_OWNER,
             .algorithm = "INSERT of a row with a unique key; DELETE by token",
             .guarantee = "one holder at a time; only the holder frees it",
             .weakness = "no lease: a dead holder's row stays for ever; waiters poll",
             .source = "https://www.sqlite.org/lang_conflict.html"},
    .open = open_forever,
    .close = lk_sql_guard_close,
    .try_acquire = lk_sql_guard_try,
    .release = lk_sql_guard_release,
    .ping = lk_sql_guard_ping,
    .confirm = lk_sql_guard_confirm,
    .inspect = lk_sql_guard_inspect,
    .list = lk_sql_guard_list,
    .force_release = lk_sql_guard_force_release,
};
