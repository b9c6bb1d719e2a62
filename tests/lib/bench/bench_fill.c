#include "db_audit.h"
#include "bench_fill.h"
#include "bench.h"
#include "db.h"

#include <sqlite3.h>
#include <stdio.h>

/* ?1 in each: the number of copies. */
static const char *const more_items[] = {
    "INSERT INTO items WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
    " SELECT CAST(i AS TEXT), guard, initial_stock, stock, price, per_user_limit, reserve_s, fence,"
    " version, last_fence, epoch, chain FROM n, items WHERE id = '1' ORDER BY 1",
    "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after, fence, "
    "guard,"
    " instance, kind, at_us) WITH RECURSIVE n(i) AS"
    " (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
    " SELECT 'item:' || i, epoch, version_before, 'reset' || char(9) || 'item:' || i || ':' ||"
    " epoch, delta, before, after, fence, guard, instance, kind, at_us FROM n, ledger WHERE "
    "ledger.id = "
    "1 ORDER BY 1",
};

static const char *const more_past[] = {
    "CREATE TEMP TABLE last AS SELECT * FROM ledger WHERE resource = 'item:1'"
    " ORDER BY version_before DESC LIMIT 1",
    "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after, fence, "
    "guard,"
    " instance, kind, at_us) WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
    " SELECT resource, epoch, version_before + i, 'past-' || i, delta, before - i, after - i, "
    "fence,"
    " guard, instance, kind, at_us FROM n, last",
    "INSERT INTO orders WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
    " SELECT printf('0PAST%021d', i), item_id, 'past-' || i, quantity, amount, 1, version,"
    " last_fence, item_epoch, created_us, expires_us, counted_user"
    " FROM n, (SELECT * FROM orders WHERE item_id = '1' LIMIT 1)",
    "INSERT INTO idempotency WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
    " SELECT printf('past-%012d', i), request, http_status, body, at_us"
    " FROM n, (SELECT * FROM idempotency LIMIT 1)",
    "UPDATE items SET stock = stock - ?1, version = version + ?1 WHERE id = '1'",
};

static void run(sqlite3 *file, const char *sql, long n)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(file, sql, -1, &statement, NULL) != SQLITE_OK)
        bench_die(sqlite3_errmsg(file));
    if (sqlite3_bind_parameter_count(statement) > 0)
        sqlite3_bind_int64(statement, 1, n);
    if (sqlite3_step(statement) != SQLITE_DONE)
        bench_die(sqlite3_errmsg(file));
    sqlite3_finalize(statement);
}

/* Copied rows have no hash of their own. */
static int check_row(void *arg, const db_audit_row *row)
{
    long *n = arg;
    if (row->broken > 0 || row->lost_updates > 0 || row->lost_amount > 0 || row->missing > 0)
        bench_die(row->resource);
    ++*n;
    return 0;
}

/* Asks the store directly: over HTTP such a large audit would exceed the request deadline. */
static void audit(const char *file)
{
    char url[512];
    db_error error;
    db *store;
    db_reader *reader;
    long n = 0;
    snprintf(url, sizeof url, "sqlite:%s", file);
    if (db_open(&(db_options){.url = url}, &store, &error) != DB_OK)
        bench_die(error.message);
    if (db_reader_open(store, &reader, &error) != DB_OK ||
        db_audit(reader, NULL, check_row, &n, &error) != DB_OK)
        bench_die(error.message);
    if (n == 0)
        bench_die("nothing to audit");
    db_reader_close(reader);
    db_close(store);
}

static void fill(const char *file, long n, const char *const *statements, size_t n_statements)
{
    sqlite3 *handle;
    if (sqlite3_open_v2(file, &handle, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        bench_die(file);
    run(handle, "BEGIN", n);
    for (size_t i = 0; i < n_statements; i++)
        run(handle, statements[i], n);
    run(handle, "COMMIT", n);
    sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_close(handle);
    audit(file);
}

void bench_fill_items(const char *file, long n)
{
    fill(file, n, more_items, sizeof more_items / sizeof more_items[0]);
}

void bench_fill_past(const char *file, long n)
{
    fill(file, n, more_past, sizeof more_past / sizeof more_past[0]);
}
