/* Waiting for an advisory lock: on the server, in order, and bounded. */
#include "holder.h"
#include "lateness.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <stdatomic.h>
#include <string.h>

#define KEY "lock:item:1"

enum {
    LONG_MS = 20000,
    GRACE_MS = 3000,
    COMMAND_MS = 1500,
    CONNECTED_WITHIN_MS = 30000,
    WAIT_MS = 1500,    /* a waiter is seen meanwhile, on a busy machine, too */
    PATIENT_MS = 5000, /* long enough to observe the wait */
    WAITERS = 5
};

static const char *const levels[] = {"pg-advisory", "pg-advisory-xact"};
enum { LEVELS = 2 };

static lk_client *operator_client;

struct crowd {
    uint32_t waiters;
};

static bool crowd_waits(void *arg)
{
    lk_lock_info info;
    return lk_inspect(operator_client, KEY, &info) == LK_OK &&
           info.waiters == ((struct crowd *)arg)->waiters;
}

/* Waits until the server reports n waiters in its queue. */
static void await_waiters(uint32_t n)
{
    assert_true(wait_until(crowd_waits, &(struct crowd){n}, LONG_MS));
}

TEST_THAT(waiters_are_served_in_the_order_in_which_they_began)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first;
        lk_client *client = world_client(levels[i], &world_patient);
        struct asker askers[WAITERS];
        assert_int_equal(world_acquire(client, KEY, 0, 0, &first), LK_OK);
        for (uint32_t n = 0; n < WAITERS; n++) {
            askers[n] = (struct asker){.client = client, .key = KEY, .wait_ms = LONG_MS};
            asker_start(&askers[n]);
            await_waiters(n + 1);
        }
        assert_int_equal(lk_release(&first), LK_OK);
        for (int n = 0; n < WAITERS; n++) {
            assert_int_equal(asker_join(&askers[n]), LK_OK);
            for (int later = n + 1; later < WAITERS; later++)
                assert_false(asker_ended(&askers[later]));
            assert_int_equal(lk_release(&askers[n].hold), LK_OK);
        }
        lk_close(client);
    }
}

TEST_THAT(waiter_asks_once_however_long_it_waits)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first, second;
        lk_stats before, after;
        lk_client *holder = world_client(levels[i], &world_patient),
                  *client = world_client(levels[i], &world_patient);
        assert_int_equal(world_acquire(client, KEY, 0, 0, &first), LK_OK);
        assert_int_equal(lk_release(&first), LK_OK);
        assert_int_equal(world_acquire(holder, KEY, 0, 0, &first), LK_OK);
        lk_client_stats(client, &before);
        assert_int_equal(world_acquire(client, KEY, 0, WAIT_MS, &second), LK_TIMEOUT);
        lk_client_stats(client, &after);
        assert_in_range(after.commands - before.commands, 2, 12);
        assert_int_equal(lk_release(&first), LK_OK);
        lk_close(client);
        lk_close(holder);
    }
}

TEST_THAT(waiter_that_gave_up_leaves_nothing_in_the_queue)
{
    static const int64_t waits_ms[] = {0, 1, 10, 100, WAIT_MS};
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first, second;
        lk_client *holder = world_client(levels[i], &world_patient),
                  *client = world_client(levels[i], &world_patient);
        assert_int_equal(world_acquire(holder, KEY, 0, 0, &first), LK_OK);
        for (size_t n = 0; n < sizeof waits_ms / sizeof waits_ms[0]; n++) {
            int64_t start_ms = test_now_ms();
            assert_int_equal(world_acquire(client, KEY, 0, waits_ms[n], &second), LK_TIMEOUT);
            assert_in_range(test_now_ms() - start_ms, waits_ms[n], waits_ms[n] + GRACE_MS);
            assert_true(crowd_waits(&(struct crowd){0}));
        }
        assert_int_equal(lk_release(&first), LK_OK);
        assert_int_equal(world_acquire(client, KEY, 0, 0, &second), LK_OK);
        assert_int_equal(lk_release(&second), LK_OK);
        lk_close(client);
        lk_close(holder);
    }
}

