/*
 * A lock that is a row: the common part of the guards over SQL tables. The guard's statements
 * define the guard. Here are the members of lk_provider that run them.
 */
#ifndef LOCKKIT_SQL_GUARD_H
#define LOCKKIT_SQL_GUARD_H

#include "sql_conn.h"

/* Places in the guard's lk_sql_set. Parameters ("ttn": key, token, number) and the answer. */
enum lk_sql_guard_statement {
    LK_SQL_ACQUIRE, /* "ttn", the lease in ms: one row with the fence if granted, else none */
    LK_SQL_RELEASE, /* "tt": one row if the row was the token's; 1: and its lease had not ended */
    LK_SQL_RENEW,   /* "ttn", the lease in ms: one row if still ours */
    LK_SQL_RAISE,   /* "tn": the key's counter becomes at least this */
    LK_SQL_CONFIRM, /* "tt": one row if still ours */
    LK_SQL_INSPECT, /* "t": key, token, ms left (less than 0: no lease), fence; none if unknown */
    LK_SQL_LIST,    /* "t", a prefix: the same of each lock held now */
    LK_SQL_FORCE,   /* "t": one row if somebody held it */
    LK_SQL_PING,    /* "": reads the table */
    LK_SQL_END,     /* LK_SQL_POSTGRES_END_BACKEND */
    LK_SQL_GUARD_STATEMENTS
};

/* lk_sql_set.settled of such a guard. */
#define LK_SQL_GUARD_SETTLED (1u << LK_SQL_ACQUIRE | 1u << LK_SQL_RELEASE)

typedef struct lk_sql_guard {
    lk_sql *sql;
    _Atomic uint64_t n_tokens;
} lk_sql_guard;

lk_status lk_sql_guard_open(const lk_context *context, const lk_sql_set *set, void **ret_self,
                            lk_error *error);

/* Members of lk_provider for guards whose self is an lk_sql_guard. */
void lk_sql_guard_close(void *self);
lk_status lk_sql_guard_try(void *self, lk_attempt *attempt);
lk_status lk_sql_guard_renew(void *self, lk_hold *hold, int64_t lease_ms);
lk_status lk_sql_guard_release(void *self, lk_hold *hold);
lk_status lk_sql_guard_raise_fence(void *self, const char *key, uint64_t seen);
lk_status lk_sql_guard_confirm(void *self, const lk_hold *hold);
lk_status lk_sql_guard_inspect(void *self, const char *key, lk_lock_info *ret);
lk_status lk_sql_guard_list(void *self, const char *prefix,
                            int (*each)(void *arg, const lk_lock_info *info), void *arg);
lk_status lk_sql_guard_force_release(void *self, const char *key);
lk_status lk_sql_guard_ping(void *self);

#endif
