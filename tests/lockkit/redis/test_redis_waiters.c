/* Waiting rooms: one message, one waiter; no wake-up is lost. */
#include "redis_waiters.h"
#include "process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { LONG_MS = 20000, SLEEPERS = 8, US_PER_MS = 1000 };

struct sleeper {
    pthread_t thread;
    lk_redis_rooms *rooms;
    lk_redis_waiter *waiter;
    bool uses; /* its wake-up */
    int64_t wait_ms, slept_ms;
};

static atomic_int n_awake;

static void *sleep_once(void *arg)
{
    struct sleeper *sleeper = arg;
    int64_t start_ms = test_now_ms();
    lk_redis_rooms_sleep(sleeper->rooms, sleeper->waiter, sleeper->wait_ms * US_PER_MS);
    sleeper->slept_ms = test_now_ms() - start_ms;
    if (sleeper->uses)
        lk_redis_rooms_use(sleeper->rooms, sleeper->waiter);
    lk_redis_rooms_leave(sleeper->rooms, sleeper->waiter);
    atomic_fetch_add(&n_awake, 1);
    return NULL;
}

static bool as_many_awake(void *want)
{
    return atomic_load(&n_awake) == *(int *)want;
}

static void start(struct sleeper *sleepers, lk_redis_rooms *rooms, bool uses)
{
    atomic_store(&n_awake, 0);
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper){.rooms = rooms, .uses = uses, .wait_ms = LONG_MS};
        sleepers[i].waiter = lk_redis_rooms_enter(rooms, "room", NULL);
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

/* Whether they sleep already or are only about to. */
static void each_post_wakes_exactly_one(void **state)
{
    (void)state;
    struct sleeper sleepers[SLEEPERS];
    lk_redis_rooms *rooms = lk_redis_rooms_open();
    start(sleepers, rooms, true);
    for (int i = 1; i <= SLEEPERS; i++) {
        lk_redis_rooms_post(rooms, "another room");
        lk_redis_rooms_post(rooms, "room");
        assert_true(wait_until(as_many_awake, &i, LONG_MS));
    }
    join(sleepers);
    lk_redis_rooms_close(rooms);
}

static void unused_wake_up_is_handed_on_to_the_last(void **state)
{
    (void)state;
    struct sleeper sleepers[SLEEPERS];
    lk_redis_rooms *rooms = lk_redis_rooms_open();
    start(sleepers, rooms, false);
    lk_redis_rooms_post(rooms, "room");
    join(sleepers); /* one post has sent them all home */
    lk_redis_rooms_close(rooms);
}

static void post_to_all_wakes_all(void **state)
{
    (void)state;
    struct sleeper sleepers[SLEEPERS];
    lk_redis_rooms *rooms = lk_redis_rooms_open();
    start(sleepers, rooms, true);
    lk_redis_rooms_post_all(rooms);
    join(sleepers);
    lk_redis_rooms_close(rooms);
}

static void post_to_a_room_wakes_all_of_it_and_nobody_else(void **state)
{
    (void)state;
    struct sleeper sleepers[SLEEPERS];
    lk_redis_rooms *rooms = lk_redis_rooms_open();
    lk_redis_waiter *other = lk_redis_rooms_enter(rooms, "another room", NULL);
    assert_non_null(other);
    start(sleepers, rooms, true);
    lk_redis_rooms_post_room(rooms, "room");
    join(sleepers);
    int64_t start_ms = test_now_ms();
    lk_redis_rooms_sleep(rooms, other, 30 * US_PER_MS);
    assert_true(test_now_ms() - start_ms >= 29);
    lk_redis_rooms_leave(rooms, other);
    lk_redis_rooms_close(rooms);
}

static void post_to_nobody_is_not_kept_and_posts_do_not_pile_up(void **state)
{
    (void)state;
    lk_redis_rooms *rooms = lk_redis_rooms_open();
    lk_redis_rooms_post(rooms, "room");
    bool is_first = false;
    lk_redis_waiter *waiter = lk_redis_rooms_enter(rooms, "room", &is_first);
    assert_true(is_first);
    int64_t start_ms = test_now_ms();
    lk_redis_rooms_sleep(rooms, waiter, 30 * US_PER_MS);
    assert_true(test_now_ms() - start_ms >= 29);
    for (int i = 0; i < 5; i++)
        lk_redis_rooms_post(rooms, "room");
    lk_redis_rooms_sleep(rooms, waiter, LONG_MS * US_PER_MS); /* the one that was kept */
    lk_redis_rooms_use(rooms, waiter);
    start_ms = test_now_ms();
    lk_redis_rooms_sleep(rooms, waiter, 30 * US_PER_MS);
    assert_true(test_now_ms() - start_ms >= 29);
    lk_redis_rooms_leave(rooms, waiter);
    lk_redis_rooms_close(rooms);
}

static void gift_wakes_one_who_takes_it_once(void **state)
{
    (void)state;
    struct sleeper sleeper = {.rooms = lk_redis_rooms_open(), .uses = true, .wait_ms = LONG_MS};
    const lk_redis_gift gift = {.fence = 7, .asked_us = 3};
    lk_redis_gift got;
    lk_redis_waiter *other = lk_redis_rooms_enter(sleeper.rooms, "another room", NULL);
    lk_redis_rooms_give(sleeper.rooms, "nobody's room", &gift);
    lk_redis_waiter *first = lk_redis_rooms_enter(sleeper.rooms, "room", NULL);
    sleeper.waiter = lk_redis_rooms_enter(sleeper.rooms, "room", NULL);
    assert_int_equal(pthread_create(&sleeper.thread, NULL, sleep_once, &sleeper), 0);
    usleep(20000); /* so that it sleeps by now; late, it proves less, and does not fail */
    lk_redis_rooms_leave(sleeper.rooms, first);
    lk_redis_rooms_give(sleeper.rooms, "room", &gift);
    pthread_join(sleeper.thread, NULL);
    assert_true(sleeper.slept_ms < LONG_MS);
    assert_false(lk_redis_rooms_take(sleeper.rooms, other, &got));
    first = lk_redis_rooms_enter(sleeper.rooms, "another room", NULL);
    lk_redis_rooms_give(sleeper.rooms, "another room", &gift);
    assert_true(lk_redis_rooms_take(sleeper.rooms, first, &got));
    assert_int_equal(got.fence, 7);
    assert_int_equal(got.asked_us, 3);
    assert_false(lk_redis_rooms_take(sleeper.rooms, first, &got));
    lk_redis_rooms_leave(sleeper.rooms, first);
    lk_redis_rooms_leave(sleeper.rooms, other);
    lk_redis_rooms_close(sleeper.rooms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_post_wakes_exactly_one),
        cmocka_unit_test(unused_wake_up_is_handed_on_to_the_last),
        cmocka_unit_test(post_to_all_wakes_all),
        cmocka_unit_test(post_to_a_room_wakes_all_of_it_and_nobody_else),
        cmocka_unit_test(gift_wakes_one_who_takes_it_once),
        cmocka_unit_test(post_to_nobody_is_not_kept_and_posts_do_not_pile_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
