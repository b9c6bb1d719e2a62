/*
 * pg-advisory-xact: PostgreSQL's advisory lock at transaction level.
 *
 * Algorithm: as pg-advisory, but in a transaction that stays open while the lock is held, with
 *            pg_try_advisory_xact_lock() and pg_advisory_xact_lock(). Its end frees the lock:
 *            COMMIT, ROLLBACK, or the connection's end.
 * Guarantee: that of pg-advisory; besides, a connection that is handed on without its transaction
 *            cannot take the lock along.
 * Weakness:  that of pg-advisory; besides, each hold is an open transaction: a long one keeps
 *            VACUUM from removing dead rows in the whole database.
 * Source:    https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS
 *
 * The fence comes from a sequence, on one more connection of the client: so it is neither taken
 * back with the transaction, nor forgotten by a server that is killed before the COMMIT.
 */
#include "pg_hold.h"
#include "providers.h"

static const lk_sql_set statements = {
    .schema = {NULL, LK_SQL_POSTGRES_SCHEMA},
    .n = LK_PG_HOLD_STATEMENTS,
    .statements = {[LK_PG_BEGIN] = {"", {NULL, "BEGIN"}},
                   [LK_PG_TRY] = {"t",
                                  {NULL,
                                   "SELECT pg_try_advisory_xact_lock(" LK_PG_ADVISORY_ID ")::int"}},
                   [LK_PG_LOCK] = {"tn",
                                   {NULL, "SELECT pg_advisory_xact_lock(" LK_PG_ADVISORY_ID
                                          ") " LK_PG_PATIENCE}},
                   [LK_PG_FENCE] = {"t", {NULL, "SELECT " LK_PG_NEXT_FENCE}},
                   [LK_PG_FREE] = {"", {NULL, "COMMIT"}},
                   [LK_PG_ABANDON] = {"", {NULL, "ROLLBACK"}},
                   LK_PG_HOLD_COMMON},
};

static lk_status open_advisory_xact(const lk_context *context, void **ret_self, lk_error *error)
{
    return lk_pg_hold_open(context, &statements, ret_self, error);
}

const lk_provider lk_pg_advisory_xact = {
    .info = {.name = "pg-advisory-xact",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_OWNER | LK_CAP_FENCE |
                     LK_CAP_FAIR | LK_CAP_WAKES | LK_CAP_SESSION,
             .algorithm = "pg_advisory_xact_lock in a transaction held open; fence from a sequence",
             .guarantee = "one holder at a time, in order of arrival, while its transaction is "
                          "open; fences rise and survive rollback",
             .weakness = "a connection and an open transaction per hold; a hung holder keeps it",
             .source = "https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS"},
    .open = open_advisory_xact,
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
