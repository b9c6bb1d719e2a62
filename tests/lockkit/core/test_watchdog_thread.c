/* The watchdog's thread in real time. For its exact rules see test_watchdog.c. */
#include "lk_fake.h"
#include "tests.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 1500, ROUNDS_FULL = 50000, LOOK_US = 200 };

struct fixture {
    struct fake fake;
    lk_client *client;
};

static void open_fixture(struct fixture *f, int64_t lease_ms)
{
    fake_init(&f->fake, 7);
    f->fake.real_time = true;
    f->client = fake_open(&f->fake, &fake_provider,
                          &(lk_options){.lease_ms = lease_ms, .max_hold_ms = 600000});
}

struct loss {
    atomic_int n;
    lk_loss cause;
};

static void note_loss(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct loss *loss = arg;
    (void)hold;
    loss->cause = cause;
    atomic_fetch_add(&loss->n, 1);
}

TEST_THAT(a_section_three_leases_long_keeps_its_lock)
{
    enum { LEASE_MS = 900 };
    struct fixture f;
    lk_hold hold;
    struct loss loss = {0};
    open_fixture(&f, LEASE_MS);
    lk_request request = {.key = "k", .on_lost = note_loss, .on_lost_arg = &loss};
    assert_int_equal(lk_acquire(f.client, &request, &hold), LK_OK);
    while (fake_now_us(&f.fake) < hold.acquired_us + 3 * LEASE_MS * 1000) {
        assert_true(fake_held(&f.fake, "k", hold.token));
        assert_int_equal(lk_check(&hold, NULL), LK_OK);
        fake_sleep_us(&f.fake, LOOK_US);
    }
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(atomic_load(&loss.n), 0);
    lk_stats stats;
    lk_client_stats(f.client, &stats);
    assert_in_range(stats.renewals, 3, 9);
    lk_close(f.client);
}

TEST_THAT(a_key_deleted_under_its_holder_fires_the_callback)
{
    enum { LEASE_MS = 900 };
    struct fixture f;
    lk_hold hold;
    struct loss loss = {0};
    open_fixture(&f, LEASE_MS);
    lk_request request = {.key = "k", .on_lost = note_loss, .on_lost_arg = &loss};
    assert_int_equal(lk_acquire(f.client, &request, &hold), LK_OK);
    fake_free(&f.fake, "k");
    while (atomic_load(&loss.n) == 0) {
        /* A third of the lease, plus a third for a busy machine. */
        assert_true(fake_now_us(&f.fake) < hold.acquired_us + LEASE_MS * 1000 * 2 / 3);
        fake_sleep_us(&f.fake, LOOK_US);
    }
    assert_int_equal(loss.cause, LK_LOSS_DELETED);
    assert_int_equal(lk_check(&hold, NULL), LK_LOST);
    assert_int_equal(lk_release(&hold), LK_LOST);
    lk_close(f.client);
}

TEST_THAT(no_thread_is_started_before_it_is_needed)
{
    struct fixture f;
    lk_hold hold;
    open_fixture(&f, 1000);
    lk_request unwatched = {.key = "k", .lease_ms = 1000};
    assert_int_equal(lk_acquire(f.client, &unwatched, &hold), LK_OK);
    assert_false(atomic_load(&f.client->watchdog.started));
    lk_release(&hold);
    lk_request watched = {.key = "k"};
    assert_int_equal(lk_acquire(f.client, &watched, &hold), LK_OK);
    assert_true(atomic_load(&f.client->watchdog.started));
    lk_release(&hold);
    lk_close(f.client);
}

static bool sleeps_without_end(struct watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    bool sleeps = watchdog->wake_at_us == INT64_MAX;
    pthread_mutex_unlock(&watchdog->lock);
    return sleeps;
}

TEST_THAT(a_sleeping_watchdog_is_woken_by_a_hold_due_sooner)
{
    struct fixture f;
    lk_hold hold;
    struct loss loss = {0};
    open_fixture(&f, 60);
    assert_int_equal(watchdog_start(f.client), LK_OK);
    while (!sleeps_without_end(&f.client->watchdog))
        sched_yield();
    lk_request request = {.key = "k", .on_lost = note_loss, .on_lost_arg = &loss};
    assert_int_equal(lk_acquire(f.client, &request, &hold), LK_OK);
    fake_free(&f.fake, "k");
    while (atomic_load(&loss.n) == 0) {
        assert_true(fake_now_us(&f.fake) < hold.acquired_us + 10000000);
        fake_sleep_us(&f.fake, LOOK_US);
    }
    lk_release(&hold);
    lk_close(f.client);
}