TEST_THAT(killed_waiter_holds_nobody_up)
{
    char endpoints[WORLD_ENDPOINTS_MAX];
    world->endpoints(endpoints, sizeof endpoints, 0);
    for (int i = 0; i < LEVELS; i++) {
        struct holder dying;
        lk_hold first;
        struct holder_plan plan = {
            .guard = levels[i], .endpoints = endpoints, .key = KEY, .wait_ms = LONG_MS};
        lk_client *client = world_client(levels[i], &world_patient);
        struct asker asker = {.client = client, .key = KEY, .wait_ms = LONG_MS};
        assert_int_equal(world_acquire(client, KEY, 0, 0, &first), LK_OK);
        assert_true(holder_start(&dying, &plan));
        assert_true(holder_says(&dying, "waiting"));
        await_waiters(1);
        asker_start(&asker);
        await_waiters(2);
        holder_kill(&dying);
        assert_int_equal(lk_release(&first), LK_OK);
        assert_int_equal(asker_join(&asker), LK_OK);
        assert_int_equal(lk_release(&asker.hold), LK_OK);
        lk_close(client);
    }
}

/* A killed waiter leaves the queue even if the lock is not released. */
TEST_THAT(killed_waiter_leaves_the_queue)
{
    char endpoints[WORLD_ENDPOINTS_MAX];
    world->endpoints(endpoints, sizeof endpoints, 0);
    struct holder dying;
    lk_hold hold;
    struct holder_plan plan = {
        .guard = levels[0], .endpoints = endpoints, .key = KEY, .wait_ms = 10 * LONG_MS};
    lk_client *client = world_client(levels[0], &world_patient);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_true(holder_start(&dying, &plan));
    assert_true(holder_says(&dying, "waiting"));
    await_waiters(1);
    holder_kill(&dying);
    await_waiters(0);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

/* The server grants the lock, but the client never learns it. */
TEST_THAT(grant_whose_answer_was_lost_comes_free)
{
    enum { TRY = 1, LOCK = 2 };
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first, second;
        struct proxy *proxy = proxy_open(world->port());
        assert_non_null(proxy);
        lk_client *holder = world_client(levels[i], &world_patient);
        lk_options options = {.command_timeout_ms = COMMAND_MS};
        struct asker asker = {.client = world_client_at(levels[i], proxy_port(proxy), &options),
                              .key = KEY,
                              .wait_ms = WAIT_MS};
        assert_int_equal(lk_ping(asker.client), LK_OK); /* is connected */
        assert_int_equal(world_acquire(holder, KEY, 0, 0, &first), LK_OK);
        proxy_lose_answer(proxy, KEY, LOCK, PROXY_SILENCE);
        asker_start(&asker);
        await_waiters(1);
        assert_int_equal(lk_release(&first), LK_OK);
        assert_int_equal(asker_join(&asker), LK_UNKNOWN);
        assert_true(took_at_most(asker.took_ms, WAIT_MS + COMMAND_MS + GRACE_MS));
        assert_int_equal(proxy_lost(proxy), 1);
        assert_int_equal(world_acquire(holder, KEY, 0, GRACE_MS, &second), LK_OK);
        assert_int_equal(lk_release(&second), LK_OK);
        lk_close(asker.client);
        lk_close(holder);
        proxy_close(proxy);
    }
}

/* On a busy machine a new connection may take longer than COMMAND_MS: then nothing was done. */
static lk_status acquire_once_connected(lk_client *client, lk_hold *ret_hold)
{
    const int64_t deadline_ms = test_now_ms() + CONNECTED_WITHIN_MS;
    lk_status status;
    do
        status = world_acquire(client, KEY, 0, GRACE_MS, ret_hold);
    while (status == LK_UNAVAILABLE && test_now_ms() < deadline_ms);
    return status;
}

TEST_THAT(waiter_on_a_server_that_stands_still_gives_up_and_leaves_nothing)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first, second;
        lk_options options = {.command_timeout_ms = COMMAND_MS};
        lk_client *holder = world_client(levels[i], &world_patient);
        struct asker asker = {
            .client = world_client(levels[i], &options), .key = KEY, .wait_ms = WAIT_MS};
        assert_int_equal(world_acquire(holder, KEY, 0, 0, &first), LK_OK);
        asker_start(&asker);
        await_waiters(1);
        world_freeze(true);
        lk_status status = asker_join(&asker);
        int64_t left_ms;
        lk_status held = lk_check(&first, &left_ms); /* no other client can have it */
        world_freeze(false);
        assert_int_equal(status, LK_UNKNOWN);
        assert_int_equal(held, LK_OK);
        assert_true(took_at_most(asker.took_ms, WAIT_MS + COMMAND_MS + GRACE_MS));
        assert_int_equal(lk_release(&first), LK_OK);
        assert_int_equal(acquire_once_connected(asker.client, &second), LK_OK);
        assert_int_equal(lk_release(&second), LK_OK);
        lk_close(asker.client);
        lk_close(holder);
    }
}

