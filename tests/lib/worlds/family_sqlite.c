/* One SQLite file, and the guards whose locks are rows. */
#include "lock_world.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { BUSY_MS = 5000, SQL_MAX = 512 };

static char path[SANDBOX_TEXT_MAX + 16];

static const char *const guards[] = {"sql-unique", "sql-unique-forever", NULL};

static bool start(struct sandbox *sandbox)
{
    snprintf(path, sizeof path, "%s/locks.db", sandbox_dir(sandbox));
    return true;
}

static void endpoints(char *ret, size_t size, int proxy_port)
{
    assert(proxy_port == 0);
    snprintf(ret, size, "sqlite:%s", path);
}

static int port(void)
{
    return 0;
}

/* Runs a query like any other client of the file. Returns the first integer of the result, or 0. A
 * table that does not exist counts as empty. */
static int64_t ask(const char *sql)
{
    sqlite3 *handle;
    sqlite3_stmt *statement = NULL;
    int64_t answer = 0;
    int code = sqlite3_open(path, &handle);
    assert(code == SQLITE_OK);
    sqlite3_busy_timeout(handle, BUSY_MS);
    if (sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
            answer = sqlite3_column_int64(statement, 0);
        while (code == SQLITE_ROW)
            code = sqlite3_step(statement);
        assert(code == SQLITE_DONE);
    } else {
        assert(strstr(sqlite3_errmsg(handle), "no such table") != NULL);
    }
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return answer;
}

/* format: with one %s, the key. */
static int64_t ask_of(const char *format, const char *key)
{
    char sql[SQL_MAX];
    snprintf(sql, sizeof sql, format, key);
    return ask(sql);
}

static void wipe(void)
{
    ask("DELETE FROM lockkit_locks");
    ask("DELETE FROM lockkit_rows");
}

#define LEFT_MS "until_ms - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
#define HELD    "token IS NOT NULL AND " LEFT_MS " > 0"

static bool exists(const char *key)
{
    return ask_of("SELECT 1 FROM lockkit_locks WHERE key = '%s' AND " HELD, key) == 1 ||
           ask_of("SELECT 1 FROM lockkit_rows WHERE key = '%s'", key) == 1;
}

static bool remove_lock(const char *key)
{
    return ask_of("UPDATE lockkit_locks SET token = NULL WHERE key = '%s' AND " HELD " RETURNING 1",
                  key) == 1 ||
           ask_of("DELETE FROM lockkit_rows WHERE key = '%s' RETURNING 1", key) == 1;
}

static int64_t left_ms(const char *key)
{
    int64_t left = ask_of("SELECT " LEFT_MS " FROM lockkit_locks WHERE key = '%s' AND " HELD, key);
    return left == 0 ? -1 : left;
}

static int64_t leftovers(void)
{
    return ask("SELECT count(*) FROM lockkit_locks WHERE token IS NOT NULL") +
           ask("SELECT count(*) FROM lockkit_rows");
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    (void)guard;
    return lease_ms;
}

const struct lock_family family_sqlite = {
    .name = "sqlite",
    .guards = guards,
    .start = start,
    .endpoints = endpoints,
    .port = port,
    .wipe = wipe,
    .exists = exists,
    .remove = remove_lock,
    .left_ms = left_ms,
    .leftovers = leftovers,
    .crash_bound_ms = crash_bound_ms,
};