/* -- release and on_lost -------------------------------------------------------------------------
 */

struct slow_loss {
    atomic_bool entered, releasing, finished;
};

/* Waits until release has been called, then long enough to detect a release that does not wait. */
static void lose_slowly(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct slow_loss *slow = arg;
    (void)hold;
    (void)cause;
    atomic_store(&slow->entered, true);
    while (!atomic_load(&slow->releasing))
        sched_yield();
    lk_env_system()->sleep_us(NULL, 20000);
    atomic_store(&slow->finished, true);
}

TEST_THAT(release_waits_for_a_running_callback)
{
    struct fixture f;
    lk_hold hold;
    struct slow_loss slow = {false, false, false};
    open_fixture(&f, 30);
    lk_request request = {.key = "k", .on_lost = lose_slowly, .on_lost_arg = &slow};
    assert_int_equal(lk_acquire(f.client, &request, &hold), LK_OK);
    fake_free(&f.fake, "k");
    while (!atomic_load(&slow.entered))
        sched_yield();
    atomic_store(&slow.releasing, true);
    assert_int_equal(lk_release(&hold), LK_LOST);
    assert_true(atomic_load(&slow.finished));
    lk_close(f.client);
}

/* -- release racing with renewal ------------------------------------------------------------------
 */

/* One racer per key: a renewal of a key without a holder is an error of the watchdog. */
struct racer {
    struct fixture *f;
    char key[8];
    int rounds;
    atomic_bool held;
    atomic_int strays; /* renewals or losses after release had returned */
    int failures;
};

static struct racer racers[THREADS];

static void note_stray(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    if (strcmp(point, LK_POINT_RENEW) != 0 && strcmp(point, LK_POINT_LOST) != 0)
        return;
    struct racer *racer = &racers[key[0] - 'a'];
    if (!atomic_load(&racer->held))
        atomic_fetch_add(&racer->strays, 1);
}

static void *race(void *arg)
{
    struct racer *racer = arg;
    struct fake *fake = &racer->f->fake;
    for (int i = 0; i < racer->rounds; i++) {
        lk_hold hold;
        /* It waits, as on a busy machine a grant may arrive too late to be used. */
        lk_request request = {.key = racer->key, .wait_ms = 60000};
        atomic_store(&racer->held, true);
        if (lk_acquire(racer->f->client, &request, &hold) != LK_OK) {
            racer->failures++;
            continue;
        }
        int64_t until_us = hold.acquired_us + (int64_t)(fake_random(fake) % 5000);
        while (fake_now_us(fake) < until_us) /* around the time of the first renewal */
            if (i % 4 == 0)
                lk_check(&hold, NULL);
            else
                fake_sleep_us(fake, LOOK_US);
        if (i % 8 == 0)
            lk_extend(&hold, LK_LEASE_MS_MIN);
        lk_release(&hold); /* the hold may be lost already; both are allowed */
        atomic_store(&racer->held, false);
        memset(&hold, 0xa5, sizeof hold); /* the library may not use it any more */
    }
    return NULL;
}

TEST_THAT(release_racing_with_renewal_leaves_no_stray)
{
    struct fixture f;
    pthread_t threads[THREADS];
    int rounds = (getenv("TEST_FULL") ? ROUNDS_FULL : ROUNDS) / THREADS;
    open_fixture(&f, LK_LEASE_MS_MIN);
    lk_close(f.client);
    f.fake.env.point = note_stray;
    f.fake.latency_us = 300;
    f.client = fake_open(&f.fake, &fake_provider, &(lk_options){.lease_ms = LK_LEASE_MS_MIN});
    for (int i = 0; i < THREADS; i++) {
        struct racer *racer = &racers[i];
        racer->f = &f;
        racer->rounds = rounds;
        snprintf(racer->key, sizeof racer->key, "%c", 'a' + i);
        assert_int_equal(pthread_create(&threads[i], NULL, race, racer), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(racers[i].failures, 0);
        assert_int_equal(atomic_load(&racers[i].strays), 0);
    }
    lk_stats stats;
    lk_client_stats(f.client, &stats);
    assert_true(stats.renewals > 0);
    assert_int_equal(stats.grants, (uint64_t)rounds * THREADS);
    assert_int_equal(stats.releases, stats.grants);
    lk_close(f.client);
}
