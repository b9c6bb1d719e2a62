/*
 * Releases that wait for no answer (lk_options.release_unconfirmed): the lock is freed all the
 * same, in order, nobody else's is, and what the answer says is counted, whatever happens to it.
 */
#include "redis_debt.h"
#include "sandbox_proxy.h"
#include "lock_world.h"
#include "process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define KEY "lock:item:1"

enum { TIMEOUT_MS = 300, LONG_TIMEOUT_MS = 3000, LONG_MS = 30000, LEASE_MS = 600000 };
enum { SLACK_MS = 2000, THREADS = 16, SOME = 10 };

/* proxy_port 0: the server itself. Its first release, which teaches it the script, is over. */
static lk_client *open_client(int proxy_port, const lk_options *options)
{
    lk_options all = options != NULL ? *options : (lk_options){.command_timeout_ms = LONG_MS};
    all.release_unconfirmed = true;
    return world_warm(world_client_at("redis-token", proxy_port, &all));
}

static bool has_lost_one(void *client)
{
    return world_stats(client).lost == 1;
}

static bool has_cleaned_up(void *client)
{
    return world_stats(client).cleanups == 1;
}

/* -- nothing goes wrong -------------------------------------------------------------------------
 */

static void lock_is_freed_though_its_client_does_nothing_more(void **state)
{
    (void)state;
    lk_hold hold;
    lk_client *client = open_client(0, NULL);
    assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(world_frees(KEY, LONG_MS));
    assert_int_equal(world_stats(client).releases, 2);
    lk_close(client);
}

/* Each try is sent while the answer to the release before it is still on its way. */
static void no_try_is_refused_by_an_own_release_on_its_way(void **state)
{
    (void)state;
    lk_hold hold;
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    lk_client *client = open_client(proxy_port(proxy), NULL);
    lk_stats before = world_stats(client);
    proxy_delay(proxy, 2);
    uint64_t first = 0;
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
        first = i == 0 ? hold.fence : first;
        assert_int_equal(hold.fence, first + i); /* it was given its own answer */
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    proxy_delay(proxy, 0);
    lk_stats stats = world_stats(client);
    assert_int_equal(stats.refusals, 0);
    assert_int_equal(stats.lost + stats.cleanups, 0);
    assert_int_equal(stats.commands - before.commands, 2 * (stats.grants - before.grants));
    lk_close(client);
    proxy_close(proxy);
}

struct crowd {
    lk_client *client;
    int64_t times;
    atomic_int inside, together, failed;
    _Atomic uint64_t fence;
};

static void *come_and_go(void *arg)
{
    struct crowd *crowd = arg;
    for (int64_t i = 0; i < crowd->times; i++) {
        lk_hold hold;
        if (world_acquire(crowd->client, KEY, LEASE_MS, LONG_MS, &hold) != LK_OK) {
            atomic_fetch_add(&crowd->failed, 1);
            continue;
        }
        atomic_fetch_add(&crowd->together, atomic_fetch_add(&crowd->inside, 1) > 0);
        atomic_fetch_add(&crowd->failed, atomic_exchange(&crowd->fence, hold.fence) >= hold.fence);
        atomic_fetch_sub(&crowd->inside, 1);
        atomic_fetch_add(&crowd->failed, lk_release(&hold) != LK_OK);
    }
    return NULL;
}

static void threads_in_line_are_never_inside_together(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct crowd crowd = {
        .client = open_client(0, &(lk_options){.command_timeout_ms = LONG_MS, .local_queue = true}),
        .times = test_size(100, 5000)};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.together, 0);
    assert_int_equal(crowd.failed, 0);
    lk_stats stats = world_stats(crowd.client);
    assert_int_equal(stats.grants, THREADS * crowd.times + 1);
    assert_int_equal(stats.lost + stats.cleanups, 0);
    lk_close(crowd.client);
    assert_false(world->exists(KEY));
}

static void closed_client_leaves_no_lock_standing(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        lk_hold hold;
        lk_client *client = open_client(0, NULL);
        assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
        lk_close(client);
        assert_false(world->exists(KEY));
    }
}

