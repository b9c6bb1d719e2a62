/* A store of each version that ever was, for the programs about its migration. */
#ifndef MIGRATE_RIG_H
#define MIGRATE_RIG_H

#include "fixture.h"
#include "old_stores.h"
#include "schema.h"
#include "upkeep.h"

static const struct old_store {
    const char *name, *tables;
    int version;
    bool postgres;
} stores[] = {
    {"version 1 of SQLite, with an index of the ledger", sqlite_1_with_index, 1, false},
    {"version 1 of SQLite", sqlite_1, 1, false},
    {"version 2 of SQLite", sqlite_2, 2, false},
    {"version 1 of PostgreSQL", postgres_1, 1, true},
    {"version 2 of PostgreSQL", postgres_2, 2, true},
};

enum { STORES = sizeof stores / sizeof *stores };

static const struct old_store *old; /* the one that a test is about */

static void run_sql(struct fixture *fixture, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void run_sql(struct fixture *fixture, const char *format, ...)
{
    char sql[8192];
    va_list args;
    va_start(args, format);
    assert_in_range(vsnprintf(sql, sizeof sql, format, args), 1, sizeof sql - 1);
    va_end(args);
    fixture_sql(fixture, sql);
}

static inline void make_old(struct fixture *fixture)
{
    fixture_sql(fixture, old->tables);
    if (old->postgres)
        run_sql(fixture, "INSERT INTO seckill_schema VALUES (%d)", old->version);
    else
        run_sql(fixture,
                "PRAGMA journal_mode = WAL; PRAGMA application_id = %d;"
                " PRAGMA user_version = %d",
                SCHEMA_APPLICATION_ID, old->version);
}

static inline void run_on(void *fixture, const char *sql)
{
    fixture_sql(fixture, sql);
}

static inline void fill_old(struct fixture *fixture)
{
    old_store_fill(old->version, run_on, fixture);
}

static inline int set_up(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    make_old(fixture);
    *state = fixture;
    return 0;
}

static inline void migrate(struct fixture *fixture)
{
    db_error error = {0};
    db_versions versions = {0};
    if (db_migrate(fixture->url, &versions, &error) != DB_OK)
        fail_msg("%s: %s", old->name, error.message);
    assert_int_equal(old->version, versions.from);
}

/* The ledger, row by row. */
struct rows {
    db_ledger_row rows[OLD_ROWS + OLD_LEGS + 4];
    int n;
};

static inline int keep_row(void *arg, const db_ledger_row *row)
{
    struct rows *rows = arg;
    assert_true(rows->n < (int)(sizeof rows->rows / sizeof *rows->rows));
    rows->rows[rows->n++] = *row;
    return 0;
}

static inline void read_rows(struct fixture *fixture, struct rows *ret)
{
    db_feed_place place = {0};
    bool more;
    ret->n = 0;
    assert_int_equal(
        DB_OK, db_read_ledger(fixture->reader, &place, DB_PAGE_MAX, keep_row, ret, &place, &more));
}

/* All tests of the program on each of the stores. Returns how many have failed. */
static inline int run_on_old_stores(void)
{
    int failed = 0;
    for (old = stores; old < stores + STORES; old++)
        failed += tests_run_as(old->name, old->postgres ? pg_start : NULL,
                               old->postgres ? pg_stop : NULL);
    return failed;
}

#endif
