/* redis-semaphore: a limited number of permits, each with its own lease. */
#include "lock_hooks.h"
#include "lateness.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"
#include "two_clients.h"

#include <pthread.h>

#define GUARD "redis-semaphore"
#define KEY   "lock:item:1"

enum { LONG_MS = 20000, SOON_MS = 2000, SHORT_MS = 300, CONTENDERS = 32, PERMITS = 3 };

static int open_clients(void **state)
{
    (void)state;
    return two_clients_open(GUARD);
}

static lk_status take(lk_client *by, uint32_t permits, int64_t lease_ms, int64_t wait_ms,
                      lk_hold *hold)
{
    lk_request request = {.key = KEY, .permits = permits, .lease_ms = lease_ms, .wait_ms = wait_ms};
    return lk_acquire(by, &request, hold);
}

/* -- counting -----------------------------------------------------------------------------------
 */

struct contender {
    pthread_t thread;
    lk_client *client;
    _Atomic int *inside;
    int most; /* greatest number inside at once, itself included */
    int64_t times, longest_us;
    lk_status failed;
};

static void *contend(void *arg)
{
    struct contender *contender = arg;
    while (contender->times-- > 0 && contender->failed == LK_OK) {
        lk_hold hold;
        contender->failed = take(contender->client, PERMITS, LONG_MS, LONG_MS, &hold);
        if (contender->failed != LK_OK)
            break;
        if (hold.wait_us > contender->longest_us)
            contender->longest_us = hold.wait_us;
        int now = atomic_fetch_add(contender->inside, 1) + 1;
        if (now > contender->most)
            contender->most = now;
        lk_env_system()->sleep_us(NULL, 200);
        atomic_fetch_sub(contender->inside, 1);
        contender->failed = lk_release(&hold);
    }
    return NULL;
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(open_clients, two_clients_close);

TEST_THAT(as_many_as_permits_hold_at_once_and_no_more)
{
    struct contender contenders[CONTENDERS];
    _Atomic int inside = 0;
    int most = 0;
    for (int i = 0; i < CONTENDERS; i++) {
        contenders[i] = (struct contender){
            .client = i % 2 ? client : other, .inside = &inside, .times = test_size(30, 2000)};
        assert_int_equal(pthread_create(&contenders[i].thread, NULL, contend, &contenders[i]), 0);
    }
    for (int i = 0; i < CONTENDERS; i++)
        pthread_join(contenders[i].thread, NULL);
    for (int i = 0; i < CONTENDERS; i++) {
        assert_int_equal(contenders[i].failed, LK_OK);
        /* none slept until a lease ended */
        assert_true(took_at_most(contenders[i].longest_us / 1000, LONG_MS / 2));
        most = contenders[i].most > most ? contenders[i].most : most;
    }
    assert_int_equal(most, PERMITS);
    assert_int_equal(world_ask("EXISTS " KEY), 0);
}

TEST_THAT(fences_rise_though_several_hold)
{
    lk_hold holds[PERMITS];
    for (int i = 0; i < PERMITS; i++) {
        assert_int_equal(take(i % 2 ? client : other, PERMITS, 0, 0, &holds[i]), LK_OK);
        assert_true(i == 0 || holds[i].fence > holds[i - 1].fence);
    }
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
}

/* A weakness: the server does not store the number of permits. */
TEST_THAT(who_names_a_larger_number_gets_in)
{
    lk_hold a, b;
    assert_int_equal(take(client, 1, 0, 0, &a), LK_OK);
    assert_int_equal(take(other, 1, 0, 0, &b), LK_TIMEOUT);
    assert_int_equal(take(other, 2, 0, 0, &b), LK_OK);
    assert_int_equal(lk_release(&a), LK_OK);
    assert_int_equal(lk_release(&b), LK_OK);
}

TEST_THAT(permits_are_refused_by_guards_that_do_not_count)
{
    lk_hold hold;
    lk_client *lock = world_client("redis-reentrant", NULL);
    assert_int_equal(take(lock, 2, 0, 0, &hold), LK_UNSUPPORTED);
    assert_int_equal(take(lock, 1, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(lock);
}

/* -- leases -------------------------------------------------------------------------------------
 */

/* A permit is never released, as if its holder had died. */
TEST_THAT(permit_of_a_dead_holder_comes_back_with_its_lease)
{
    lk_hold dead, alive, third;
    assert_int_equal(take(client, 2, SHORT_MS, 0, &dead), LK_OK);
    assert_int_equal(take(client, 2, 0, 0, &alive), LK_OK);
    assert_int_equal(take(other, 2, 0, 0, &third), LK_TIMEOUT);
    int64_t start_ms = test_now_ms();
    assert_int_equal(take(other, 2, 0, LONG_MS, &third), LK_OK);
    assert_true(ended_within(start_ms, SHORT_MS + SOON_MS));
    assert_true(third.attempts <= 5); /* the refusal said when to try again */
    assert_int_equal(lk_confirm(&alive), LK_OK);
    assert_int_equal(lk_confirm(&dead), LK_LOST);
    assert_int_equal(lk_release(&dead), LK_LOST);
    assert_int_equal(lk_confirm(&third), LK_OK);
    assert_int_equal(lk_release(&third), LK_OK);
    assert_int_equal(lk_release(&alive), LK_OK);
}

TEST_THAT(each_permit_is_extended_by_itself)
{
    lk_hold brief, lasting;
    assert_int_equal(take(client, 2, SHORT_MS, 0, &brief), LK_OK);
    assert_int_equal(take(client, 2, SHORT_MS, 0, &lasting), LK_OK);
    assert_int_equal(lk_extend(&lasting, LONG_MS), LK_OK);
    assert_true(world_ask("PTTL " KEY) > SOON_MS); /* the set lasts as long as its longest lease */
    lk_hold third;
    assert_int_equal(take(other, 2, 0, SOON_MS, &third), LK_OK); /* brief has expired */
    assert_int_equal(lk_extend(&brief, LONG_MS), LK_LOST);
    assert_int_equal(lk_release(&third), LK_OK);
    assert_int_equal(lk_extend(&lasting, SOON_MS), LK_OK);
    assert_in_range(world_ask("PTTL " KEY), 1, SOON_MS);
    assert_int_equal(lk_release(&lasting), LK_OK);
    lk_release(&brief);
}

static bool is_lost(void *hold)
{
    return lk_confirm(hold) == LK_LOST;
}

/* An expired permit stays in the set until the next request for a permit, or until all expire. */
TEST_THAT(permit_that_is_over_is_nobodys_though_it_stands_there_still)
{
    lk_hold brief, late, lasting;
    assert_int_equal(take(client, 3, LONG_MS, 0, &lasting), LK_OK);
    assert_int_equal(take(client, 3, SHORT_MS, 0, &brief), LK_OK);
    assert_int_equal(take(client, 3, SHORT_MS, 0, &late), LK_OK);
    assert_true(wait_until(is_lost, &late, SOON_MS));
    assert_int_equal(world_ask("ZCARD " KEY), 3);
    assert_int_equal(lk_extend(&brief, LONG_MS), LK_LOST);
    assert_int_equal(lk_release(&late), LK_LOST);
    assert_int_equal(world_ask("ZCARD " KEY), 2);
    lk_release(&brief);
    assert_int_equal(lk_release(&lasting), LK_OK);
}

TEST_THAT(nothing_but_the_counter_is_left_when_all_leases_are_over)
{
    lk_hold holds[PERMITS];
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(take(client, PERMITS, SHORT_MS, 0, &holds[i]), LK_OK);
    assert_true(world_becomes(1, SOON_MS, "DBSIZE"));
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(lk_release(&holds[i]), LK_LOST);
}

/* -- waking -------------------------------------------------------------------------------------
 */

static struct hooked crowd;
static int crowd_refusals;

static bool crowd_refused(void *arg)
{
    (void)arg;
    return atomic_load(&crowd.refusals) >= crowd_refusals;
}

/* PERMITS waiters of one client sleep. All must wake, by that many releases or by one forced
 * release. */
static void wake_as_many(void (*free_all)(lk_hold *holds))
{
    lk_hold holds[PERMITS];
    struct asker waiters[PERMITS];
    lk_client *waiting = world_client(GUARD, &(lk_options){.env = hook(&crowd)});
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(take(client, PERMITS, 0, 0, &holds[i]), LK_OK);
    for (int i = 0; i < PERMITS; i++) {
        waiters[i] =
            (struct asker){.client = waiting, .key = KEY, .permits = PERMITS, .wait_ms = LONG_MS};
        asker_start(&waiters[i]);
        crowd_refusals = i + 2; /* only the first tries again, after SUBSCRIBE */
        assert_true(wait_until(crowd_refused, NULL, LONG_MS));
    }
    int64_t start_ms = test_now_ms();
    free_all(holds);
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(asker_join(&waiters[i]), LK_OK);
    assert_true(ended_within(start_ms, SOON_MS));
    for (int i = 0; i < PERMITS; i++) {
        assert_int_equal(lk_release(&waiters[i].hold), LK_OK);
        lk_release(&holds[i]);
    }
    lk_close(waiting);
}

static void release_all(lk_hold *holds)
{
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
}

static void force_all(lk_hold *holds)
{
    assert_int_equal(lk_force_release(other, KEY), LK_OK);
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(lk_confirm(&holds[i]), LK_LOST);
}

TEST_THAT(each_release_lets_one_waiter_in)
{
    wake_as_many(release_all);
}

TEST_THAT(operator_who_frees_all_permits_lets_as_many_waiters_in)
{
    wake_as_many(force_all);
}
