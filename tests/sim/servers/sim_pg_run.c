/*
 * Runs a statement as the documentation of PostgreSQL has it: what it sees (13.2), what it waits
 * for, and what it does about a row that another transaction has changed meanwhile. At "read
 * committed" it evaluates its condition again on the newest version (EvalPlanQual, in
 * src/backend/executor/README); above, it fails with 40001.
 */
#include "sim_pg_model.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_N = 4, AT_ROW = 90, AT_VID = 91 }; /* numbers of our own parameters (sim_pg_sql.c) */
enum { ROWS_MAX = 64, OID_TEXT = 25, OID_TEXTS = 1009, OID_BIGINTS = 1016, HEAD_BYTES = 20 };

struct run {
    struct pg_backend *backend;
    struct pg_sql *sql;
    const Oid *types;
    const struct pg_arg *args;
    int n, element; /* of arrays */
    bool binary;
    PGresult *result;
    int64_t changed;
};

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

static void add_row(struct run *run, sqlite3_stmt *statement)
{
    const int at = PQntuples(run->result);
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        uint64_t number = htobe64((uint64_t)sqlite3_column_int64(statement, i));
        const char *text = (const char *)&number;
        int length = (int)sizeof number, type = sqlite3_column_type(statement, i);
        if (type != SQLITE_INTEGER || !run->binary) {
            text = (const char *)sqlite3_column_text(statement, i);
            length = type == SQLITE_NULL ? -1 : sqlite3_column_bytes(statement, i);
        }
        if (!PQsetvalue(run->result, at, i, (char *)text, length))
            abort();
    }
}

/* -- arguments --------------------------------------------------------------------------------- */

static int array_size(const struct pg_arg *arg)
{
    uint32_t n;
    memcpy(&n, arg->bytes + 12, sizeof n);
    return (int)be32toh(n);
}

static struct pg_arg element_of(const struct pg_arg *arg, int element)
{
    const char *at = arg->bytes + HEAD_BYTES;
    for (;; element--) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        length = be32toh(length);
        at += sizeof length;
        if (element == 0)
            return (struct pg_arg){at, (int)length};
        at += length;
    }
}

static void bind_one(sqlite3_stmt *statement, int at, bool is_text, bool binary,
                     const struct pg_arg *arg)
{
    uint64_t number;
    if (is_text) {
        sqlite3_bind_text(statement, at, arg->bytes, arg->length, SQLITE_TRANSIENT);
        return;
    }
    if (!binary) {
        sqlite3_bind_int64(statement, at, strtoll(arg->bytes, NULL, 10));
        return;
    }
    assert(arg->length == (int)sizeof number);
    memcpy(&number, arg->bytes, sizeof number);
    sqlite3_bind_int64(statement, at, (int64_t)be64toh(number));
}

/* Values that the statement does not have are left out. */
static void bind(const struct run *run, sqlite3_stmt *statement)
{
    for (int i = 0; i < run->n; i++) {
        const bool is_array = run->types[i] == OID_TEXTS || run->types[i] == OID_BIGINTS;
        const bool is_text = run->types[i] == OID_TEXTS || run->types[i] == OID_TEXT;
        struct pg_arg arg = is_array ? element_of(&run->args[i], run->element) : run->args[i];
        if (i < sqlite3_bind_parameter_count(statement))
            bind_one(statement, i + 1, is_text, run->binary, &arg);
    }
}

static void bind_number(sqlite3_stmt *statement, int at, int64_t value)
{
    if (sqlite3_bind_int64(statement, at, value) != SQLITE_OK)
        abort();
}

/* -- steps ------------------------------------------------------------------------------------- */

/* SQLITE_ROW or SQLITE_DONE; else the statement has failed. */
static int step(struct run *run, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return code;
    const char *why = sqlite3_errmsg(pg_rows());
    char sqlstate[6];
    if (strspn(why, "0123456789") != 5) {
        fprintf(stderr, "the model of PostgreSQL: %s\n", why);
        abort();
    }
    snprintf(sqlstate, sizeof sqlstate, "%.5s", why);
    pg_fail(run->backend, sqlstate, why + 6);
    return code;
}

static void look(const struct run *run, bool now)
{
    pg_look(run->backend, now ? NULL : &run->backend->snapshot);
}

