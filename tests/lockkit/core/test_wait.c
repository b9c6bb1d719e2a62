/* How the acquire loop waits between tries: it sleeps, or calls the provider's wait(). */
#include "lk_fake.h"
#include "tests.h"

#include <string.h>

#define KEY "lock:item:1"

/* Acquires the lock with wait_ms. *ret_took_us: the virtual time it took. */
static lk_status acquire(struct fake_fixture *f, int64_t wait_ms, int64_t *ret_took_us)
{
    int64_t start_us = fake_now_us(&f->fake);
    lk_request request = {.key = KEY, .wait_ms = wait_ms};
    lk_status status = lk_acquire(f->client, &request, &f->hold);
    *ret_took_us = fake_now_us(&f->fake) - start_us;
    return status;
}

TEST_THAT(sleeps_are_random_within_a_range_that_doubles)
{
    struct fake_fixture f;
    int64_t took_us, largest_us[5] = {0}, smallest_us[5];
    for (int i = 0; i < 5; i++)
        smallest_us[i] = INT64_MAX;
    for (int round = 0; round < 300; round++) {
        fake_init(&f.fake, (uint64_t)round);
        f.client = fake_open(&f.fake, &fake_provider, &(lk_options){.retry_min_ms = 2});
        fake_take(&f.fake, KEY, "other", 0);
        assert_int_equal(acquire(&f, 500, &took_us), LK_TIMEOUT);
        for (size_t i = 0; i + 1 < f.fake.n_sleeps; i++) { /* the deadline shortens the last */
            int64_t limit_us = i < 2 ? 4000 << i : 16000;
            assert_in_range(f.fake.sleeps_us[i], 2000, limit_us);
            if (i < 5 && f.fake.sleeps_us[i] > largest_us[i])
                largest_us[i] = f.fake.sleeps_us[i];
            if (i < 5 && f.fake.sleeps_us[i] < smallest_us[i])
                smallest_us[i] = f.fake.sleeps_us[i];
        }
        lk_close(f.client);
    }
    assert_in_range(largest_us[0], 3900, 4000); /* the whole range is used */
    assert_in_range(largest_us[1], 7500, 8000);
    assert_in_range(largest_us[4], 15000, 16000);
    for (int i = 0; i < 5; i++)
        assert_in_range(smallest_us[i], 2000, 2500);
}

TEST_THAT(no_sleep_outlasts_the_known_end_of_the_lease)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_init(&f.fake, 7);
    lk_options slow = {.retry_min_ms = 400, .retry_max_ms = 400};
    f.client = fake_open(&f.fake, &fake_provider, &slow);
    f.fake.tell_expiry = true;
    fake_take(&f.fake, KEY, "other", 500);
    assert_int_equal(acquire(&f, 10000, &took_us), LK_OK);
    assert_in_range(took_us, 500000, 500000 + 1000);
    lk_release(&f.hold);
    lk_close(f.client);
}

/* Claims that the lock is already free. */
static lk_status try_promising(void *self, lk_attempt *attempt)
{
    lk_status status = fake_provider.try_acquire(self, attempt);
    attempt->retry_us = 1;
    return status;
}

static lk_status wait_out(void *self, lk_attempt *attempt, int64_t until_us)
{
    struct fake *fake = self;
    (void)attempt;
    if (until_us > fake->now_us)
        fake->now_us = until_us;
    return LK_OK;
}

TEST_THAT(an_overdue_lease_is_looked_at_again_soon)
{
    struct fake_fixture f;
    int64_t took_us;
    lk_provider promising = fake_provider;
    promising.try_acquire = try_promising;
    promising.wait = wait_out;
    fake_fixture_open(&f, &promising, NULL);
    fake_take(&f.fake, KEY, "other", 100);
    assert_int_equal(acquire(&f, 10000, &took_us), LK_OK);
    assert_in_range(took_us, 100000, 102000);
    lk_release(&f.hold);
    lk_close(f.client);
}

TEST_THAT(the_second_try_follows_the_subscription_at_once)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_waiting_provider, NULL);
    fake_take(&f.fake, KEY, "other", 300);
    assert_int_equal(acquire(&f, 1000, &took_us), LK_OK);
    assert_int_equal(f.fake.calls[FAKE_TRY], 3); /* refused, refused again, granted */
    assert_int_equal(f.fake.calls[FAKE_WAIT], 2);
    assert_int_equal(f.fake.calls[FAKE_WAIT_END], 1);
    assert_int_equal(f.fake.n_sleeps, 0);
    assert_in_range(took_us, 300000, 300200);
    lk_release(&f.hold);
    lk_close(f.client);
}

TEST_THAT(wait_end_comes_once_after_a_timeout_too)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_waiting_provider, NULL);
    fake_take(&f.fake, KEY, "other", 0);
    assert_int_equal(acquire(&f, 50, &took_us), LK_TIMEOUT);
    assert_int_equal(took_us, 50000);
    assert_int_equal(f.fake.calls[FAKE_WAIT_END], 1);
    lk_close(f.client);
}

static enum fake_fault deaf(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_WAIT ? FAKE_AWAY : FAKE_NONE;
}

TEST_THAT(without_its_subscription_a_waiter_polls_with_jitter)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_waiting_provider, NULL);
    f.fake.fault = deaf;
    fake_take(&f.fake, KEY, "other", 100);
    assert_int_equal(acquire(&f, 1000, &took_us), LK_OK);
    assert_in_range(f.fake.n_sleeps, 6, 60);
    assert_in_range(took_us, 100000, 116000);
    lk_release(&f.hold);
    lk_close(f.client);
}
