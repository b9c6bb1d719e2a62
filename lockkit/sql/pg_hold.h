/*
 * A lock that is a connection: PostgreSQL frees it when the connection ends, whatever ended it.
 *
 * Each hold and each waiter has a connection of its own, which goes back to the client's pool when
 * nothing is left on it, and is given up when that is not certain: closing it is the release that
 * needs no answer. A waiter's request blocks in the server, bounded by lock_timeout, and keeps its
 * place in the server's queue until the call ends. One thread per client watches the connections of
 * the holds. So the end of a hold's connection is reported (LK_LOSS_SESSION) although its thread
 * sends nothing to the server.
 *
 * What a lock is to the server stands in the guard's statements (pg_advisory.c,
 * pg_advisory_xact.c).
 */
#ifndef LOCKKIT_PG_HOLD_H
#define LOCKKIT_PG_HOLD_H

#include "sql_conn.h"

/* Places in the guard's lk_sql_set, with parameters and the answer's first number. */
enum lk_pg_hold_statement {
    LK_PG_BEGIN,   /* "", before TRY and LOCK; may be missing */
    LK_PG_TRY,     /* "t", the key: 1 if granted */
    LK_PG_LOCK,    /* "tn": answered when granted, LK_BUSY if not within so many ms */
    LK_PG_FENCE,   /* "t": a number that rises with each grant of the key; asked when held */
    LK_PG_FREE,    /* "t": 0 if it was not held */
    LK_PG_ABANDON, /* "", after a refusal; may be missing */
    LK_PG_CONFIRM, /* "t": 1 if this connection holds it */
    LK_PG_INSPECT, /* "t": holders, waiters, 1 if they share it */
    LK_PG_FORCE,   /* "t": 0: nobody holds it; 1: a holder's connection was ended; 2: not yet */
    LK_PG_RAISE,   /* "tn": the key's counter becomes at least this */
    LK_PG_PING,    /* "" */
    LK_PG_HOLD_STATEMENTS
};

/* The advisory lock of key $1: any client that uses this number in the same database excludes and
 * is excluded. 64 bits: a million keys make two equal numbers with a chance of 1 in 40 million, and
 * these two then only exclude each other too. */
#define LK_PG_ADVISORY_ID "hashtextextended($1, 0)"

/* Its rows in pg_locks. */
#define LK_PG_ADVISORY_ROWS                                                                        \
    "FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "                                  \
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "             \
    "AND classid = (" LK_PG_ADVISORY_ID " >> 32 & 4294967295)::oid "                               \
    "AND objid = (" LK_PG_ADVISORY_ID " & 4294967295)::oid"

/* The number that rises: a sequence, which no rollback and no crash sets back, above a floor of the
 * key's own. A statement of its own, because that of the grant may see what was true before it
 * waited. */
#define LK_PG_NEXT_FENCE                                                                           \
    "nextval('lockkit.fence') + "                                                                  \
    "coalesce((SELECT fence FROM lockkit.locks WHERE key = $1), 0)"

/* How long LOCK may wait, $2 in ms. FROM is evaluated first. The setting ends with the transaction:
 * the next statement on this connection waits as long as the connection's own setting says. */
#define LK_PG_PATIENCE "FROM set_config('lock_timeout', $2::text, true)"

/* Statements that do not depend on the level of the lock. */
#define LK_PG_HOLD_COMMON                                                                          \
    [LK_PG_CONFIRM] = {"t",                                                                        \
                       {NULL, "SELECT count(*) " LK_PG_ADVISORY_ROWS                               \
                              " AND granted AND pid = pg_backend_pid()"}},                         \
    [LK_PG_INSPECT] = {"t",                                                                        \
                       {NULL, "SELECT count(*) FILTER (WHERE granted), "                           \
                              "count(*) FILTER (WHERE NOT granted), "                              \
                              "max((granted AND mode = 'ShareLock')::int) " LK_PG_ADVISORY_ROWS}}, \
    [LK_PG_FORCE] =                                                                                \
        {"t",                                                                                      \
         {NULL, "SELECT CASE count(*) WHEN 0 THEN 0 ELSE 2 - least(1, "                            \
                "count(*) FILTER (WHERE pg_terminate_backend(pid, 250))) END " LK_PG_ADVISORY_ROWS \
                " AND granted"}},                                                                  \
    [LK_PG_RAISE] = {"tn", {NULL, LK_SQL_RAISE_FENCE("lockkit.locks")}},                           \
    [LK_PG_PING] = {"", {NULL, "SELECT 1"}}

/* pg-advisory's; a lesson takes them and makes one of them wrong. */
extern const lk_sql_set lk_pg_advisory_statements;

lk_status lk_pg_hold_open(const lk_context *context, const lk_sql_set *set, void **ret_self,
                          lk_error *error);

/* Members of lk_provider. */
void lk_pg_hold_close(void *self);
lk_status lk_pg_hold_try(void *self, lk_attempt *attempt);
lk_status lk_pg_hold_wait(void *self, lk_attempt *attempt, int64_t until_us);
void lk_pg_hold_wait_end(void *self, lk_attempt *attempt);
bool lk_pg_hold_alive(void *self, const lk_hold *hold);
lk_status lk_pg_hold_release(void *self, lk_hold *hold);
lk_status lk_pg_hold_raise_fence(void *self, const char *key, uint64_t seen);
lk_status lk_pg_hold_ping(void *self);
lk_status lk_pg_hold_confirm(void *self, const lk_hold *hold);
lk_status lk_pg_hold_inspect(void *self, const char *key, lk_lock_info *ret);
lk_status lk_pg_hold_force_release(void *self, const char *key);

#endif
