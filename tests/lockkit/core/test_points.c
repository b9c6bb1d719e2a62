/* The named points of a lock's life: which are passed, and in what order. */
#include "lk_fake.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define KEY "lock:item:1"

static char passed[500];

static void note(void *ctx, const char *point, const char *key)
{
    size_t used = strlen(passed);
    (void)ctx;
    assert_string_equal(key, KEY);
    snprintf(passed + used, sizeof passed - used, "%s ", point);
}

static void open_noted(struct fake_fixture *f, const lk_options *options)
{
    fake_init(&f->fake, 7);
    f->fake.env.point = note;
    f->client = fake_open(&f->fake, &fake_provider, options);
    passed[0] = '\0';
}

static void expect(const char *points)
{
    assert_string_equal(passed, points);
    passed[0] = '\0';
}

TEST_THAT(lock_is_tried_acquired_renewed_and_released)
{
    struct fake_fixture f;
    open_noted(&f, NULL);
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
    expect(LK_POINT_TRY " " LK_POINT_ACQUIRED " ");
    f.fake.now_us = watchdog_step(f.client);
    watchdog_step(f.client);
    expect(LK_POINT_RENEW " ");
    assert_int_equal(lk_release(&f.hold), LK_OK);
    expect(LK_POINT_RELEASE " " LK_POINT_RELEASED " ");
    lk_close(f.client);
}

TEST_THAT(refused_lock_is_waited_for)
{
    struct fake_fixture f;
    open_noted(&f, &(lk_options){.retry_min_ms = 60, .retry_max_ms = 60});
    fake_take(&f.fake, KEY, "other", 0);
    const lk_request request = {.key = KEY, .wait_ms = 10};
    assert_int_equal(lk_acquire(f.client, &request, &f.hold), LK_TIMEOUT);
    expect(LK_POINT_TRY " " LK_POINT_WAIT " " LK_POINT_TRY " ");
    lk_close(f.client);
}

static enum fake_fault answer_lost(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    return n == 0 ? FAKE_REPLY_LOST : FAKE_NONE;
}

TEST_THAT(unknown_attempt_is_cleaned_up)
{
    struct fake_fixture f;
    open_noted(&f, NULL);
    f.fake.fault = answer_lost;
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_UNKNOWN);
    expect(LK_POINT_TRY " " LK_POINT_CLEANUP " ");
    lk_close(f.client);
}

TEST_THAT(loss_is_told_by_watchdog_and_by_extension)
{
    struct fake_fixture f;
    open_noted(&f, NULL);
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
    fake_take(&f.fake, KEY, "other", 0);
    passed[0] = '\0';
    f.fake.now_us = watchdog_step(f.client);
    watchdog_step(f.client);
    expect(LK_POINT_RENEW " " LK_POINT_LOST " ");
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    fake_free(&f.fake, KEY);
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
    fake_take(&f.fake, KEY, "other", 0);
    passed[0] = '\0';
    assert_int_equal(lk_extend(&f.hold, 500), LK_LOST);
    expect(LK_POINT_LOST " ");
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    lk_close(f.client);
}

static enum fake_fault release_away(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)n;
    return call == FAKE_RELEASE && fake->calls[FAKE_RELEASE] <= 2 ? FAKE_AWAY : FAKE_NONE;
}

TEST_THAT(unfinished_release_is_repeated_as_a_clean_up)
{
    struct fake_fixture f;
    open_noted(&f, &(lk_options){.watchdog_off = true});
    f.fake.fault = release_away;
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
    passed[0] = '\0';
    assert_int_equal(lk_release(&f.hold), LK_UNAVAILABLE);
    expect(LK_POINT_RELEASE " " LK_POINT_RELEASED " ");
    f.fake.now_us = janitor_step(f.client);
    assert_true(janitor_step(f.client) == INT64_MAX);
    expect(LK_POINT_CLEANUP " ");
    lk_close(f.client);
}
