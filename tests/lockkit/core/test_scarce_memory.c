/* The Nth allocation fails, for every N. The caller gets an error, the process goes on, and no lock
 * stays longer than its lease. */
#include "redis_waiters.h"
#include "lock_world.h"
#include "scarce.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define KEY "lock:item:1"

enum {
    PIECES_MAX = 2000,
    LEASE_MS = 100,
    WAIT_MS = 20,
    FREE_MS = 10000,
    TIMEOUT_MS = 200,
    LINES = 400 /* enough to make the table grow */
};

static void line_without_memory_is_refused(void **state)
{
    (void)state;
    int refused = 1, failures = 0;
    for (int n = 1; refused > 0; n++) {
        lk_redis_waiter *waiter[LINES] = {NULL};
        char name[LK_REDIS_LINE_NAME_MAX];
        scarce_from(n, false);
        lk_redis_waiters *waiters = lk_redis_waiters_open();
        for (int i = 0; i < LINES && waiters != NULL; i++) {
            bool first = false;
            snprintf(name, sizeof name, "line %d", i);
            waiter[i] = lk_redis_waiters_enter(waiters, name, &first);
            assert_true(waiter[i] == NULL || first);
        }
        refused = scarce_end();
        for (int i = 0; i < LINES && waiters != NULL; i++) {
            snprintf(name, sizeof name, "line %d", i);
            failures += waiter[i] == NULL;
            lk_redis_waiters_hand_over(waiters, name, &(lk_redis_handover){.fence = 7});
            lk_redis_handover handover;
            if (waiter[i] != NULL)
                assert_true(lk_redis_waiters_take_handover(waiters, waiter[i], &handover));
            if (waiter[i] != NULL)
                lk_redis_waiters_leave(waiters, waiter[i]);
        }
        if (waiters != NULL)
            lk_redis_waiters_close(waiters);
        assert_true(n < 10 * LINES);
    }
    assert_true(failures > LINES);
}

/* Acquires the lock, lets another request time out, releases the lock, acquires it again. */
static void work(const char *guard, const char *endpoints)
{
    const lk_options options = {.command_timeout_ms = TIMEOUT_MS, .retry_max_ms = 2};
    lk_client *client;
    if (lk_open(guard, endpoints, &options, &client, NULL) != LK_OK)
        return;
    const lk_request request = {.key = KEY, .lease_ms = LEASE_MS, .wait_ms = WAIT_MS};
    lk_hold holds[3];
    lk_acquire(client, &request, &holds[0]);
    lk_acquire(client, &request, &holds[1]);
    lk_release(&holds[0]);
    lk_release(&holds[1]);
    lk_acquire(client, &request, &holds[2]);
    lk_release(&holds[2]);
    lk_close(client);
}

static void guards_without_memory_end_nothing(void **state)
{
    (void)state;
    char endpoints[WORLD_ENDPOINTS_MAX];
    world->endpoints(endpoints, sizeof endpoints, 0);
    for (size_t i = 0; world->guards[i] != NULL; i++) {
        const char *guard = world->guards[i];
        bool ends = (lk_provider_find(guard)->caps & LK_CAP_LEASE) != 0;
        int n = 1, refused = 1;
        if (!ends)
            continue; /* its locks may stay for ever */
        for (; refused > 0 && n < PIECES_MAX; n++) {
            scarce_from(n, n % 4 == 0);
            work(guard, endpoints);
            refused = scarce_end();
            if (!world_frees(KEY, FREE_MS))
                fail_msg("%s: still locked after piece %d was refused", guard, n);
        }
        if (refused > 0 || n < 3)
            fail_msg("%s: %d pieces and no end", guard, n);
    }
}

/* While the kernel refuses to wait for the nodes, the client pauses between its tries. */
static void redlock_that_cannot_wait_does_not_spin(void **state)
{
    (void)state;
    enum { PAUSES_MAX = 20 * TIMEOUT_MS }; /* of at least 1 ms, in several rounds */
    char endpoints[WORLD_ENDPOINTS_MAX];
    const lk_options options = {.command_timeout_ms = TIMEOUT_MS};
    lk_client *client;
    lk_hold hold;
    world->endpoints(endpoints, sizeof endpoints, 0);
    assert_int_equal(lk_open("redlock", endpoints, &options, &client, NULL), LK_OK);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    scarce_from(1, true);
    lk_status status = lk_try_acquire(client, KEY, &hold);
    int refused = scarce_end();
    assert_int_not_equal(status, LK_OK);
    assert_in_range(refused, 1, PAUSES_MAX);
    lk_close(client);
}

static int open_redis(void **state)
{
    world = &family_redis;
    return world_open(state);
}

static int open_redlock(void **state)
{
    world = &family_redlock;
    return world_open(state);
}

static int open_memcached(void **state)
{
    world = &family_memcached;
    return world_open(state);
}

static int open_sqlite(void **state)
{
    world = &family_sqlite;
    return world_open(state);
}

static int open_postgres(void **state)
{
    world = &family_postgres;
    return world_open(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_without_memory_is_refused),
        cmocka_unit_test_setup_teardown(guards_without_memory_end_nothing, open_redis, world_close),
        cmocka_unit_test_setup_teardown(guards_without_memory_end_nothing, open_redlock,
                                        world_close),
        cmocka_unit_test_setup_teardown(redlock_that_cannot_wait_does_not_spin, open_redlock,
                                        world_close),
        cmocka_unit_test_setup_teardown(guards_without_memory_end_nothing, open_memcached,
                                        world_close),
        cmocka_unit_test_setup_teardown(guards_without_memory_end_nothing, open_sqlite,
                                        world_close),
        cmocka_unit_test_setup_teardown(guards_without_memory_end_nothing, open_postgres,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
