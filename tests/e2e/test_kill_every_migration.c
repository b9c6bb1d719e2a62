/* kill -9 of "seckilld migrate" at its system calls: the old store is whole, or the new one is, and
 * the next try ends well. lib/shop/kill_rig.h says which share of the calls is tried. */
#include "kill_rig.h"
#include "old_stores.h"
#include "process.h"
#include "program.h"
#include "schema.h"
#include "tests.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP = 19 /* usually */, MIGRATED_ROWS = OLD_ROWS + OLD_LEGS };

static struct sandbox *sandbox;
static struct books books;
static char url[SANDBOX_TEXT_MAX + 32], setting[SANDBOX_TEXT_MAX + 40];

static void run_on(void *store, const char *sql)
{
    assert_int_equal(sqlite3_exec(store, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* A store of version 2, as a killed service leaves it: all of it is in the log. */
static void make_old(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", "-lock"};
    const char *file = url + strlen("sqlite:");
    char path[SANDBOX_TEXT_MAX + 64];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", file, ends[i]);
        unlink(path);
    }
    sqlite3 *store;
    assert_int_equal(sqlite3_open(file, &store), SQLITE_OK);
    assert_int_equal(sqlite3_exec(store,
                                  "PRAGMA journal_mode = WAL; PRAGMA application_id = 0x5ec1713d;"
                                  "PRAGMA user_version = 2",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(store, sqlite_2, NULL, NULL, NULL), SQLITE_OK);
    old_store_fill(2, run_on, store);
    sqlite3_db_config(store, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(store);
}

static int64_t number(const char *sql)
{
    return books_number(&books, sql);
}

/* The tables and rows of one version, and nothing of the other. */
static void expect_whole(void)
{
    const int64_t version = number("PRAGMA user_version");
    assert_true(version == 2 || version == SCHEMA_VERSION);
    assert_int_equal(number("SELECT count(*) FROM pragma_integrity_check"
                            " WHERE integrity_check <> 'ok'"),
                     0);
    assert_int_equal(number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'old_%'"), 0);
    assert_int_equal(number("SELECT count(*) FROM sqlite_schema WHERE name = 'fences'"),
                     version == SCHEMA_VERSION);
    assert_int_equal(number("SELECT count(*) FROM sqlite_schema WHERE name = 'locks'"),
                     version == 2);
    assert_int_equal(number("SELECT count(*) FROM ledger"),
                     version == 2 ? (int)OLD_ROWS : (int)MIGRATED_ROWS);
    assert_int_equal(number("SELECT sum(stock) FROM items"), 9);
    assert_int_equal(number("SELECT count(*) FROM orders"), 6);
    assert_int_equal(number("SELECT count(*) FROM idempotency"), 11);
}

static bool has_ended(void *killer)
{
    return kill_call_ended(killer);
}

static bool kill_migration(const void *arg, int n)
{
    (void)arg;
    char log[SANDBOX_TEXT_MAX + 32];
    char *argv[] = {(char *)shop_binary("seckilld"), "migrate", setting, NULL};
    snprintf(log, sizeof log, "%s/migrate.log", sandbox_dir(sandbox));
    make_old();
    struct kill_call *killer = kill_call_start(argv, log, n);
    assert_non_null(killer);
    assert_true(wait_until(has_ended, killer, SHOP_WAIT_MS));
    const bool hit = kill_call_end(killer).at_call;
    expect_whole();
    int status = -1;
    assert_true(
        program_ends(program_start((const char *const *)argv, log, NULL), SHOP_WAIT_MS, &status));
    assert_int_equal(status, 0);
    expect_whole();
    assert_int_equal(number("PRAGMA user_version"), SCHEMA_VERSION);
    return hit;
}

TEST_THAT(a_migration_killed_at_any_call_leaves_one_whole_store)
{
    make_old();
    expect_whole();
    int kills = kill_at_each("migration", STEP, kill_migration, NULL);
    assert_true(kills * kill_rig.step > 100);
}

static int open_sandbox(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(url, sizeof url, "sqlite:%s/old.db", sandbox_dir(sandbox));
    snprintf(setting, sizeof setting, "--db=%s", url);
    books = (struct books){.url = url, .folder = sandbox_dir(sandbox)};
    return 0;
}

static int close_sandbox(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

GROUP_FIXTURE(open_sandbox, close_sandbox);