static void guards_that_wait_all_the_same_tell_a_loss(void **state)
{
    (void)state;
    static const char *const others[] = {"redis-reentrant", "redis-fair"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        lk_hold hold;
        lk_client *client = world_client(others[i], &(lk_options){.release_unconfirmed = true});
        for (int times = 0; times < 2; times++) {
            assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
            assert_true(world->remove(KEY));
            assert_int_equal(lk_release(&hold), LK_LOST);
        }
        lk_close(client);
        world_ask("FLUSHALL");
    }
}

/* -- not ours any more --------------------------------------------------------------------------
 */

static void loss_is_counted_and_the_successor_keeps_the_lock(void **state)
{
    (void)state;
    lk_hold hold, next;
    lk_client *client = open_client(0, NULL);
    lk_client *other = world_client("redis-token", NULL);
    assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
    assert_true(world->remove(KEY));
    assert_int_equal(world_acquire(other, KEY, LEASE_MS, 0, &next), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(wait_until(has_lost_one, client, LONG_MS));
    assert_int_equal(world_stats(client).cleanups, 0);
    assert_int_equal(lk_release(&next), LK_OK);
    lk_close(other);
    lk_close(client);
}

/* Its holder was told then: what the server says of it is no second loss. */
static void loss_that_was_told_before_the_release_is_counted_once(void **state)
{
    (void)state;
    lk_hold hold;
    lk_client *client = open_client(0, &(lk_options){.lease_ms = LONG_MS, .max_hold_ms = 1});
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_true(wait_until(has_lost_one, client, LONG_MS));
    assert_true(world->remove(KEY));
    assert_int_equal(lk_release(&hold), LK_LOST);
    assert_int_equal(lk_ping(client), LK_OK); /* behind the answer, if one was owed */
    assert_int_equal(world_stats(client).lost, 1);
    lk_close(client);
}

/* -- the answer does not come -------------------------------------------------------------------
 */

static lk_client *hold_behind_proxy(struct proxy **ret_proxy, lk_hold *hold)
{
    *ret_proxy = proxy_open(world->port());
    assert_non_null(*ret_proxy);
    lk_client *client = open_client(proxy_port(*ret_proxy), NULL);
    assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, hold), LK_OK);
    return client;
}

static void lost_answer_has_the_release_repeated_and_is_no_loss(void **state)
{
    (void)state;
    lk_hold hold;
    struct proxy *proxy;
    lk_client *client = hold_behind_proxy(&proxy, &hold);
    uint64_t before = world_stats(client).commands;
    proxy_lose_answer(proxy, KEY, 1, PROXY_CUT);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(wait_until(has_cleaned_up, client, LONG_MS));
    assert_int_equal(proxy_lost(proxy), 1);
    assert_true(world_frees(KEY, LONG_MS));
    assert_int_equal(lk_ping(client), LK_OK);
    assert_in_range(world_stats(client).commands, before + 2, before + 3);
    assert_int_equal(world_stats(client).lost, 0);
    lk_close(client);
    proxy_close(proxy);
}

