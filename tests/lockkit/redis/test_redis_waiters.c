/* Waiters: one message wakes one waiter; no wake-up is lost. */
#include "redis_waiters.h"
#include "process.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { LONG_MS = 20000, SLEEPERS = 8, US_PER_MS = 1000 };

struct sleeper {
    pthread_t thread;
    lk_redis_waiters *waiters;
    lk_redis_waiter *waiter;
    bool uses; /* its wake-up */
    int64_t wait_ms, slept_ms;
};

static atomic_int n_awake;

static void *sleep_once(void *arg)
{
    struct sleeper *sleeper = arg;
    int64_t start_ms = test_now_ms();
    lk_redis_waiters_sleep(sleeper->waiters, sleeper->waiter, sleeper->wait_ms * US_PER_MS);
    sleeper->slept_ms = test_now_ms() - start_ms;
    if (sleeper->uses)
        lk_redis_waiters_use(sleeper->waiters, sleeper->waiter);
    lk_redis_waiters_leave(sleeper->waiters, sleeper->waiter);
    atomic_fetch_add(&n_awake, 1);
    return NULL;
}

static bool as_many_awake(void *want)
{
    return atomic_load(&n_awake) == *(int *)want;
}

static void start(struct sleeper *sleepers, lk_redis_waiters *waiters, bool uses)
{
    atomic_store(&n_awake, 0);
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper){.waiters = waiters, .uses = uses, .wait_ms = LONG_MS};
        sleepers[i].waiter = lk_redis_waiters_enter(waiters, "line", NULL);
        assert_non_null(sleepers[i].waiter);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_once, &sleepers[i]), 0);
    }
}

static void join(struct sleeper *sleepers)
{
    for (int i = 0; i < SLEEPERS; i++) {
        pthread_join(sleepers[i].thread, NULL);
        assert_true(sleepers[i].slept_ms < LONG_MS);
    }
}

/* Also waiters that are only about to sleep. */
TEST_THAT(each_post_wakes_exactly_one)
{
    struct sleeper sleepers[SLEEPERS];
    lk_redis_waiters *waiters = lk_redis_waiters_open();
    start(sleepers, waiters, true);
    for (int i = 1; i <= SLEEPERS; i++) {
        lk_redis_waiters_wake_one(waiters, "another line");
        lk_redis_waiters_wake_one(waiters, "line");
        assert_true(wait_until(as_many_awake, &i, LONG_MS));
    }
    join(sleepers);
    lk_redis_waiters_close(waiters);
}

TEST_THAT(unused_wake_up_is_handed_on_to_the_last)
{
    struct sleeper sleepers[SLEEPERS];
    lk_redis_waiters *waiters = lk_redis_waiters_open();
    start(sleepers, waiters, false);
    lk_redis_waiters_wake_one(waiters, "line");
    join(sleepers); /* one wake-up was enough for all */
    lk_redis_waiters_close(waiters);
}

TEST_THAT(post_to_all_wakes_all)
{
    struct sleeper sleepers[SLEEPERS];
    lk_redis_waiters *waiters = lk_redis_waiters_open();
    start(sleepers, waiters, true);
    lk_redis_waiters_wake_all(waiters);
    join(sleepers);
    lk_redis_waiters_close(waiters);
}

TEST_THAT(waking_all_of_a_line_wakes_nobody_else)
{
    struct sleeper sleepers[SLEEPERS];
    lk_redis_waiters *waiters = lk_redis_waiters_open();
    lk_redis_waiter *other = lk_redis_waiters_enter(waiters, "another line", NULL);
    assert_non_null(other);
    start(sleepers, waiters, true);
    lk_redis_waiters_wake_all_of(waiters, "line");
    join(sleepers);
    int64_t start_ms = test_now_ms();
    lk_redis_waiters_sleep(waiters, other, 30 * US_PER_MS);
    assert_true(test_now_ms() - start_ms >= 29);
    lk_redis_waiters_leave(waiters, other);
    lk_redis_waiters_close(waiters);
}

TEST_THAT(gift_wakes_one_who_takes_it_once)
{
    struct sleeper sleeper = {.waiters = lk_redis_waiters_open(), .uses = true, .wait_ms = LONG_MS};
    const lk_redis_handover handover = {.fence = 7, .asked_us = 3};
    lk_redis_handover got;
    lk_redis_waiter *other = lk_redis_waiters_enter(sleeper.waiters, "another line", NULL);
    lk_redis_waiters_hand_over(sleeper.waiters, "nobody's line", &handover);
    lk_redis_waiter *first = lk_redis_waiters_enter(sleeper.waiters, "line", NULL);
    sleeper.waiter = lk_redis_waiters_enter(sleeper.waiters, "line", NULL);
    assert_int_equal(pthread_create(&sleeper.thread, NULL, sleep_once, &sleeper), 0);
    usleep(20000); /* it should sleep by now; if it does not, the test proves less but passes */
    lk_redis_waiters_leave(sleeper.waiters, first);
    lk_redis_waiters_hand_over(sleeper.waiters, "line", &handover);
    pthread_join(sleeper.thread, NULL);
    assert_true(sleeper.slept_ms < LONG_MS);
    assert_false(lk_redis_waiters_take_handover(sleeper.waiters, other, &got));
    first = lk_redis_waiters_enter(sleeper.waiters, "another line", NULL);
    lk_redis_waiters_hand_over(sleeper.waiters, "another line", &handover);
    assert_true(lk_redis_waiters_take_handover(sleeper.waiters, first, &got));
    assert_int_equal(got.fence, 7);
    assert_int_equal(got.asked_us, 3);
    assert_false(lk_redis_waiters_take_handover(sleeper.waiters, first, &got));
    lk_redis_waiters_leave(sleeper.waiters, first);
    lk_redis_waiters_leave(sleeper.waiters, other);
    lk_redis_waiters_close(sleeper.waiters);
}

TEST_THAT(post_to_nobody_is_not_kept_and_posts_do_not_pile_up)
{
    lk_redis_waiters *waiters = lk_redis_waiters_open();
    lk_redis_waiters_wake_one(waiters, "line");
    bool is_first = false;
    lk_redis_waiter *waiter = lk_redis_waiters_enter(waiters, "line", &is_first);
    assert_true(is_first);
    int64_t start_ms = test_now_ms();
    lk_redis_waiters_sleep(waiters, waiter, 30 * US_PER_MS);
    assert_true(test_now_ms() - start_ms >= 29);
    for (int i = 0; i < 5; i++)
        lk_redis_waiters_wake_one(waiters, "line");
    lk_redis_waiters_sleep(waiters, waiter, LONG_MS * US_PER_MS); /* uses the kept wake-up */
    lk_redis_waiters_use(waiters, waiter);
    start_ms = test_now_ms();
    lk_redis_waiters_sleep(waiters, waiter, 30 * US_PER_MS);
    assert_true(test_now_ms() - start_ms >= 29);
    lk_redis_waiters_leave(waiters, waiter);
    lk_redis_waiters_close(waiters);
}
