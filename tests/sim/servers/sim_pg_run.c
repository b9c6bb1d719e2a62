/*
 * Runs a statement as the documentation of PostgreSQL has it: what it sees (13.2), what it waits
 * for, and what it does about a row that another transaction has changed meanwhile. At "read
 * committed" it evaluates its condition again on the newest version (EvalPlanQual, in
 * src/backend/executor/README); above, it fails with 40001.
 */
#include "sim_pg_step.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pg_fail(struct pg_backend *backend, const char *code, const char *message)
{
    struct pg_failure *failure = &backend->failure;
    if (failure->code[0])
        return false;
    snprintf(failure->code, sizeof failure->code, "%s", code);
    snprintf(failure->message, sizeof failure->message, "%s", message);
    if (!failure->severity)
        failure->severity = "ERROR";
    return false;
}

static void run_select(struct pg_run *run)
{
    pg_advisory_show();
    pg_read(run, false);
}

static void run_lock(struct pg_run *run)
{
    int64_t found[PG_FOUND_MAX][3];
    bool any_newer = false;
    int n = pg_find(run, false, found);
    for (int i = 0; i < n; i++) {
        bool newer;
        if (!pg_lock_version(run, found[i][1], found[i][0], &newer))
            return;
        any_newer |= newer;
    }
    if (n == 0)
        return;
    pg_read(run, any_newer);
}

/* An UPDATE or a DELETE. */
static void run_change(struct pg_run *run, void (*change)(struct pg_run *run, int64_t row))
{
    int64_t found[PG_FOUND_MAX][3];
    int n = pg_find(run, false, found);
    for (int i = 0; i < n; i++) {
        bool newer;
        if (!pg_lock_version(run, found[i][1], found[i][0], &newer))
            return;
        change(run, found[i][1]);
    }
}

/* Waits for transactions that insert the same key. False: failed. *ret: the row that has it, or 0.
 */
static bool find_key(struct pg_run *run, int64_t *ret)
{
    for (;;) {
        int64_t found[PG_FOUND_MAX][3], other = 0;
        *ret = 0;
        int n = run->sql->keyed ? pg_find(run, true, found) : 0;
        for (int i = 0; i < n; i++) {
            enum pg_xid_state state = pg_xid_state(found[i][2]);
            if (state == XID_COMMITTED || found[i][2] == run->backend->xid)
                *ret = found[i][1];
            else if (state == XID_RUNS)
                other = found[i][2];
        }
        if (*ret != 0 || other == 0)
            return true;
        if (!pg_wait_for(run->backend, other))
            return false;
    }
}

static void run_insert(struct pg_run *run)
{
    int64_t row;
    pg_backend_xid(run->backend);
    if (!find_key(run, &row))
        return;
    if (row == 0) {
        pg_insert_row(run);
        return;
    }
    if (!run->sql->do_update)
        sim_count(SIM_PG_TAKEN);
    if (!run->sql->do_nothing && !run->sql->do_update) {
        pg_fail(run->backend, "23505", "duplicate key value violates unique constraint");
        return;
    }
    if (run->sql->do_update && !pg_lock_row(run->backend, run->sql->table, row, run->sql->lock))
        return;
    const int64_t seen = pg_live(run, row, false);
    if (run->backend->tx_repeatable &&
        (seen == 0 || (run->sql->do_update && seen != pg_live(run, row, true))))
        pg_conflict(run);
    else if (run->sql->do_update)
        pg_write_version(run, row);
}

/* FOR UPDATE SKIP LOCKED, then the update; or the insert, where there is no row. */
static void run_take(struct pg_run *run)
{
    int64_t found[PG_FOUND_MAX][3];
    int n = pg_find(run, false, found);
    for (int i = 0; i < n; i++) {
        bool newer;
        if (pg_row_is_locked(run->backend, run->sql->table, found[i][1], run->sql->lock))
            sim_count(SIM_PG_SKIPPED);
        else if (pg_lock_version(run, found[i][1], found[i][0], &newer))
            pg_write_version(run, found[i][1]);
    }
    if (pg_finds_any(run) || run->backend->failure.code[0])
        return;
    run->sql = run->sql->made;
    run_insert(run);
}

static void give_number(struct pg_run *run, int64_t number)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)number);
    if (!PQsetvalue(run->result, PQntuples(run->result), 0, text, length))
        abort();
}

/* $1: the key, $2: how long in ms. */
static void run_advisory(struct pg_run *run)
{
    if (pg_advisory_lock(run->backend, pg_advisory_id(run->args[0].bytes),
                         strstr(run->sql->text, "_xact_") != NULL,
                         strtoll(run->args[1].bytes, NULL, 10)))
        give_number(run, 0);
}

/* $1: the process, $2: whose it must be, $3: how long it is waited for, in ms. */
static void run_end(struct pg_run *run)
{
    const int64_t until_us = sim_now_us() + strtoll(run->args[2].bytes, NULL, 10) * 1000;
    struct pg_backend *other = pg_server_find(strtoll(run->args[0].bytes, NULL, 10));
    if (!other || strcmp(other->conn->name, run->args[1].bytes) != 0)
        return;
    sim_count(SIM_PG_LOCK_SETTLED);
    pg_server_terminate(other->pid);
    while (!other->ended && !pg_is_dead(run->backend) && sim_now_us() < until_us)
        sim_wait(&other->ended, until_us);
    give_number(run, other->ended);
}

static void run_rows(struct pg_run *run)
{
    switch (run->sql->kind) {
    case PG_SELECT:
        if (run->sql->unnests)
            pg_fill_asked(run);
        run_select(run);
        return;
    case PG_LOCK:
        run_lock(run);
        return;
    case PG_UPDATE:
        run_change(run, pg_write_version);
        return;
    case PG_DELETE:
        run_change(run, pg_delete_version);
        return;
    case PG_INSERT:
        for (int n = run->sql->of_many ? pg_array_size(&run->args[0]) : 1;
             run->element < n && run->backend->failure.code[0] == '\0' && !pg_is_dead(run->backend);
             run->element++)
            run_insert(run);
        return;
    case PG_TAKE:
        run_take(run);
        return;
    case PG_ADVISORY:
        run_advisory(run);
        return;
    case PG_END:
        run_end(run);
        return;
    default:
        abort();
    }
}

PGresult *pg_run_sql(struct pg_backend *backend, struct pg_sql *sql, const Oid *types,
                     const struct pg_arg *args, int n, bool binary)
{
    struct pg_run run = {
        .backend = backend, .sql = sql, .types = types, .args = args, .n = n, .binary = binary};
    if (!backend->snapshot_kept || !backend->tx_repeatable)
        pg_take_snapshot(&backend->snapshot);
    backend->snapshot_kept = true;
    const int columns = sql->kind == PG_ADVISORY || sql->kind == PG_END ? 1
                        : sql->kind == PG_TAKE ? sqlite3_column_count(sql->result)
                        : sql->read            ? sqlite3_column_count(sql->read)
                        : sql->returns         ? sqlite3_column_count(sql->result)
                                               : 0;
    run.result = pg_new_result(0, columns, binary);
    run_rows(&run);
    if (columns > 0)
        return run.result;
    PQclear(run.result);
    return pg_new_result(run.changed, 0, binary);
}