static void lost_request_has_the_release_repeated(void **state)
{
    (void)state;
    lk_hold hold;
    struct proxy *proxy;
    lk_client *client = hold_behind_proxy(&proxy, &hold);
    proxy_lose_request(proxy, KEY, 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(world_frees(KEY, LONG_MS));
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(world_stats(client).cleanups, 1);
    lk_close(client);
    proxy_close(proxy);
}

/* A try goes out behind it: the connection dies under both, and the try's caller is told. */
static void lost_request_is_repeated_though_a_try_follows_it(void **state)
{
    (void)state;
    lk_hold hold, next;
    struct proxy *proxy;
    lk_client *client = hold_behind_proxy(&proxy, &hold);
    proxy_lose_request(proxy, KEY, 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(world_acquire(client, KEY, LEASE_MS, LONG_MS, &next), LK_OK);
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(world_stats(client).lost, 0);
    assert_true(world_stats(client).cleanups >= 1);
    assert_int_equal(lk_release(&next), LK_OK);
    assert_true(world_frees(KEY, LONG_MS));
    lk_close(client);
    proxy_close(proxy);
}

static void script_that_the_server_has_forgotten_is_taught_again(void **state)
{
    (void)state;
    lk_hold hold;
    lk_client *client = open_client(0, NULL);
    assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
    world_ask("SCRIPT FLUSH");
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(world_frees(KEY, LONG_MS));
    assert_int_equal(world_stats(client).cleanups, 1);
    lk_close(client);
}

/* -- the server stands still --------------------------------------------------------------------
 */

static void still_server_keeps_no_holder_and_frees_the_lock_when_it_goes_on(void **state)
{
    (void)state;
    lk_hold hold;
    lk_client *client = open_client(0, &(lk_options){.command_timeout_ms = LONG_TIMEOUT_MS});
    assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
    world_freeze(true);
    int64_t start_ms = test_now_ms();
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(test_now_ms() - start_ms < LONG_TIMEOUT_MS);
    assert_true(wait_until(has_cleaned_up, client, LONG_MS));
    world_freeze(false);
    assert_true(world_frees(KEY, LONG_MS));
    lk_close(client);
}

/* n locks, and the server stands still when they are released. Returns the last one's status. */
static lk_status release_before_a_still_server(lk_client *client, lk_hold *holds, int n)
{
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof key, "lock:item:%d", i);
        assert_int_equal(world_acquire(client, key, LEASE_MS, 0, &holds[i]), LK_OK);
    }
    world_freeze(true);
    for (int i = 0; i < n - 1; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    return lk_release(&holds[n - 1]);
}

/* One answer that does not come, the repetition that had begun, and one more. */
static void closing_before_a_still_server_is_bounded(void **state)
{
    (void)state;
    lk_hold holds[SOME];
    lk_client *client = open_client(0, &(lk_options){.command_timeout_ms = TIMEOUT_MS});
    assert_int_equal(release_before_a_still_server(client, holds, SOME), LK_OK);
    int64_t start_ms = test_now_ms();
    lk_close(client);
    int64_t took_ms = test_now_ms() - start_ms;
    world_freeze(false);
    assert_true(took_ms <= 3 * TIMEOUT_MS + SLACK_MS);
}

static void more_than_can_be_owed_are_waited_for(void **state)
{
    (void)state;
    lk_hold holds[LK_REDIS_OWED_MAX + 1];
    lk_client *client = open_client(0, &(lk_options){.command_timeout_ms = LONG_TIMEOUT_MS});
    lk_status last = release_before_a_still_server(client, holds, LK_REDIS_OWED_MAX + 1);
    world_freeze(false);
    assert_true(last == LK_UNKNOWN || last == LK_UNAVAILABLE);
    lk_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lock_is_freed_though_its_client_does_nothing_more, world_empty),
        cmocka_unit_test_setup(no_try_is_refused_by_an_own_release_on_its_way, world_empty),
        cmocka_unit_test_setup(threads_in_line_are_never_inside_together, world_empty),
        cmocka_unit_test_setup(closed_client_leaves_no_lock_standing, world_empty),
        cmocka_unit_test_setup(guards_that_wait_all_the_same_tell_a_loss, world_empty),
        cmocka_unit_test_setup(loss_is_counted_and_the_successor_keeps_the_lock, world_empty),
        cmocka_unit_test_setup(loss_that_was_told_before_the_release_is_counted_once, world_empty),
        cmocka_unit_test_setup(lost_answer_has_the_release_repeated_and_is_no_loss, world_empty),
        cmocka_unit_test_setup(lost_request_has_the_release_repeated, world_empty),
        cmocka_unit_test_setup(lost_request_is_repeated_though_a_try_follows_it, world_empty),
        cmocka_unit_test_setup(script_that_the_server_has_forgotten_is_taught_again, world_empty),
        cmocka_unit_test_setup(still_server_keeps_no_holder_and_frees_the_lock_when_it_goes_on,
                               world_empty),
        cmocka_unit_test_setup(closing_before_a_still_server_is_bounded, world_empty),
        cmocka_unit_test_setup(more_than_can_be_owed_are_waited_for, world_empty),
    };
    return cmocka_run_group_tests(tests, world_open, world_close);
}
