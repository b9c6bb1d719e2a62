/* pg-advisory and pg-advisory-xact: holds whose connection ends, and fences. */
#include "holder.h"
#include "lock_world.h"
#include "lateness.h"
#include "process.h"
#include "tests.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define KEY "lock:item:1"

enum {
    LONG_MS = 20000,
    GRACE_MS = 3000,
    COMMAND_MS = 500,
    SOON_MS = 1000,
    IDLE_MS = 5000,
    RAISES = 40
};

static const char *const levels[] = {"pg-advisory", "pg-advisory-xact"};
enum { LEVELS = 2 };

struct news {
    _Atomic int told;
    lk_loss cause;
    lk_status check; /* inside the callback */
};

static void on_lost(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct news *news = arg;
    news->cause = cause;
    news->check = lk_check(hold, NULL);
    atomic_fetch_add(&news->told, 1);
}

static bool is_told(void *arg)
{
    return atomic_load(&((struct news *)arg)->told) == 1;
}

static lk_client *impatient(const char *guard)
{
    return world_client(guard, &(lk_options){.command_timeout_ms = COMMAND_MS});
}

/* Closed connections end on the server a little later. */
static bool connections_are(void *wanted)
{
    return world_sql(
               "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'lockkit %'",
               NULL) == *(int64_t *)wanted;
}

static void expect_connections(int64_t n)
{
    assert_true(wait_until(connections_are, &n, GRACE_MS));
}

/* -- the connection ends -------------------------------------------------------------------------
 */

GROUP_FIXTURE(world_open, world_close);

TEST_THAT(holder_whose_connection_ends_is_told_though_it_asks_nothing)
{
    for (int i = 0; i < LEVELS; i++) {
        struct news news = {0};
        lk_hold hold, second;
        lk_client *client = world_client(levels[i], &world_patient);
        lk_request request = {.key = KEY, .on_lost = on_lost, .on_lost_arg = &news};
        assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
        assert_int_equal(lk_check(&hold, NULL), LK_OK);
        assert_true(world->remove(KEY));
        assert_true(wait_until(is_told, &news, GRACE_MS));
        assert_int_equal(news.cause, LK_LOSS_SESSION);
        assert_int_equal(news.check, LK_LOST);
        assert_int_equal(lk_check(&hold, NULL), LK_LOST);
        assert_int_equal(lk_confirm(&hold), LK_LOST);
        assert_int_equal(world_acquire(client, KEY, 0, 0, &second), LK_OK);
        assert_true(second.fence > hold.fence);
        assert_int_equal(lk_release(&hold), LK_LOST);
        assert_int_equal(lk_confirm(&second), LK_OK);
        assert_int_equal(lk_release(&second), LK_OK);
        assert_int_equal(atomic_load(&news.told), 1);
        lk_close(client);
    }
}

static bool check_says_lost(void *hold)
{
    return lk_check(hold, NULL) == LK_LOST;
}

TEST_THAT(holder_without_callback_finds_it_by_looking)
{
    lk_hold hold;
    lk_client *client = world_client("pg-advisory", &world_patient);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_true(world->remove(KEY));
    assert_true(wait_until(check_says_lost, &hold, GRACE_MS));
    assert_int_equal(lk_release(&hold), LK_LOST);
    lk_close(client);
}

TEST_THAT(killed_holders_lock_is_free_at_once)
{
    char endpoints[WORLD_ENDPOINTS_MAX];
    world->endpoints(endpoints, sizeof endpoints, 0);
    for (int i = 0; i < LEVELS; i++) {
        struct holder holder;
        lk_hold hold;
        struct holder_plan plan = {.guard = levels[i], .endpoints = endpoints, .key = KEY};
        lk_client *client = world_client(levels[i], &world_patient);
        assert_true(holder_start(&holder, &plan));
        assert_true(holder_says(&holder, "held"));
        assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_TIMEOUT);
        holder_kill(&holder);
        int64_t start_ms = test_now_ms();
        assert_int_equal(world_acquire(client, KEY, 0, LONG_MS, &hold), LK_OK);
        assert_true(ended_within(start_ms, SOON_MS));
        assert_int_equal(lk_release(&hold), LK_OK);
        lk_close(client);
    }
}

/* -- by hand, as a program with a pool would
 * -------------------------------------------------------
 */

static PGconn *by_hand(void)
{
    PGconn *handle = PQconnectdb(world_postgres->url);
    assert_int_equal(PQstatus(handle), CONNECTION_OK);
    return handle;
}

