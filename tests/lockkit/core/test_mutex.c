/* The in-process provider: exclusive, served in order of arrival, bounded waits. */
#include "lk_fake.h"
#include "providers.h"
#include "tests.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 5000, WAITERS = 6 };

static lk_client *open_mutex(const lk_env *env)
{
    lk_client *client;
    lk_options options = {.env = env};
    assert_int_equal(lk_open_provider(&lk_mutex, NULL, &options, &client, NULL), LK_OK);
    return client;
}

TEST_THAT(a_second_taker_is_refused_until_release)
{
    lk_client *client = open_mutex(NULL);
    lk_hold a, b, other;
    lk_request request = {.key = "k"}, elsewhere = {.key = "l"};
    assert_int_equal(lk_acquire(client, &request, &a), LK_OK);
    assert_int_equal(a.lease_ms, 0);
    assert_int_equal(lk_acquire(client, &request, &b), LK_TIMEOUT);
    assert_int_equal(lk_acquire(client, &elsewhere, &other), LK_OK);
    assert_int_equal(lk_release(&a), LK_OK);
    assert_int_equal(lk_release(&a), LK_LOST);
    assert_int_equal(lk_acquire(client, &request, &b), LK_OK);
    assert_int_equal(lk_release(&b), LK_OK);
    assert_int_equal(lk_release(&other), LK_OK);
    lk_close(client);
}

TEST_THAT(what_stood_in_a_hold_before_is_gone)
{
    lk_client *client = open_mutex(NULL);
    lk_hold hold;
    memset(&hold, 0xff, sizeof hold);
    assert_int_equal(lk_try_acquire(client, "k", &hold), LK_OK);
    assert_int_equal(hold.fence, 0); /* the guard has no fences */
    assert_int_equal(hold.lease_ms, 0);
    assert_int_equal(hold.attempts, 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

TEST_THAT(the_same_owner_waits_for_itself_until_wait_ms)
{
    lk_client *client = open_mutex(NULL);
    lk_hold a, b;
    lk_request request = {.key = "k", .owner = "me", .wait_ms = 20};
    assert_int_equal(lk_acquire(client, &request, &a), LK_OK);
    int64_t start_us = lk_env_system()->now_us(NULL);
    assert_int_equal(lk_acquire(client, &request, &b), LK_TIMEOUT);
    assert_true(lk_env_system()->now_us(NULL) - start_us >= 20000);
    assert_int_equal(lk_release(&a), LK_OK);
    assert_int_equal(lk_acquire(client, &request, &b),
                     LK_OK); /* the waiter that gave up left nothing behind */
    assert_int_equal(lk_release(&b), LK_OK);
    lk_close(client);
}

TEST_THAT(two_clients_do_not_exclude_each_other)
{
    lk_client *one = open_mutex(NULL), *other = open_mutex(NULL);
    lk_hold a, b;
    lk_request request = {.key = "k"};
    assert_int_equal(lk_acquire(one, &request, &a), LK_OK);
    assert_int_equal(lk_acquire(other, &request, &b), LK_OK); /* its weakness, as documented */
    lk_release(&a);
    lk_release(&b);
    lk_close(one);
    lk_close(other);
}

/* -- order of arrival -------------------------------------------------------------------------- */

static atomic_int n_waiting;

static void count_waiting(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    (void)key;
    if (strcmp(point, LK_POINT_WAIT) == 0) /* it is in the queue */
        atomic_fetch_add(&n_waiting, 1);
}

struct waiter {
    pthread_t thread;
    lk_client *client;
    int64_t wait_ms;
    lk_status status;
    int place; /* in the order of grants */
};

static atomic_int n_granted;

static void *wait_for_it(void *arg)
{
    struct waiter *waiter = arg;
    lk_hold hold;
    lk_request request = {.key = "k", .wait_ms = waiter->wait_ms};
    waiter->status = lk_acquire(waiter->client, &request, &hold);
    if (waiter->status == LK_OK) {
        waiter->place = atomic_fetch_add(&n_granted, 1);
        lk_release(&hold);
    }
    return NULL;
}

TEST_THAT(waiters_are_served_in_order_and_those_who_gave_up_are_skipped)
{
    lk_env env = *lk_env_system();
    env.point = count_waiting;
    lk_client *client = open_mutex(&env);
    lk_hold hold;
    struct waiter waiters[WAITERS];
    lk_request request = {.key = "k"};
    atomic_store(&n_waiting, 0);
    atomic_store(&n_granted, 0);
    assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.client = client, .wait_ms = i % 3 == 1 ? 10 : 60000};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_for_it, &waiters[i]), 0);
        while (atomic_load(&n_waiting) <= i) /* until it is in the queue */
            sched_yield();
    }
    for (int i = 1; i < WAITERS; i += 3) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, LK_TIMEOUT);
    }
    lk_release(&hold);
    for (int i = 0, place = 0; i < WAITERS; i++) {
        if (i % 3 == 1)
            continue;
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, LK_OK);
        assert_int_equal(waiters[i].place, place++);
    }
    lk_close(client);
}

