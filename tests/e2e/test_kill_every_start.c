/* kill -9 of the service at each of its system calls, from its start on until it is ready: on a
 * store that a killed service left, and on an empty one, whose tables it creates. Nothing is lost,
 * and the next start succeeds. lib/shop/kill_rig.h says which share of the calls is tried. */
#include "kill_rig.h"
#include "process.h"
#include "sandbox_process.h"
#include "tests.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 61 }; /* usually */

static struct reply reply;

static bool is_ready_or_ended(void *killer)
{
    return kill_call_ended(killer) || sandbox_seckilld_answers(kill_rig.shop.service);
}

/* Starts the dead service, and kills it at its nth call, or when it is ready. */
static bool kill_start(int n)
{
    struct sandbox_server *service = kill_rig.shop.service;
    char *argv[SANDBOX_ARGS_MAX + 1] = {NULL}, *next = service->args, log[SANDBOX_TEXT_MAX + 16];
    for (int i = 0; i < service->n_args; i++, next += strlen(next) + 1)
        argv[i] = next;
    snprintf(log, sizeof log, "%s/killed.log", sandbox_dir(kill_rig.shop.sandbox));
    struct kill_call *killer = kill_call_start(argv, log, n);
    assert_non_null(killer);
    assert_true(wait_until(is_ready_or_ended, killer, SHOP_WAIT_MS));
    struct killed killed = kill_call_end(killer);
    assert_false(killed.by_itself);
    client_close(&kill_rig.shop.client);
    return killed.at_call;
}

/* The log of the store has one order, which no checkpoint has copied. */
static bool kill_recovery(const void *arg, int n)
{
    (void)arg;
    client_close(&kill_rig.shop.client);
    assert_true(shop_stop(kill_rig.shop.service)); /* empties the log */
    assert_int_equal(sandbox_restart(kill_rig.shop.service), 0);
    struct kill_request order = kill_answered_order();
    sandbox_signal(kill_rig.shop.service, SIGKILL);
    bool hit = kill_start(n);
    kill_judge(&order, true);
    assert_int_equal(sandbox_restart(kill_rig.shop.service), 0);
    kill_decide(&order, &reply);
    assert_string_equal(reply.body, kill_rig.answer.body);
    return hit;
}

static void a_start_killed_at_any_call_loses_nothing(void **state)
{
    (void)state;
    int kills = kill_at_each("start", STEP, kill_recovery, NULL);
    assert_true(kills * kill_rig.step > 100);
}

static void remove_store(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[SANDBOX_TEXT_MAX + 64];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0] && kill_rig.postgres == NULL; i++) {
        snprintf(path, sizeof path, "%.290s%s", kill_rig.url + strlen("sqlite:"), ends[i]);
        unlink(path);
    }
    if (kill_rig.postgres == NULL)
        return;
    PGconn *handle = PQconnectdb(kill_rig.url);
    PGresult *result = PQexec(handle, "SET client_min_messages = warning;"
                                      "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(handle);
}

/* Tables and indexes that the store has. */
static int64_t count_schema(void)
{
    return books_number(&kill_rig.books, kill_rig.postgres == NULL
                                             ? "SELECT count(*) FROM sqlite_master"
                                             : "SELECT count(*) FROM pg_class c JOIN pg_namespace n"
                                               " ON n.oid = relnamespace WHERE nspname = 'public'");
}

static bool kill_creation(const void *whole, int n)
{
    sandbox_signal(kill_rig.shop.service, SIGKILL);
    remove_store();
    bool hit = kill_start(n);
    int64_t made = count_schema();
    if (made != 0 && made != *(const int64_t *)whole)
        fail_msg("killed at call %d: a part of the tables is there", n);
    assert_int_equal(sandbox_restart(kill_rig.shop.service), 0);
    kill_fill_books();
    struct kill_request order = kill_order();
    kill_decide(&order, &reply);
    return hit;
}

static void a_store_whose_creation_is_killed_at_any_call_is_whole_after_the_next_start(void **state)
{
    (void)state;
    sandbox_signal(kill_rig.shop.service, SIGKILL);
    const int64_t whole = count_schema();
    assert_true(whole > 10);
    int kills = kill_at_each("creation", STEP, kill_creation, &whole);
    assert_true(kills * kill_rig.step > 100);
    sandbox_signal(kill_rig.shop.service, SIGKILL);
    assert_true(books_agree(&kill_rig.books));
    assert_int_equal(count_schema(), whole);
}

static int open_sqlite(void **state)
{
    (void)state;
    return kill_open(false, "on", "redis-token");
}

static int open_postgres(void **state)
{
    (void)state;
    return kill_open(true, "on", "redis-token");
}

#define TEST(name, world) cmocka_unit_test_setup_teardown(name, open_##world, kill_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_start_killed_at_any_call_loses_nothing, sqlite),
        TEST(a_start_killed_at_any_call_loses_nothing, postgres),
        TEST(a_store_whose_creation_is_killed_at_any_call_is_whole_after_the_next_start, sqlite),
        TEST(a_store_whose_creation_is_killed_at_any_call_is_whole_after_the_next_start, postgres),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