static void say(PGconn *handle, const char *sql)
{
    PGresult *result = PQexec(handle, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(handle));
    PQclear(result);
}

/* After an error and a ROLLBACK the connection returns to its pool: is the lock free? */
TEST_THAT(rollback_frees_the_transactions_lock_and_not_the_sessions)
{
    lk_hold hold;
    lk_client *client = world_client("pg-advisory", &world_patient);
    PGconn *pooled = by_hand();
    say(pooled, "BEGIN");
    say(pooled, "SELECT pg_advisory_lock(hashtextextended('" KEY "', 0))");
    say(pooled, "ROLLBACK");
    assert_int_equal(world_acquire(client, KEY, 0, 300, &hold), LK_TIMEOUT); /* stuck */
    say(pooled, "SELECT pg_advisory_lock(hashtextextended('" KEY "', 0))");  /* a new user enters */
    say(pooled, "SELECT pg_advisory_unlock_all()");
    say(pooled, "BEGIN");
    say(pooled, "SELECT pg_advisory_xact_lock(hashtextextended('" KEY "', 0))");
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_TIMEOUT);
    say(pooled, "ROLLBACK");
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    PQfinish(pooled);
    lk_close(client);
}

TEST_THAT(both_levels_and_other_clients_exclude_each_other)
{
    lk_hold hold, other;
    lk_client *session = world_client(levels[0], &world_patient),
              *xact = world_client(levels[1], &world_patient);
    assert_int_equal(world_acquire(session, KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(world_acquire(xact, KEY, 0, 0, &other), LK_TIMEOUT);
    assert_int_equal(world_acquire(xact, "lock:item:2", 0, 0, &other), LK_OK);
    assert_int_equal(world_sql("SELECT pg_try_advisory_lock(hashtextextended($1, 0))::int", KEY),
                     0);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(world_sql("SELECT pg_try_advisory_lock(hashtextextended($1, 0))::int", KEY),
                     1);
    assert_int_equal(lk_release(&other), LK_OK);
    lk_close(session);
    lk_close(xact);
}

struct late {
    lk_client *client;
    lk_hold hold;
    lk_status status;
};

static void *acquire_late(void *arg)
{
    struct late *late = arg;
    late->status = world_acquire(late->client, KEY, 0, 0, &late->hold);
    return NULL;
}

static bool somebody_waits_for_the_numbers(void *arg)
{
    (void)arg;
    return world_sql("SELECT count(*) FROM pg_locks WHERE relation = 'lockkit.fence'::regclass "
                     "AND NOT granted",
                     NULL) == 1;
}

/* The lock is lost between its grant and its fence. The next holder may have drawn its fence by
 * then, and the late one's would be higher. */
TEST_THAT(a_fence_that_was_drawn_after_the_lock_was_lost_is_no_grant)
{
    PGconn *other = by_hand();
    for (int i = 0; i < LEVELS; i++) {
        pthread_t thread;
        struct late late = {.client = world_client(levels[i], &world_patient)};
        assert_int_equal(world_acquire(late.client, KEY, 0, 0, &late.hold), LK_OK);
        assert_int_equal(lk_release(&late.hold), LK_OK);
        say(other, "BEGIN");
        say(other, "ALTER SEQUENCE lockkit.fence CACHE 1"); /* nextval() waits */
        assert_int_equal(pthread_create(&thread, NULL, acquire_late, &late), 0);
        assert_true(wait_until(somebody_waits_for_the_numbers, NULL, LONG_MS));
        assert_true(world->remove(KEY));
        say(other, "ROLLBACK");
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_not_equal(late.status, LK_OK);
        lk_close(late.client);
    }
    PQfinish(other);
}

/* A connection that returns to the client's pool holds no lock. */
TEST_THAT(released_connections_are_used_again_and_hold_nothing)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_client *client = world_client(levels[i], &world_patient);
        for (int round = 0; round < 20; round++) {
            lk_hold hold;
            assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
            assert_int_equal(lk_confirm(&hold), LK_OK);
            assert_int_equal(lk_release(&hold), LK_OK);
        }
        expect_connections(1 + i); /* pg-advisory-xact has one more, for fences */
        assert_int_equal(world->leftovers(), 0);
        lk_close(client);
    }
}

/* -- fences --------------------------------------------------------------------------------------
 */