static int64_t waiting_pid(void)
{
    return world_sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", NULL);
}

static bool another_waits(void *pid)
{
    int64_t now = waiting_pid();
    return now != 0 && now != *(int64_t *)pid;
}

TEST_THAT(waiter_whose_request_was_cancelled_asks_again)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first;
        lk_client *client = world_client(levels[i], &world_patient);
        struct asker asker = {.client = client, .key = KEY, .wait_ms = LONG_MS};
        assert_int_equal(world_acquire(client, KEY, 0, 0, &first), LK_OK);
        asker_start(&asker);
        await_waiters(1);
        int64_t pid = waiting_pid();
        assert_int_equal(world_sql("SELECT count(pg_cancel_backend(pid)) FROM pg_locks"
                                   " WHERE locktype = 'advisory' AND NOT granted",
                                   NULL),
                         1);
        assert_true(wait_until(another_waits, &pid, LONG_MS));
        assert_int_equal(lk_release(&first), LK_OK);
        assert_int_equal(asker_join(&asker), LK_OK);
        assert_int_equal(lk_release(&asker.hold), LK_OK);
        lk_close(client);
    }
}

/* The waiter's second request is still in the queue when the call ends. */
TEST_THAT(waiter_whose_connection_broke_gives_up_cleanly)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first;
        lk_client *holder = world_client(levels[i], &world_patient),
                  *client = world_client(levels[i], &world_patient);
        struct asker asker = {.client = client, .key = KEY, .wait_ms = 4 * WAIT_MS};
        assert_int_equal(world_acquire(holder, KEY, 0, 0, &first), LK_OK);
        asker_start(&asker);
        await_waiters(1);
        int64_t pid = waiting_pid();
        assert_int_equal(world_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_locks"
                                   " WHERE locktype = 'advisory' AND NOT granted",
                                   NULL),
                         1);
        assert_true(wait_until(another_waits, &pid, LONG_MS));
        assert_int_equal(asker_join(&asker), LK_TIMEOUT);
        await_waiters(0);
        assert_int_equal(lk_release(&first), LK_OK);
        for (int again = 0; again < 3; again++) {
            assert_int_equal(world_acquire(client, KEY, 0, 0, &first), LK_OK);
            assert_int_equal(lk_release(&first), LK_OK);
        }
        lk_close(client);
        lk_close(holder);
    }
}

/* A busy machine may take longer for a connection than a command has. */
static lk_status acquire_soon(lk_client *client, lk_hold *hold)
{
    lk_status status = LK_UNAVAILABLE;
    for (int tries = 0; status == LK_UNAVAILABLE && tries < 3; tries++)
        status = world_acquire(client, KEY, 0, 0, hold);
    return status;
}

TEST_THAT(waiters_of_a_dying_server_end_in_time)
{
    for (int i = 0; i < LEVELS; i++) {
        lk_hold first;
        lk_options options = {.command_timeout_ms = COMMAND_MS};
        lk_client *client = world_client(levels[i], &options);
        struct asker asker = {.client = client, .key = KEY, .wait_ms = PATIENT_MS};
        assert_int_equal(world_acquire(client, KEY, 0, 0, &first), LK_OK);
        asker_start(&asker);
        await_waiters(1);
        world_kill();
        lk_status status = asker_join(&asker);
        assert_true(status == LK_UNKNOWN || status == LK_UNAVAILABLE);
        assert_true(took_at_most(asker.took_ms, PATIENT_MS + COMMAND_MS + GRACE_MS));
        assert_int_not_equal(lk_release(&first), LK_OK);
        world_restart();
        assert_int_equal(acquire_soon(client, &first), LK_OK);
        assert_int_equal(lk_release(&first), LK_OK);
        lk_close(client);
    }
}

static int open_world(void **state)
{
    if (world_open(state) != 0)
        return -1;
    operator_client = world_client("pg-advisory", &world_patient);
    return operator_client != NULL ? 0 : -1;
}

static int close_world(void **state)
{
    lk_close(operator_client);
    return world_close(state);
}

GROUP_FIXTURE(open_world, close_world);

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    world = &family_postgres;
    return tests_run();
}
