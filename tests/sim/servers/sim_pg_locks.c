/* Locks of rows (PostgreSQL documentation, 13.3.2), who waits for whom, and deadlocks. */
#include "sim_pg_model.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LOCKS_MAX = 4096, DEADLOCK_US = 1000000 };

static struct {
    struct lock {
        const char *table;
        int64_t row, xid;
        enum pg_lock mode;
    } all[LOCKS_MAX];
    size_t n;
} locks;

void pg_locks_begin(void)
{
    locks.n = 0;
}

static bool conflict(enum pg_lock a, enum pg_lock b)
{
    if (a == PG_FOR_UPDATE || b == PG_FOR_UPDATE)
        return true;
    return a == PG_NO_KEY_UPDATE && b == PG_NO_KEY_UPDATE;
}

static bool is_same(const struct lock *lock, const char *table, int64_t row)
{
    return lock->row == row && strcmp(lock->table, table) == 0;
}

/* 0: nobody. */
static int64_t holder(const char *table, int64_t row, enum pg_lock mode, int64_t but)
{
    for (size_t i = 0; i < locks.n; i++)
        if (is_same(&locks.all[i], table, row) && locks.all[i].xid != but &&
            conflict(locks.all[i].mode, mode))
            return locks.all[i].xid;
    return 0;
}

static struct pg_backend *backend_of(int64_t xid)
{
    for (size_t i = 0; i < pg_server.n; i++)
        if (pg_server.backends[i]->xid == xid)
            return pg_server.backends[i];
    return NULL;
}

static bool is_deadlock(const struct pg_backend *self)
{
    const struct pg_backend *at = self;
    for (size_t i = 0; at && at->waits_for > 0 && i < PG_BACKENDS_MAX; i++) {
        at = backend_of(at->waits_for);
        if (at == self)
            return true;
    }
    return false;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool pg_wait_for(struct pg_backend *backend, int64_t xid)
{
    const int64_t begin_us = sim_now_us(), deadlock_us = begin_us + DEADLOCK_US;
    const int64_t lock_us = begin_us + backend->lock_timeout_ms * 1000;
    const int64_t statement_us = backend->begun_us + backend->statement_timeout_ms * 1000;
    bool looked = false;
    backend->waits_for = xid;
    while (pg_xid_state(xid) == XID_RUNS) {
        int64_t until_us = earliest(lock_us, statement_us);
        sim_wait(backend, looked ? until_us : earliest(deadlock_us, until_us));
        if (pg_is_dead(backend))
            break;
        if (backend->terminate) {
            backend->failure.severity = "FATAL";
            pg_fail(backend, "57P01", "terminating connection due to administrator command");
        } else if (pg_xid_state(xid) != XID_RUNS) {
            break;
        } else if (!looked && sim_now_us() >= deadlock_us) {
            looked = true;
            if (is_deadlock(backend)) {
                sim_tell("PostgreSQL: deadlock");
                pg_fail(backend, "40P01", "deadlock detected");
            }
        } else if (sim_now_us() >= lock_us) {
            pg_fail(backend, "55P03", "canceling statement due to lock timeout");
        } else if (sim_now_us() >= statement_us) {
            pg_fail(backend, "57014", "canceling statement due to statement timeout");
        }
        if (backend->failure.code[0])
            break;
    }
    backend->waits_for = 0;
    return backend->failure.code[0] == '\0' && !pg_is_dead(backend);
}

bool pg_row_is_locked(const struct pg_backend *backend, const char *table, int64_t row,
                      enum pg_lock mode)
{
    return holder(table, row, mode, backend->xid) != 0;
}

bool pg_lock_row(struct pg_backend *backend, const char *table, int64_t row, enum pg_lock mode)
{
    const int64_t xid = pg_backend_xid(backend);
    for (int64_t other; (other = holder(table, row, mode, xid)) != 0;)
        if (!pg_wait_for(backend, other))
            return false;
    for (size_t i = 0; i < locks.n; i++)
        if (locks.all[i].xid == xid && is_same(&locks.all[i], table, row)) {
            if (locks.all[i].mode < mode)
                locks.all[i].mode = mode;
            return true;
        }
    assert(locks.n < LOCKS_MAX);
    locks.all[locks.n++] = (struct lock){table, row, xid, mode};
    return true;
}

void pg_unlock_all(int64_t xid)
{
    size_t n = 0;
    for (size_t i = 0; i < locks.n; i++)
        if (locks.all[i].xid != xid)
            locks.all[n++] = locks.all[i];
    locks.n = n;
    for (size_t i = 0; i < pg_server.n; i++)
        if (pg_server.backends[i]->waits_for == xid)
            sim_wake(pg_server.backends[i], 1);
}
