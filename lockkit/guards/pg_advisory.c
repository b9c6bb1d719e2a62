/*
 * pg-advisory: PostgreSQL's advisory lock at session level.
 *
 * Algorithm: pg_try_advisory_lock(hashtextextended(key, 0)); a refused caller blocks in the server
 *            in pg_advisory_lock(), up to lock_timeout. pg_advisory_unlock() frees it. The fence
 *            comes from a sequence, once the lock is held.
 * Guarantee: one holder at a time across processes for as long as its connection lives; freed with
 *            the connection, so at once when its process dies; waiters are granted in the order in
 *            which they began to wait, and nobody goes before them; fences rise with every grant of
 *            the key and survive rollback, crash and restart.
 * Weakness:  a connection per hold and per waiter; no lease: a holder that hangs keeps it. If a
 *            holder is cut off from the network, the server frees the lock when its own timeout
 *            ends, and the holder learns of it when the connection's timeout ends. In between
 *            another may have the lock, and only the fence protects the row. A failover forgets all
 *            locks. With a connection pool, a lock that is not unlocked stays: ROLLBACK does not
 *            free it, and the next user of the connection has it.
 * Source:    https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS. The order:
 *            PostgreSQL, src/backend/storage/lmgr: a new request is in conflict with all that wait
 *            already, also a request that would not wait; a release wakes the first waiter as owner
 */
#include "pg_hold.h"
#include "providers.h"
#include "sql_postgres.h"

/* A connection that nobody uses is ended by the server after a while; one that has a lock is used.
 */
#define KEEP_IDLE(TIMEOUT) ", set_config('idle_session_timeout', '" TIMEOUT "', false)"
#define TEXT_OF(NUMBER)    #NUMBER
#define TEXT(NUMBER)       TEXT_OF(NUMBER)

const lk_sql_set lk_pg_advisory_statements = {
    .schema = {NULL, LK_SQL_POSTGRES_SCHEMA},
    .n = LK_PG_HOLD_STATEMENTS,
    .statements =
        {[LK_PG_TRY] = {"t", {NULL, "SELECT pg_try_advisory_lock(" LK_PG_ADVISORY_ID ")::int"}},
         [LK_PG_LOCK] = {"tn",
                         {NULL, "SELECT pg_advisory_lock(" LK_PG_ADVISORY_ID ") " LK_PG_PATIENCE}},
         [LK_PG_FENCE] = {"t", {NULL, "SELECT " LK_PG_NEXT_FENCE KEEP_IDLE("0")}},
         [LK_PG_FREE] = {"t",
                         {NULL, "SELECT pg_advisory_unlock(" LK_PG_ADVISORY_ID
                                ")::int" KEEP_IDLE(TEXT(LK_PG_IDLE_MS))}},
         LK_PG_HOLD_COMMON},
};

static lk_status open_advisory(const lk_context *context, void **ret_self, lk_error *error)
{
    return lk_pg_hold_open(context, &lk_pg_advisory_statements, ret_self, error);
}

const lk_provider lk_pg_advisory = {
    .info = {.name = "pg-advisory",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_OWNER | LK_CAP_FENCE |
                     LK_CAP_FAIR | LK_CAP_WAKES | LK_CAP_SESSION,
             .algorithm = "pg_advisory_lock on the key's 64-bit hash; fence from a sequence",
             .guarantee = "one holder at a time, in order of arrival, while its connection lives; "
                          "fences rise and survive restarts",
             .weakness = "a connection per hold and per waiter; a hung holder keeps it",
             .source = "https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS"},
    .open = open_advisory,
    .close = lk_pg_hold_close,
    .try_acquire = lk_pg_hold_try,
    .wait = lk_pg_hold_wait,
    .wait_end = lk_pg_hold_wait_end,
    .alive = lk_pg_hold_alive,
    .release = lk_pg_hold_release,
    .raise_fence = lk_pg_hold_raise_fence,
    .ping = lk_pg_hold_ping,
    .confirm = lk_pg_hold_confirm,
    .inspect = lk_pg_hold_inspect,
    .force_release = lk_pg_hold_force_release,
};
