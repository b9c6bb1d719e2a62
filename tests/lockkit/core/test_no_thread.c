/* The system gives no thread: a watched lock is refused, and an unfinished release is left to its
 * lease. */
#include "lk_fake.h"
#include "tests.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define KEY "lock:item:1"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

static bool none_left;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    return none_left ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

static struct fake fake;

static lk_client *open_client(lk_options options)
{
    lk_client *client;
    fake_init(&fake, 7);
    fake.real_time = true;
    options.env = &fake.env;
    assert_int_equal(lk_open_provider(&fake_provider, NULL, &options, &client, NULL), LK_OK);
    client->watchdog.manual = client->janitor.manual = false;
    return client;
}

TEST_THAT(lock_that_nobody_could_renew_is_refused_before_it_is_asked_for)
{
    lk_hold hold;
    lk_client *client = open_client((lk_options){0});
    none_left = true;
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_NO_MEMORY);
    assert_int_equal(lk_acquire(client, &(lk_request){.key = KEY, .wait_ms = 50}, &hold),
                     LK_NO_MEMORY);
    assert_int_equal(fake.n_calls, 0);
    assert_int_equal(lk_release(&hold), LK_LOST);
    const lk_request unwatched = {.key = KEY, .lease_ms = 1000}; /* needs no thread */
    assert_int_equal(lk_acquire(client, &unwatched, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    none_left = false;
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK); /* it tries again */
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client); /* aborts if a refused call still counts as a hold */
}

static enum fake_fault releases_away(struct fake *of, enum fake_call call, uint64_t n)
{
    (void)of;
    (void)n;
    return call == FAKE_RELEASE ? FAKE_AWAY : FAKE_NONE;
}

static char told[8];

static void note(void *arg, const char *key, lk_pending what, int64_t ms)
{
    (void)arg;
    (void)ms;
    assert_string_equal(key, KEY);
    told[strlen(told)] = (char)('0' + (int)what);
}

TEST_THAT(release_that_nobody_could_repeat_is_told_to_be_left)
{
    static const char expected[] = {'0' + LK_PENDING_STARTED, '0' + LK_PENDING_GIVEN_UP, '\0'};
    lk_hold hold;
    lk_client *client = open_client((lk_options){.watchdog_off = true, .on_pending = note});
    fake.fault = releases_away;
    none_left = true;
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_UNAVAILABLE);
    assert_string_equal(told, expected);
    none_left = false;
    lk_close(client); /* has nothing to wait for */
    assert_string_equal(told, expected);
}

/* The bound of the queue of unfinished releases. */
TEST_THAT(one_release_too_many_is_left_and_the_rest_are_repeated)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &(lk_options){.watchdog_off = true});
    f.fake.fault = releases_away;
    for (int i = 0; i <= JANITOR_PENDING_MAX; i++) {
        assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
        assert_int_equal(lk_release(&f.hold), LK_UNAVAILABLE);
        fake_free(&f.fake, KEY);
    }
    f.fake.fault = NULL;
    assert_int_equal(f.client->janitor.n_pending, JANITOR_PENDING_MAX);
    lk_stats stats;
    lk_client_stats(f.client, &stats);
    assert_int_equal(stats.pending, JANITOR_PENDING_MAX + 1);
    for (int64_t due_us; (due_us = janitor_step(f.client)) != INT64_MAX;)
        f.fake.now_us = due_us > f.fake.now_us ? due_us : f.fake.now_us;
    lk_client_stats(f.client, &stats);
    assert_int_equal(stats.pending_done, JANITOR_PENDING_MAX);
    lk_close(f.client);
}
