#include "sim_pg_step.h"
#include "sim_world.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_N = 4, AT_ROW = 90, AT_VID = 91 }; /* numbers of our own parameters (sim_pg_sql.c) */
enum { OID_TEXT = 25, OID_TEXTS = 1009, OID_BIGINTS = 1016, HEAD_BYTES = 20 };

/* -- arguments --------------------------------------------------------------------------------- */

int pg_array_size(const struct pg_arg *arg)
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
static void bind(const struct pg_run *run, sqlite3_stmt *statement)
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

/* -- what a statement reads -------------------------------------------------------------------- */

/* SQLITE_ROW or SQLITE_DONE; else the statement has failed. */
static int step(struct pg_run *run, sqlite3_stmt *statement)
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

static void look(const struct pg_run *run, bool now)
{
    pg_look(run->backend, now ? NULL : &run->backend->snapshot);
}

static void add_row(struct pg_run *run, sqlite3_stmt *statement)
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

static void ask(struct pg_run *run, sqlite3_stmt *statement)
{
    while (step(run, statement) == SQLITE_ROW)
        add_row(run, statement);
    sqlite3_reset(statement);
}

void pg_read(struct pg_run *run, bool now)
{
    look(run, now);
    bind(run, run->sql->read);
    ask(run, run->sql->read);
}

bool pg_finds_any(struct pg_run *run)
{
    look(run, false);
    bind(run, run->sql->read);
    const bool any = step(run, run->sql->read) == SQLITE_ROW;
    sqlite3_reset(run->sql->read);
    return any;
}

int pg_find(struct pg_run *run, bool now, int64_t ret[PG_FOUND_MAX][3])
{
    int n = 0;
    look(run, now);
    bind(run, run->sql->find);
    while (step(run, run->sql->find) == SQLITE_ROW) {
        assert(n < PG_FOUND_MAX);
        for (int i = 0; i < sqlite3_column_count(run->sql->find); i++)
            ret[n][i] = sqlite3_column_int64(run->sql->find, i);
        n++;
    }
    sqlite3_reset(run->sql->find);
    return n;
}

void pg_fill_asked(struct pg_run *run)
{
    sqlite3_exec(pg_rows(), "DELETE FROM asked", NULL, NULL, NULL);
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(pg_rows(), "INSERT INTO asked VALUES (?1, ?2, ?3, ?4)", -1, &statement,
                           NULL) != SQLITE_OK)
        abort();
    for (run->element = 0; run->element < pg_array_size(&run->args[0]); run->element++) {
        bind(run, statement);
        bind_number(statement, AT_N, run->element + 1);
        sqlite3_step(statement);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    run->element = 0;
}

/* -- what it does with one row ----------------------------------------------------------------- */

int64_t pg_live(struct pg_run *run, int64_t row, bool now)
{
    look(run, now);
    bind_number(run->sql->live, AT_ROW, row);
    int64_t vid =
        step(run, run->sql->live) == SQLITE_ROW ? sqlite3_column_int64(run->sql->live, 0) : 0;
    sqlite3_reset(run->sql->live);
    return vid;
}

/* Counts a change, and gives what RETURNING has of this version. */
static void note_change(struct pg_run *run, int64_t vid)
{
    run->changed++;
    if (run->sql->returns) {
        bind_number(run->sql->result, AT_VID, vid);
        ask(run, run->sql->result);
    }
}

static void end_version(struct pg_run *run, int64_t vid)
{
    bind_number(run->sql->end, AT_VID, vid);
    step(run, run->sql->end);
    sqlite3_reset(run->sql->end);
}

void pg_write_version(struct pg_run *run, int64_t row)
{
    const int64_t old = pg_live(run, row, true);
    bind(run, run->sql->write);
    bind_number(run->sql->write, AT_ROW, row);
    step(run, run->sql->write);
    sqlite3_reset(run->sql->write);
    if (run->backend->failure.code[0] || sqlite3_changes(pg_rows()) == 0)
        return;
    const int64_t vid = sqlite3_last_insert_rowid(pg_rows());
    end_version(run, old);
    note_change(run, vid);
}

bool pg_conflict(struct pg_run *run)
{
    sim_count(SIM_PG_SERIALIZATION);
    return pg_fail(run->backend, "40001", "could not serialize access due to concurrent update");
}

bool pg_lock_version(struct pg_run *run, int64_t row, int64_t vid, bool *ret_newer)
{
    if (!pg_lock_row(run->backend, run->sql->table, row, run->sql->lock))
        return false;
    *ret_newer = pg_live(run, row, true) != vid;
    if (*ret_newer && run->backend->tx_repeatable)
        return pg_conflict(run);
    if (*ret_newer)
        sim_count(SIM_PG_RECHECK);
    return true;
}

void pg_delete_version(struct pg_run *run, int64_t row)
{
    look(run, true);
    bind(run, run->sql->again);
    bind_number(run->sql->again, AT_ROW, row);
    const bool qualifies = step(run, run->sql->again) == SQLITE_ROW;
    const int64_t vid = qualifies ? sqlite3_column_int64(run->sql->again, 0) : 0;
    sqlite3_reset(run->sql->again);
    if (!qualifies)
        return;
    end_version(run, vid);
    note_change(run, vid);
}

void pg_insert_row(struct pg_run *run)
{
    look(run, true);
    bind(run, run->sql->insert);
    bind_number(run->sql->insert, AT_ROW, pg_next_row());
    step(run, run->sql->insert);
    sqlite3_reset(run->sql->insert);
    note_change(run, sqlite3_last_insert_rowid(pg_rows()));
}