static void ask(struct run *run, sqlite3_stmt *statement)
{
    while (step(run, statement) == SQLITE_ROW)
        add_row(run, statement);
    sqlite3_reset(statement);
}

/* The version of the row that is seen; 0: none. */
static int64_t live(struct run *run, int64_t row, bool now)
{
    look(run, now);
    bind_number(run->sql->live, AT_ROW, row);
    int64_t vid =
        step(run, run->sql->live) == SQLITE_ROW ? sqlite3_column_int64(run->sql->live, 0) : 0;
    sqlite3_reset(run->sql->live);
    return vid;
}

/* Makes the row's new version, if it qualifies. */
static void write_version(struct run *run, int64_t row)
{
    const int64_t old = live(run, row, true);
    bind(run, run->sql->write);
    bind_number(run->sql->write, AT_ROW, row);
    step(run, run->sql->write);
    sqlite3_reset(run->sql->write);
    if (run->backend->failure.code[0] || sqlite3_changes(pg_rows()) == 0)
        return;
    const int64_t vid = sqlite3_last_insert_rowid(pg_rows());
    bind_number(run->sql->end, AT_VID, old);
    step(run, run->sql->end);
    sqlite3_reset(run->sql->end);
    run->changed++;
    if (run->sql->returns) {
        bind_number(run->sql->result, AT_VID, vid);
        ask(run, run->sql->result);
    }
}

static bool conflict_with_snapshot(struct run *run)
{
    sim_count(SIM_PG_SERIALIZATION);
    return pg_fail(run->backend, "40001", "could not serialize access due to concurrent update");
}

/* Locks a row that the snapshot has as version vid. *ret_newer: it has a newer version now. */
static bool lock(struct run *run, int64_t row, int64_t vid, bool *ret_newer)
{
    if (!pg_lock_row(run->backend, run->sql->table, row, run->sql->lock))
        return false;
    *ret_newer = live(run, row, true) != vid;
    if (*ret_newer && run->backend->tx_repeatable)
        return conflict_with_snapshot(run);
    if (*ret_newer)
        sim_count(SIM_PG_RECHECK);
    return true;
}

/* -- statements -------------------------------------------------------------------------------- */

static int find(struct run *run, bool now, int64_t ret[ROWS_MAX][3])
{
    int n = 0;
    look(run, now);
    bind(run, run->sql->find);
    while (step(run, run->sql->find) == SQLITE_ROW) {
        assert(n < ROWS_MAX);
        for (int i = 0; i < sqlite3_column_count(run->sql->find); i++)
            ret[n][i] = sqlite3_column_int64(run->sql->find, i);
        n++;
    }
    sqlite3_reset(run->sql->find);
    return n;
}

static void run_select(struct run *run)
{
    pg_advisory_show();
    look(run, false);
    bind(run, run->sql->read);
    ask(run, run->sql->read);
}

static void run_lock(struct run *run)
{
    int64_t found[ROWS_MAX][3];
    bool any_newer = false;
    int n = find(run, false, found);
    for (int i = 0; i < n; i++) {
        bool newer;
        if (!lock(run, found[i][1], found[i][0], &newer))
            return;
        any_newer |= newer;
    }
    if (n == 0)
        return;
    look(run, any_newer);
    bind(run, run->sql->read);
    ask(run, run->sql->read);
}

static void run_update(struct run *run)
{
    int64_t found[ROWS_MAX][3];
    int n = find(run, false, found);
    for (int i = 0; i < n; i++) {
        bool newer;
        if (!lock(run, found[i][1], found[i][0], &newer))
            return;
        write_version(run, found[i][1]);
    }
}

static void run_delete(struct run *run)
{
    int64_t found[ROWS_MAX][3];
    int n = find(run, false, found);
    for (int i = 0; i < n; i++) {
        bool newer;
        if (!lock(run, found[i][1], found[i][0], &newer))
            return;
        look(run, true);
        bind(run, run->sql->again);
        bind_number(run->sql->again, AT_ROW, found[i][1]);
        const bool qualifies = step(run, run->sql->again) == SQLITE_ROW;
        const int64_t vid = qualifies ? sqlite3_column_int64(run->sql->again, 0) : 0;
        sqlite3_reset(run->sql->again);
        if (!qualifies)
            continue;
        bind_number(run->sql->end, AT_VID, vid);
        step(run, run->sql->end);
        sqlite3_reset(run->sql->end);
        run->changed++;
        if (run->sql->returns) {
            bind_number(run->sql->result, AT_VID, vid);
            ask(run, run->sql->result);
        }
    }
}

