/*
 * Advisory locks (PostgreSQL documentation, 13.3.5), exclusive ones: of a session or of a
 * transaction. A new request is in conflict with all that wait already; a release grants the first
 * waiter. And the sequence of lockkit's fences. A server that crashes forgets the locks; the
 * sequence goes ahead.
 */
#include "sim_pg_model.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ADVISORY_MAX = 512, CHECK_US = 1000000, SEQUENCE_AHEAD = 32 };

static struct {
    struct advisory {
        int64_t id;
        struct pg_backend *backend;
        bool granted, of_transaction;
    } all[ADVISORY_MAX]; /* in order of arrival */
    size_t n;
    int64_t sequence;
} advisory;

void pg_advisory_begin(void)
{
    advisory.n = 0;
    advisory.sequence += SEQUENCE_AHEAD;
}

int64_t pg_advisory_id(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return (int64_t)hash;
}

/* -- who has what ------------------------------------------------------------------------------ */

static struct advisory *entry_of(const struct pg_backend *backend, int64_t id)
{
    for (size_t i = 0; i < advisory.n; i++)
        if (advisory.all[i].id == id && advisory.all[i].backend == backend)
            return &advisory.all[i];
    return NULL;
}

/* The first of them has it. */
static struct advisory *first_of(int64_t id)
{
    for (size_t i = 0; i < advisory.n; i++)
        if (advisory.all[i].id == id)
            return &advisory.all[i];
    return NULL;
}

static void add(struct pg_backend *backend, int64_t id, bool of_transaction)
{
    const bool granted = first_of(id) == NULL;
    assert(advisory.n < ADVISORY_MAX && !entry_of(backend, id));
    advisory.all[advisory.n++] = (struct advisory){id, backend, granted, of_transaction};
}

static void leave(struct advisory *entry)
{
    const int64_t id = entry->id;
    memmove(entry, entry + 1, (size_t)(&advisory.all[advisory.n] - (entry + 1)) * sizeof *entry);
    advisory.n--;
    struct advisory *next = first_of(id);
    if (!next || next->granted)
        return;
    next->granted = true;
    sim_wake(next->backend, 1);
}

/* Of a session that has ended, or whose client is gone, which a waiting process finds out. */
static bool is_over(struct pg_backend *backend)
{
    if (!backend->conn->eof && !backend->terminate)
        return false;
    if (!backend->terminate && !pg_pause(backend, sim_below(CHECK_US)))
        return true;
    backend->failure.severity = "FATAL";
    pg_fail(backend, "57P01", "terminating connection");
    return true;
}

bool pg_advisory_lock(struct pg_backend *backend, int64_t id, bool of_transaction,
                      int64_t patience_ms)
{
    const int64_t until_us = sim_now_us() + patience_ms * 1000;
    add(backend, id, of_transaction);
    if (!entry_of(backend, id)->granted)
        sim_count(SIM_PG_LOCK_WAITED);
    while (!entry_of(backend, id)->granted) {
        sim_wait(backend, until_us);
        if (pg_is_dead(backend))
            return false;
        if (entry_of(backend, id)->granted)
            break;
        if (!is_over(backend) && sim_now_us() >= until_us) {
            sim_count(SIM_PG_LOCK_LATE);
            pg_fail(backend, "55P03", "canceling statement due to lock timeout");
        }
        if (pg_is_dead(backend))
            return false;
        if (backend->failure.code[0]) {
            leave(entry_of(backend, id));
            return false;
        }
    }
    return true;
}

static void end_all(const struct pg_backend *backend, bool of_transactions_only)
{
    for (size_t i = advisory.n; i-- > 0;)
        if (advisory.all[i].backend == backend &&
            (advisory.all[i].of_transaction || !of_transactions_only))
            leave(&advisory.all[i]);
}