/* -- more keys than buckets -------------------------------------------------------------------- */

enum { KEYS_MANY = 3000, WAIT_MS = 20000 };

struct latecomer {
    pthread_t thread;
    lk_client *client;
    const char *key;
    int64_t wait_us;
};

static void *come_late(void *arg)
{
    struct latecomer *latecomer = arg;
    lk_hold hold;
    lk_request request = {.key = latecomer->key, .wait_ms = WAIT_MS};
    if (lk_acquire(latecomer->client, &request, &hold) == LK_OK) {
        latecomer->wait_us = hold.wait_us;
        lk_release(&hold);
    }
    return NULL;
}

TEST_THAT(keys_that_share_a_bucket_stay_apart)
{
    static lk_hold holds[KEYS_MANY];
    struct latecomer latecomers[WAITERS];
    lk_env env = *lk_env_system();
    env.point = count_waiting;
    lk_client *client = open_mutex(&env);
    lk_hold second;
    char key[32];
    for (int i = 0; i < KEYS_MANY; i++) {
        lk_request request = {.key = key};
        snprintf(key, sizeof key, "lock:item:%d", i);
        assert_int_equal(lk_acquire(client, &request, &holds[i]), LK_OK);
    }
    for (int i = 0; i < KEYS_MANY; i++) {
        lk_request request = {.key = holds[i].key};
        assert_int_equal(lk_acquire(client, &request, &second), LK_TIMEOUT);
    }
    atomic_store(&n_waiting, 0);
    for (int i = 0; i < WAITERS; i++) { /* for the last keys: behind others in their buckets */
        latecomers[i] = (struct latecomer){
            .client = client, .key = holds[KEYS_MANY - 1 - i].key, .wait_us = -1};
        assert_int_equal(pthread_create(&latecomers[i].thread, NULL, come_late, &latecomers[i]), 0);
        while (atomic_load(&n_waiting) <= i)
            sched_yield();
    }
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(lk_release(&holds[KEYS_MANY - 1 - i]), LK_OK);
        pthread_join(latecomers[i].thread, NULL);
        assert_in_range(latecomers[i].wait_us, 0, WAIT_MS * 1000 - 1); /* woken, not timed out */
    }
    for (int i = 0; i < KEYS_MANY - WAITERS; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    lk_close(client);
}

/* -- many threads on few keys ------------------------------------------------------------------ */

struct counter {
    lk_client *client;
    int64_t values[2]; /* plain: only the lock protects them */
};

struct adder {
    pthread_t thread;
    struct counter *counter;
    unsigned seed;
    int added[2], timeouts, failures;
};

static void *add(void *arg)
{
    struct adder *adder = arg;
    struct counter *counter = adder->counter;
    for (int i = 0; i < ROUNDS; i++) {
        int which = rand_r(&adder->seed) % 2;
        lk_hold hold;
        lk_request request = {.key = which ? "item" : "account", .wait_ms = i % 2 ? 0 : 60000};
        lk_status status = lk_acquire(counter->client, &request, &hold);
        if (status == LK_TIMEOUT && request.wait_ms == 0) {
            adder->timeouts++;
        } else if (status == LK_OK) {
            int64_t seen = counter->values[which];
            if (i % 64 == 0)
                sched_yield();
            counter->values[which] = seen + 1;
            adder->added[which]++;
            adder->failures += lk_release(&hold) != LK_OK;
        } else {
            adder->failures++;
        }
    }
    return NULL;
}

TEST_THAT(no_update_is_lost_among_threads)
{
    struct counter counter = {.client = open_mutex(NULL)};
    struct adder adders[THREADS];
    int64_t sums[2] = {0, 0};
    for (int i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){.counter = &counter, .seed = (unsigned)i};
        assert_int_equal(pthread_create(&adders[i].thread, NULL, add, &adders[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(adders[i].thread, NULL);
        assert_int_equal(adders[i].failures, 0);
        sums[0] += adders[i].added[0];
        sums[1] += adders[i].added[1];
    }
    assert_int_equal(counter.values[0], sums[0]);
    assert_int_equal(counter.values[1], sums[1]);
    lk_close(counter.client);
}