/* Waits for those who insert the same key. False: failed. *ret: the row that has it, or 0. */
static bool find_key(struct run *run, int64_t *ret)
{
    for (;;) {
        int64_t found[ROWS_MAX][3], other = 0;
        *ret = 0;
        int n = run->sql->keyed ? find(run, true, found) : 0;
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

static void insert_new(struct run *run)
{
    look(run, true);
    bind(run, run->sql->insert);
    bind_number(run->sql->insert, AT_ROW, pg_next_row());
    step(run, run->sql->insert);
    sqlite3_reset(run->sql->insert);
    run->changed++;
    if (run->sql->returns) {
        bind_number(run->sql->result, AT_VID, sqlite3_last_insert_rowid(pg_rows()));
        ask(run, run->sql->result);
    }
}

static void run_insert(struct run *run)
{
    int64_t row;
    pg_backend_xid(run->backend);
    if (!find_key(run, &row))
        return;
    if (row == 0) {
        insert_new(run);
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
    const int64_t seen = live(run, row, false);
    if (run->backend->tx_repeatable &&
        (seen == 0 || (run->sql->do_update && seen != live(run, row, true))))
        conflict_with_snapshot(run);
    else if (run->sql->do_update)
        write_version(run, row);
}

/* FOR UPDATE SKIP LOCKED, then the update; or the insert, where there is no row. */
static void run_take(struct run *run)
{
    int64_t found[ROWS_MAX][3];
    int n = find(run, false, found);
    for (int i = 0; i < n; i++) {
        bool newer;
        if (pg_row_is_locked(run->backend, run->sql->table, found[i][1], run->sql->lock))
            sim_count(SIM_PG_SKIPPED);
        else if (lock(run, found[i][1], found[i][0], &newer))
            write_version(run, found[i][1]);
    }
    look(run, false);
    bind(run, run->sql->read);
    const bool there = step(run, run->sql->read) == SQLITE_ROW;
    sqlite3_reset(run->sql->read);
    if (there || run->backend->failure.code[0])
        return;
    run->sql = run->sql->made;
    run_insert(run);
}

static void give_number(struct run *run, int64_t number)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)number);
    if (!PQsetvalue(run->result, PQntuples(run->result), 0, text, length))
        abort();
}

/* $1: the key, $2: how long in ms. */
static void run_advisory(struct run *run)
{
    if (pg_advisory_lock(run->backend, pg_advisory_id(run->args[0].bytes),
                         strstr(run->sql->text, "_xact_") != NULL,
                         strtoll(run->args[1].bytes, NULL, 10)))
        give_number(run, 0);
}

/* $1: the process, $2: whose it must be, $3: how long it is waited for, in ms. */
static void run_end(struct run *run)
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

/* The elements of the arguments, as rows of "asked". */
static void fill_asked(struct run *run)
{
    sqlite3_exec(pg_rows(), "DELETE FROM asked", NULL, NULL, NULL);
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(pg_rows(), "INSERT INTO asked VALUES (?1, ?2, ?3, ?4)", -1, &statement,
                           NULL) != SQLITE_OK)
        abort();
    for (run->element = 0; run->element < array_size(&run->args[0]); run->element++) {
        bind(run, statement);
        bind_number(statement, AT_N, run->element + 1);
        sqlite3_step(statement);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    run->element = 0;
}

static void run_rows(struct run *run)
{
    switch (run->sql->kind) {
    case PG_SELECT:
        if (run->sql->unnests)
            fill_asked(run);
        run_select(run);
        return;
    case PG_LOCK:
        run_lock(run);
        return;
    case PG_UPDATE:
        run_update(run);
        return;
    case PG_DELETE:
        run_delete(run);
        return;
    case PG_INSERT:
        for (int n = run->sql->of_many ? array_size(&run->args[0]) : 1;
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
    struct run run = {
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