void pg_advisory_end_transaction(const struct pg_backend *backend)
{
    bool lost = backend->conn->eof || backend->terminate;
    for (size_t i = 0; lost && i < advisory.n; i++)
        if (advisory.all[i].backend == backend && advisory.all[i].granted &&
            advisory.all[i].of_transaction)
            sim_count(SIM_PG_LOCK_FREED);
    end_all(backend, true);
}

void pg_advisory_end_session(const struct pg_backend *backend)
{
    for (size_t i = 0; i < advisory.n; i++)
        if (advisory.all[i].backend == backend && advisory.all[i].granted) {
            sim_count(SIM_PG_LOCK_FREED);
            sim_tell("an advisory lock of server process %lld is free, as its session has ended",
                     (long long)backend->pid);
        }
    end_all(backend, false);
}

/* -- in statements ----------------------------------------------------------------------------- */

static void try_to_take(sqlite3_context *context, sqlite3_value *id, bool of_transaction)
{
    const bool unheld = first_of(sqlite3_value_int64(id)) == NULL;
    if (unheld)
        add(pg_looking(), sqlite3_value_int64(id), of_transaction);
    sqlite3_result_int(context, unheld);
}

static void f_try(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    try_to_take(context, args[0], false);
}

static void f_try_xact(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    try_to_take(context, args[0], true);
}

static void f_unlock(sqlite3_context *context, int n, sqlite3_value **args)
{
    struct advisory *entry = entry_of(pg_looking(), sqlite3_value_int64(args[0]));
    (void)n;
    sqlite3_result_int(context, entry != NULL);
    if (entry)
        leave(entry);
}

static void f_hash(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    sqlite3_result_int64(context, pg_advisory_id((const char *)sqlite3_value_text(args[0])));
}

static void f_nextval(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    sqlite3_result_int64(context, ++advisory.sequence);
}

/* Of an idle session: the model ends none for that. */
static void f_set_config(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    sqlite3_result_value(context, args[1]);
}

static void f_database(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    sqlite3_result_text(context, "shop", -1, SQLITE_STATIC);
}

/* A process that commits ends later. */
static void f_end(sqlite3_context *context, int n, sqlite3_value **args)
{
    const struct pg_backend *other = pg_server_find(sqlite3_value_int64(args[0]));
    (void)n;
    sqlite3_result_int(context, other && !other->committing && pg_server_terminate(other->pid));
}

void pg_advisory_add_functions(sqlite3 *to)
{
    static const struct {
        const char *name;
        int n;
        void (*f)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"pg_try_advisory_lock", 1, f_try},  {"pg_try_advisory_xact_lock", 1, f_try_xact},
        {"pg_advisory_unlock", 1, f_unlock}, {"hashtextextended", 2, f_hash},
        {"nextval", 1, f_nextval},           {"set_config", 3, f_set_config},
        {"current_database", 0, f_database}, {"pg_terminate_backend", 2, f_end}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        sqlite3_create_function(to, functions[i].name, functions[i].n, SQLITE_UTF8, NULL,
                                functions[i].f, NULL, NULL);
}

void pg_advisory_show(void)
{
    static size_t shown;
    sqlite3_stmt *statement;
    if (advisory.n == 0 && shown == 0)
        return;
    shown = advisory.n;
    sqlite3_exec(pg_rows(), "DELETE FROM pg_locks", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(pg_rows(),
                           "INSERT INTO pg_locks VALUES ('advisory', 1, 1, ?1 >> 32 & 4294967295,"
                           " ?1 & 4294967295, ?2, ?3, 'ExclusiveLock')",
                           -1, &statement, NULL) != SQLITE_OK)
        abort();
    for (size_t i = 0; i < advisory.n; i++) {
        sqlite3_bind_int64(statement, 1, advisory.all[i].id);
        sqlite3_bind_int(statement, 2, advisory.all[i].granted);
        sqlite3_bind_int64(statement, 3, advisory.all[i].backend->pid);
        sqlite3_step(statement);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
}
