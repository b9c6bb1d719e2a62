/* Versions of rows in SQLite, and which of them a snapshot sees. */
#include "columns.h"
#include "sim_pg_model.h"
#include "sim_threads.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    sqlite3 *db;
    int64_t next_xid, next_row;
    unsigned char states[PG_XIDS_MAX];
    struct pg_backend *backend;
    const struct pg_snapshot *snapshot;
} rows;

static const struct {
    const char *name, *columns;
} tables[] = {
    {"items", ITEM_COLUMNS},
    {"accounts", ACCOUNT_COLUMNS},
    {"orders", ORDER_COLUMNS},
    {"ledger", LEDGER_COLUMNS},
    {"idempotency", ANSWER_COLUMNS},
    {"fences", "key, fence"},
    {"tasks", "name, instance, at_us, done"},
    {"archives", PART_COLUMNS},
    {"carried", CARRIED_COLUMNS},
    {"carried_orders", CARRIED_ORDER_COLUMNS},
    {"lockkit_locks", "key, token, until_ms, fence"},
    {"lockkit_rows", "key, token"},
};
enum { TABLES_N = sizeof tables / sizeof tables[0] };

/* -- transactions ------------------------------------------------------------------------------ */

int64_t pg_new_xid(void)
{
    assert(rows.next_xid < PG_XIDS_MAX);
    rows.states[rows.next_xid] = XID_RUNS;
    return rows.next_xid++;
}

enum pg_xid_state pg_xid_state(int64_t xid)
{
    return xid > 0 && xid < rows.next_xid ? (enum pg_xid_state)rows.states[xid] : XID_NONE;
}

void pg_set_xid_state(int64_t xid, enum pg_xid_state state)
{
    rows.states[xid] = (unsigned char)state;
}

int64_t pg_next_row(void)
{
    return rows.next_row++;
}

void pg_take_snapshot(struct pg_snapshot *ret)
{
    ret->next = rows.next_xid;
    ret->n = 0;
    for (int64_t xid = 1; xid < rows.next_xid; xid++)
        if (rows.states[xid] == XID_RUNS) {
            assert(ret->n < PG_SNAPSHOT_MAX);
            ret->running[ret->n++] = xid;
        }
}

void pg_look(struct pg_backend *backend, const struct pg_snapshot *snapshot)
{
    rows.backend = backend;
    rows.snapshot = snapshot;
}

struct pg_backend *pg_looking(void)
{
    return rows.backend;
}

bool pg_is_seen(int64_t xid)
{
    if (xid == 0)
        return false;
    if (rows.backend && xid == rows.backend->xid)
        return true;
    if (pg_xid_state(xid) != XID_COMMITTED)
        return false;
    const struct pg_snapshot *snapshot = rows.snapshot;
    if (snapshot && xid >= snapshot->next)
        return false;
    for (size_t i = 0; snapshot && i < snapshot->n; i++)
        if (snapshot->running[i] == xid)
            return false;
    return true;
}

/* -- functions of the statements --------------------------------------------------------------- */

static void f_seen(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    sqlite3_result_int(context, pg_is_seen(sqlite3_value_int64(args[0])));
}

static void f_aborted(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    sqlite3_result_int(context, pg_xid_state(sqlite3_value_int64(args[0])) == XID_ABORTED);
}

static void f_own_xid(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    sqlite3_result_int64(context, pg_backend_xid(rows.backend));
}

static void f_xid_if_assigned(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    if (rows.backend->xid > 0)
        sqlite3_result_int64(context, rows.backend->xid);
}

static void f_xact_status(sqlite3_context *context, int n, sqlite3_value **args)
{
    static const char *const texts[] = {"", "in progress", "committed", "aborted"};
    int64_t xid = sqlite3_value_int64(args[0]);
    (void)n;
    if (xid >= rows.next_xid)
        sqlite3_result_error(context, "22023 transaction ID is in the future", -1);
    else
        sqlite3_result_text(context, texts[pg_xid_state(xid)], -1, SQLITE_STATIC);
}

static void f_backend_pid(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    sqlite3_result_int64(context, rows.backend->pid);
}

static void f_clock_us(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    sqlite3_result_int64(context, sim_wall_begin_us + sim_now_us());
}

static void f_clock_ms(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    sqlite3_result_int64(context, (sim_wall_begin_us + sim_now_us()) / 1000);
}

