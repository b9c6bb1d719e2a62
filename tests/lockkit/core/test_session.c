/* Locks that end with a session. The end is noticed at once and reported once; signs of life keep
 * the session alive. */
#include "lk_fake.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define KEY "lock:item:1"

enum { SESSION_MS = 300, THREADS = 3, PATIENCE_US = 20000000, LOOK_US = 50 };

struct fixture {
    struct fake fake;
    lk_client *client;
    lk_hold hold;
    atomic_int n_lost;
    lk_loss cause;
    int64_t lost_at_us, start_us;
};

static void note_loss(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct fixture *f = arg;
    f->cause = cause;
    f->lost_at_us = fake_now_us(&f->fake);
    if (lk_check(hold, NULL) != LK_LOST)
        atomic_store(&f->n_lost, -1000); /* reported before the loss */
    atomic_fetch_add(&f->n_lost, 1);
}

static void open_fixture(struct fixture *f, const lk_provider *provider, const lk_options *options)
{
    memset(f, 0, sizeof *f);
    fake_init(&f->fake, 7);
    f->client = fake_open(&f->fake, provider, options);
}

static lk_status acquire(struct fixture *f, int64_t lease_ms)
{
    lk_request request = {.key = KEY, .lease_ms = lease_ms, .on_lost = note_loss, .on_lost_arg = f};
    f->start_us = fake_now_us(&f->fake);
    return lk_acquire(f->client, &request, &f->hold);
}

/* Does the work of the watchdog's thread, up to this time after the grant. */
static void run_to_ms(struct fixture *f, int64_t ms)
{
    fake_run_watchdog(&f->fake, f->client, f->start_us + ms * 1000);
}

TEST_THAT(an_ended_session_is_lost_at_once_and_told_once)
{
    struct fixture f;
    int64_t left_ms;
    open_fixture(&f, &fake_session_provider, NULL);
    assert_int_equal(acquire(&f, 0), LK_OK);
    assert_int_equal(f.hold.lease_ms, SESSION_MS);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, SESSION_MS);
    fake_end_session(&f.fake);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST);
    assert_int_equal(f.n_lost, 0); /* only the watchdog reports the loss */
    run_to_ms(&f, 0);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.cause, LK_LOSS_SESSION);
    fake_end_session(&f.fake);
    run_to_ms(&f, 3 * SESSION_MS);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 0);
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 1); /* the provider drops its record of the lock */
    lk_close(f.client);
}

TEST_THAT(a_session_that_ends_after_release_tells_nobody)
{
    struct fixture f;
    open_fixture(&f, &fake_session_provider, NULL);
    assert_int_equal(acquire(&f, 0), LK_OK);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    fake_end_session(&f.fake);
    assert_true(watchdog_step(f.client) == INT64_MAX);
    assert_int_equal(f.n_lost, 0);
    lk_close(f.client);
}

static void end_session_while_asleep(struct fake *fake, int64_t us)
{
    fake->sleep_us = NULL;
    fake->now_us += us;
    fake_end_session(fake);
}

/* The session ends after the server's grant, before the answer arrives. */
TEST_THAT(a_grant_on_a_session_that_has_ended_was_never_had)
{
    struct fixture f;
    open_fixture(&f, &fake_session_provider, NULL);
    f.fake.latency_us = 100;
    f.fake.sleep_us = end_session_while_asleep;
    assert_int_equal(acquire(&f, 0), LK_TIMEOUT);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST);
    assert_false(fake_held(&f.fake, KEY, NULL)); /* undone */
    assert_int_equal(f.n_lost, 0);
    lk_request patient = {.key = KEY, .wait_ms = 1000};
    f.fake.sleep_us = end_session_while_asleep;
    assert_int_equal(lk_acquire(f.client, &patient, &f.hold), LK_OK);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

TEST_THAT(all_holds_of_a_session_are_told_however_often_it_is_said_to_have_ended)
{
    struct fixture f;
    lk_hold holds[THREADS];
    open_fixture(&f, &fake_session_provider, NULL);
    for (int i = 0; i < THREADS; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i);
        lk_request request = {.key = key, .on_lost = note_loss, .on_lost_arg = &f};
        assert_int_equal(lk_acquire(f.client, &request, &holds[i]), LK_OK);
    }
    fake_end_session(&f.fake);
    fake_end_session(&f.fake); /* while all holds are due */
    assert_true(watchdog_step(f.client) == INT64_MAX);
    assert_int_equal(f.n_lost, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(lk_release(&holds[i]), LK_LOST);
    lk_close(f.client);
}

/* An explicit lease does not end a session, nor does watchdog_off. */
TEST_THAT(signs_of_life_keep_a_hold_whatever_the_options_say)
{
    struct fixture f;
    open_fixture(&f, &fake_session_provider,
                 &(lk_options){.watchdog_off = true, .max_hold_ms = SESSION_MS});
    assert_int_equal(acquire(&f, 10), LK_OK);
    for (int64_t ms = 1; ms <= 5 * SESSION_MS; ms++) {
        run_to_ms(&f, ms);
        assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
    }
    assert_int_equal(f.fake.calls[FAKE_RENEW], 15);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    assert_int_equal(f.n_lost, 0);
    lk_close(f.client);
}

static enum fake_fault no_renewals(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_RENEW ? FAKE_AWAY : FAKE_NONE;
}

TEST_THAT(a_session_without_signs_of_life_is_lost_after_its_timeout)
{
    struct fixture f;
    open_fixture(&f, &fake_session_provider, NULL);
    assert_int_equal(acquire(&f, 0), LK_OK);
    run_to_ms(&f, SESSION_MS / 2); /* one sign of life, at a third */
    f.fake.fault = no_renewals;
    run_to_ms(&f, 3 * SESSION_MS);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.cause, LK_LOSS_SESSION);
    assert_int_equal(f.lost_at_us - f.start_us, SESSION_MS * 1000 * 4 / 3);
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    lk_close(f.client);
}

