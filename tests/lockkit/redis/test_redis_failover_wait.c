/* redis+sentinel:// while the master dies: a client that waits for a message follows, too. */
#include "lock_hooks.h"
#include "lateness.h"
#include "process.h"
#include "redis_set.h"
#include "tests.h"

#include <signal.h>

#define KEY "lock:item:1"

enum { LONG_MS = 60000, SOON_MS = 4000 };

static struct sandbox *sandbox;
static struct sandbox_sentinel set;

/* Each test changes the master. */
static int open_set(void **state)
{
    (void)state;
    return sandbox_open(&sandbox) == 0 ? sandbox_sentinel(sandbox, &set) : -1;
}

static int close_set(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

/* Kills or stops the master while a waiter waits. After the failover the holder releases. */
static void waiter_wakes_across_a_switch(const char *guard, int signal)
{
    struct hooked hooked;
    lk_client *holder = set_client(guard, set.url, &(lk_options){.lease_ms = LONG_MS});
    lk_client *client = set_client(guard, set.url, &(lk_options){.env = hook(&hooked)});
    lk_hold hold;
    assert_true(set_recovers(holder, "lock:other", SET_SWITCH_MS, NULL)); /* they connect */
    assert_true(set_recovers(client, "lock:other", SET_SWITCH_MS, NULL));
    assert_int_equal(set_acquire(holder, KEY, 0, &hold), LK_OK);
    struct asker waiter = {.client = client, .key = KEY, .wait_ms = LONG_MS};
    asker_start(&waiter);
    assert_true(wait_until(refused_twice, &hooked, SET_SWITCH_MS));
    assert_true(set_caught_up(set.master, set.replica));
    assert_true(sandbox_signal(set.master, signal) >= 0);
    assert_true(wait_until(set_is_switched, &set, SET_SWITCH_MS));
    assert_true(wait_until(set_is_heard, set.replica, SET_SWITCH_MS));
    assert_true(set_recovers(holder, "lock:other", SET_SWITCH_MS, NULL)); /* it follows, too */
    int64_t start_ms = test_now_ms();
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(asker_join(&waiter), LK_OK);
    assert_true(ended_within(start_ms, SOON_MS)); /* well before the lease ends */
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
    lk_close(client);
    lk_close(holder);
}

TEST_FIXTURE(open_set, close_set);

TEST_THAT(waiter_for_a_message_follows_a_killed_master)
{
    waiter_wakes_across_a_switch("redis-reentrant", SIGKILL);
}

TEST_THAT(waiter_in_the_queue_follows_a_killed_master)
{
    waiter_wakes_across_a_switch("redis-fair", SIGKILL);
}

/* The socket stays open; only the missing answers show the hang. */
TEST_THAT(waiter_for_a_message_follows_a_master_that_hangs)
{
    waiter_wakes_across_a_switch("redis-reentrant", SIGSTOP);
    assert_int_equal(sandbox_signal(set.master, SIGCONT), 0);
}