static void f_terminate(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    sqlite3_result_int(context, pg_server_terminate(sqlite3_value_int64(args[0])));
}

/* Every relation that is asked for is there. */
static void f_same(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    sqlite3_result_value(context, args[0]);
}

/* -- the tables -------------------------------------------------------------------------------- */

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
    char sql[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (sqlite3_exec(rows.db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(rows.db));
        abort();
    }
}

static void add_function(const char *name, int n, int flags,
                         void (*f)(sqlite3_context *, int, sqlite3_value **))
{
    sqlite3_create_function(rows.db, name, n, SQLITE_UTF8 | flags, NULL, f, NULL, NULL);
}

sqlite3 *pg_rows(void)
{
    return rows.db;
}

void pg_rows_begin(void)
{
    memset(&rows, 0, sizeof rows);
    rows.next_xid = rows.next_row = 1;
    if (sqlite3_open_v2(":memory:", &rows.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK)
        abort();
    add_function("seen", 1, 0, f_seen);
    add_function("aborted", 1, 0, f_aborted);
    add_function("own_xid", 0, 0, f_own_xid);
    add_function("pg_current_xact_id_if_assigned", 0, 0, f_xid_if_assigned);
    add_function("pg_xact_status", 1, 0, f_xact_status);
    add_function("pg_backend_pid", 0, 0, f_backend_pid);
    add_function("clock_us", 0, 0, f_clock_us);
    add_function("pg_terminate_backend", 1, 0, f_terminate);
    add_function("clock_ms", 0, 0, f_clock_ms);
    pg_advisory_add_functions(rows.db);
    add_function("to_regclass", 1, 0, f_same);
    for (size_t i = 0; i < TABLES_N; i++) {
        const char *name = tables[i].name;
        run("CREATE TABLE %s_v (%s, row, vid INTEGER PRIMARY KEY, xmin, xmax DEFAULT 0)", name,
            tables[i].columns);
        run("CREATE VIEW %s AS SELECT * FROM %s_v WHERE seen(xmin) AND NOT seen(xmax)", name, name);
        run("CREATE INDEX %s_row ON %s_v (row)", name, name);
        if (strcmp(name, "ledger") != 0)
            run("CREATE INDEX %s_key ON %s_v (%.*s)", name, name,
                (int)strcspn(tables[i].columns, ","), tables[i].columns);
    }
    run("CREATE TABLE seckill_schema (version)");
    run("CREATE TABLE pg_stat_activity (pid, backend_start_us, backend_xid)");
    run("CREATE TABLE pg_database (oid, datname)");
    run("INSERT INTO pg_database VALUES (1, current_database())");
    run("CREATE TABLE pg_locks (locktype, objsubid, database, classid, objid, granted, pid, mode)");
    run("CREATE TABLE stood (token)");
    run("CREATE TABLE asked (c1, c2, c3, n)");
}

size_t sim_pg_free_rows(void)
{
    const int64_t xid = pg_new_xid();
    pg_set_xid_state(xid, XID_COMMITTED);
    pg_look(NULL, NULL);
    run("UPDATE lockkit_rows_v SET xmax = %lld WHERE seen(xmin) AND NOT seen(xmax) AND"
        " token IN (SELECT token FROM stood)",
        (long long)xid);
    const size_t n = (size_t)sqlite3_changes(rows.db);
    run("DELETE FROM stood");
    run("INSERT INTO stood SELECT token FROM lockkit_rows");
    return n;
}

void pg_rows_crash(void)
{
    int64_t last = 0;
    for (int64_t xid = 1; xid < rows.next_xid; xid++)
        if (rows.states[xid] == XID_COMMITTED)
            last = xid;
        else
            rows.states[xid] = XID_ABORTED;
    pg_look(NULL, NULL);
    for (size_t i = 0; i < TABLES_N; i++) {
        run("DELETE FROM %s_v WHERE NOT seen(xmin)", tables[i].name);
        run("UPDATE %s_v SET xmax = 0 WHERE xmax <> 0 AND NOT seen(xmax)", tables[i].name);
    }
    /* What stood in the log behind the last commit may be on the disk, or not. */
    rows.next_xid = last + 1 + sim_below((uint32_t)(rows.next_xid - last));
}
