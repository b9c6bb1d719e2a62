/* --lock-db: the database of the guards whose locks are rows. */
#include "guard.h"
#include "tests.h"

#include "process.h"
#include "sandbox.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

static struct sandbox *sandbox;
static struct config config;
static char file[SANDBOX_TEXT_MAX];

static struct guards *guards_of(const char *store, const char *lock_db)
{
    struct guards *guards;
    snprintf(config.guard, sizeof config.guard, "none");
    snprintf(config.db, sizeof config.db, "%s", store);
    snprintf(config.lock_db, sizeof config.lock_db, "%s", lock_db);
    config.lease_ms = 30000;
    assert_int_equal(guards_open(&config, &seams_none, &guards), 0);
    return guards;
}

/* May fail at first: the database may be slower than the client's timeout. */
static bool takes(void *arg)
{
    lk_hold hold;
    lk_client *client = arg;
    return lk_try_acquire(client, "lock:item:1", &hold) == LK_OK && lk_release(&hold) == LK_OK;
}

static void expect_takes(struct guards *guards, const char *name)
{
    lk_error error = {.message = ""};
    lk_client *client = guard_client(guard_find(guards, name), &error);
    assert_string_equal(error.message, "");
    assert_true(wait_until(takes, client, PATIENCE_MS));
}

TEST_THAT(locks_of_a_sqlite_store_stand_in_a_file_beside_it)
{
    char store[SANDBOX_TEXT_MAX + 16], beside[SANDBOX_TEXT_MAX + 16];
    snprintf(file, sizeof file, "%.200s/shop.db", sandbox_dir(sandbox));
    snprintf(store, sizeof store, "sqlite:%s", file);
    snprintf(beside, sizeof beside, "%s-locks", file);
    struct guards *guards = guards_of(store, "");
    expect_takes(guards, "sql-unique");
    assert_int_equal(access(beside, F_OK), 0);
    assert_int_equal(access(file, F_OK), -1);
    guards_close(guards);
}

TEST_THAT(an_advisory_lock_cannot_be_had_in_a_sqlite_file)
{
    char store[SANDBOX_TEXT_MAX + 16];
    snprintf(store, sizeof store, "sqlite:%.200s/shop.db", sandbox_dir(sandbox));
    struct guards *guards = guards_of(store, "");
    lk_error error = {.message = ""};
    assert_null(guard_client(guard_find(guards, "pg-advisory"), &error));
    assert_non_null(strstr(error.message, "postgres://"));
    assert_non_null(strstr(error.message, "sql-unique"));
    guards_close(guards);
}

TEST_THAT(locks_of_a_postgres_store_stand_in_its_database)
{
    struct sandbox_server *postgres = sandbox_postgres(sandbox, NULL);
    assert_non_null(postgres);
    struct guards *guards = guards_of(postgres->url, "");
    expect_takes(guards, "sql-unique");
    expect_takes(guards, "pg-advisory");
    guards_close(guards);
    guards = guards_of("sqlite:elsewhere.db", postgres->url);
    expect_takes(guards, "sql-unique");
    guards_close(guards);
}

int main(void)
{
    if (sandbox_open(&sandbox) != 0)
        return 1;
    int failed = tests_run();
    sandbox_close(sandbox);
    return failed;
}