static uint64_t granted_fence(lk_client *client)
{
    lk_hold hold;
    assert_int_equal(world_acquire(client, KEY, 0, LONG_MS, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    return hold.fence;
}

static bool answers(void *client)
{
    return lk_ping(client) == LK_OK;
}

TEST_THAT(fences_rise_across_a_crash_of_the_server)
{
    lk_client *clients[LEVELS] = {impatient(levels[0]), impatient(levels[1])};
    uint64_t last = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LEVELS; i++) {
            uint64_t fence = granted_fence(clients[i]);
            assert_true(fence > last);
            last = fence;
        }
        world_kill();
        world_restart();
        for (int i = 0; i < LEVELS; i++)
            assert_true(wait_until(answers, clients[i], GRACE_MS));
    }
    for (int i = 0; i < LEVELS; i++)
        lk_close(clients[i]);
}

/* The server must store the first number after a restart. */
TEST_THAT(fence_of_a_hold_is_outbid_though_the_server_is_killed_under_it)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_client *client = world_client(levels[i], &world_patient);
        uint64_t last = 0;
        for (int round = 0; round < 3; round++) {
            lk_hold hold;
            assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
            world_kill();
            world_restart();
            assert_true(hold.fence > last);
            last = hold.fence;
            assert_int_equal(lk_release(&hold), LK_LOST);
        }
        lk_close(client);
    }
}

TEST_THAT(raised_fence_is_a_floor_for_its_key_alone)
{
    lk_client *client = world_client("pg-advisory", &world_patient);
    assert_int_equal(lk_raise_fence(client, KEY, 1000000), LK_OK);
    uint64_t first = granted_fence(client), second;
    assert_true(first > 1000000);
    assert_int_equal(lk_raise_fence(client, KEY, 10), LK_OK);
    second = granted_fence(client);
    assert_true(second > first);
    lk_hold hold;
    assert_int_equal(world_acquire(client, "lock:item:2", 0, 0, &hold), LK_OK);
    assert_true(hold.fence < 1000000);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(lk_raise_fence(client, KEY, UINT64_MAX), LK_INVALID);
    lk_close(client);
}

struct raiser {
    pthread_t thread;
    lk_client *client;
    _Atomic uint64_t seen;
    lk_status failed;
};

static void *raise_often(void *arg)
{
    struct raiser *raiser = arg;
    for (int i = 0; i < RAISES && raiser->failed == LK_OK; i++)
        raiser->failed =
            lk_raise_fence(raiser->client, KEY, atomic_load(&raiser->seen) + (uint64_t)i);
    return NULL;
}

/* Two threads raise the fence while the lock is granted. No grant may have a lower fence. */
TEST_THAT(fences_rise_while_they_are_raised)
{
    lk_client *client = world_client("pg-advisory", &world_patient);
    struct raiser raisers[2] = {{.client = client, .seen = 1}, {.client = client, .seen = 1}};
    uint64_t last = 0;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&raisers[i].thread, NULL, raise_often, &raisers[i]), 0);
    bool rises = true;
    for (int i = 0; i < 2 * RAISES; i++) {
        uint64_t fence = granted_fence(client);
        rises = rises && fence > last;
        last = fence;
        atomic_store(&raisers[i % 2].seen, fence + 100);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(raisers[i].thread, NULL);
        assert_int_equal(raisers[i].failed, LK_OK);
    }
    assert_true(rises);
    lk_close(client);
}

static int wipe(void **state)
{
    (void)state;
    world->wipe();
    return 0;
}

/* The server cannot end a stopped process at once, so the outcome is unknown. */
TEST_THAT(force_release_of_a_holder_who_does_not_end_is_unknown)
{
    lk_hold hold;
    lk_client *client = world_client("pg-advisory", &world_patient),
              *tool = world_client("pg-advisory", &world_patient);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    pid_t holder =
        (pid_t)world_sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted", NULL);
    assert_int_equal(kill(holder, SIGSTOP), 0);
    lk_status status = lk_force_release(tool, KEY);
    assert_int_equal(kill(holder, SIGCONT), 0);
    assert_int_equal(status, LK_UNKNOWN);
    assert_true(world_frees(KEY, GRACE_MS));
    assert_int_equal(lk_release(&hold), LK_LOST);
    lk_close(tool);
    lk_close(client);
}

TEST_FIXTURE(wipe, NULL);

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    world = &family_postgres;
    return tests_run();
}