TEST_THAT(a_lock_deleted_under_a_living_session_is_told_as_deleted)
{
    struct fixture f;
    open_fixture(&f, &fake_session_provider, NULL);
    assert_int_equal(acquire(&f, 0), LK_OK);
    fake_free(&f.fake, KEY);
    run_to_ms(&f, SESSION_MS);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.cause, LK_LOSS_DELETED);
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    lk_close(f.client);
}

static void end_session_and_free(struct fake *fake, int64_t us)
{
    end_session_while_asleep(fake, us);
    fake_free(fake, KEY);
}

/* The server answers that the lock does not exist, because its session has ended. */
TEST_THAT(a_session_that_ends_while_it_is_asked_for_is_told_as_ended)
{
    struct fixture f;
    open_fixture(&f, &fake_session_provider, NULL);
    assert_int_equal(acquire(&f, 0), LK_OK);
    f.fake.latency_us = 100;
    f.fake.sleep_us = end_session_and_free;
    run_to_ms(&f, SESSION_MS);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 1);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.cause, LK_LOSS_SESSION);
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    lk_close(f.client);
}

/* A provider that notices its session's end but has neither timeout nor signs of life. */
TEST_THAT(a_session_without_timeout_is_watched_for_its_end_alone)
{
    struct fixture f;
    lk_hold unwatched;
    int64_t left_ms;
    lk_provider mute = fake_session_provider;
    mute.renew = NULL;
    open_fixture(&f, &mute, NULL);
    f.fake.session_ms = 0;
    assert_int_equal(acquire(&f, 0), LK_OK);
    assert_int_equal(lk_try_acquire(f.client, "other", &unwatched), LK_OK);
    assert_true(watchdog_step(f.client) == INT64_MAX);
    assert_int_equal(lk_check(&unwatched, &left_ms), LK_OK);
    assert_true(left_ms == INT64_MAX);
    fake_end_session(&f.fake);
    assert_int_equal(lk_check(&unwatched, NULL), LK_LOST);
    assert_true(watchdog_step(f.client) == INT64_MAX);
    assert_int_equal(f.n_lost, 1);
    lk_release(&unwatched);
    lk_release(&f.hold);
    lk_close(f.client);
}

/* -- in real time --------------------------------------------------------------------------------
 */

struct racer {
    pthread_t thread;
    struct fixture *f;
    char key[8];
    int64_t end_us, rounds;
    atomic_int told;
    atomic_bool held;
    int failures; /* a loss not reported, reported twice, or reported after release */
};

static void count_loss(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct racer *racer = arg;
    bool right =
        atomic_load(&racer->held) && cause == LK_LOSS_SESSION && lk_check(hold, NULL) == LK_LOST;
    atomic_fetch_add(&racer->told, right ? 1 : 1000);
}

/* Every other round waits until its loss is reported; the others release meanwhile. */
static void *race(void *arg)
{
    struct racer *racer = arg;
    struct fake *fake = &racer->f->fake;
    for (int64_t i = 0; fake_now_us(fake) < racer->end_us && racer->failures == 0; i++) {
        lk_hold hold;
        lk_request request = {
            .key = racer->key, .wait_ms = 60000, .on_lost = count_loss, .on_lost_arg = racer};
        atomic_store(&racer->told, 0);
        atomic_store(&racer->held, true);
        if (lk_acquire(racer->f->client, &request, &hold) != LK_OK) {
            racer->failures++;
            break;
        }
        int64_t patience_us = fake_now_us(fake) + PATIENCE_US;
        while (i % 2 == 0 && atomic_load(&racer->told) == 0 && fake_now_us(fake) < patience_us)
            fake_sleep_us(fake, LOOK_US);
        bool untold = i % 2 == 0 && atomic_load(&racer->told) == 0;
        lk_release(&hold);
        atomic_store(&racer->held, false);
        memset(&hold, 0xa5, sizeof hold); /* the library may not use it any more */
        racer->failures += untold || atomic_load(&racer->told) > 1;
        racer->rounds++;
    }
    return NULL;
}

static void *end_sessions(void *arg)
{
    struct fixture *f = arg;
    while (atomic_load(&f->n_lost) == 0) {
        fake_end_session(&f->fake);
        fake_sleep_us(&f->fake, 50 + (int64_t)(fake_random(&f->fake) % 200));
    }
    return NULL;
}

TEST_THAT(each_loss_is_told_once_and_never_after_release)
{
    static struct fixture f;
    struct racer racers[THREADS] = {{0}};
    pthread_t ender;
    fake_init(&f.fake, 7);
    f.fake.real_time = true;
    f.fake.session_ms = 60000; /* only the ends of sessions are reported */
    f.client = fake_open(&f.fake, &fake_session_provider, NULL);
    assert_int_equal(pthread_create(&ender, NULL, end_sessions, &f), 0);
    for (int i = 0; i < THREADS; i++) {
        racers[i].f = &f;
        racers[i].end_us = fake_now_us(&f.fake) + test_size(1000, 30000) * 1000;
        snprintf(racers[i].key, sizeof racers[i].key, "%d", i);
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(racers[i].thread, NULL);
    atomic_store(&f.n_lost, 1); /* stops the ender */
    pthread_join(ender, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(racers[i].failures, 0);
    lk_stats stats;
    lk_client_stats(f.client, &stats);
    for (int i = 0; i < THREADS; i++)
        assert_true(racers[i].rounds > 1);
    assert_true(stats.lost > THREADS);
    lk_close(f.client);
}
