/* The acquire loop, on a virtual clock against a lock server in memory. */
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

TEST_THAT(grant_fills_the_hold_and_release_frees_the_key)
{
    struct fake_fixture f;
    int64_t took_us, left_ms;
    fake_fixture_open(&f, &fake_provider, NULL);
    f.fake.latency_us = 4000;
    assert_int_equal(acquire(&f, 0, &took_us), LK_OK);
    assert_ptr_equal(f.hold.client, f.client);
    assert_string_equal(f.hold.key, KEY);
    assert_true(fake_held(&f.fake, KEY, f.hold.token));
    assert_int_equal(f.hold.fence, 1);
    assert_int_equal(f.hold.attempts, 1);
    assert_int_equal(f.hold.wait_us, 4000);
    assert_int_equal(f.hold.lease_ms, 30000);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, 30000 - 4); /* counted from before the request was sent */
    assert_int_equal(lk_release(&f.hold), LK_OK);
    assert_false(fake_held(&f.fake, KEY, NULL));
    lk_close(f.client);
}

TEST_THAT(a_held_lock_times_out_at_wait_ms_after_one_last_try)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_provider, NULL);
    fake_take(&f.fake, KEY, "other", 0);
    assert_int_equal(acquire(&f, 100, &took_us), LK_TIMEOUT);
    assert_int_equal(took_us, 100000);
    assert_in_range(f.fake.calls[FAKE_TRY], 8, 40);
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 0); /* no outcome was unknown */
    assert_true(fake_held(&f.fake, KEY, "other"));
    lk_stats stats;
    lk_client_stats(f.client, &stats);
    assert_int_equal(stats.timeouts, 1);
    assert_int_equal(stats.refusals, f.fake.calls[FAKE_TRY]);
    lk_close(f.client);
}

TEST_THAT(no_wait_is_one_attempt)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_waiting_provider, NULL);
    fake_take(&f.fake, KEY, "other", 0);
    assert_int_equal(acquire(&f, 0, &took_us), LK_TIMEOUT);
    assert_int_equal(f.fake.calls[FAKE_TRY], 1);
    assert_int_equal(f.fake.calls[FAKE_WAIT], 0);
    assert_int_equal(f.fake.calls[FAKE_WAIT_END], 0);
    lk_close(f.client);
}

static enum fake_fault always_away(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    (void)n;
    return FAKE_AWAY;
}

static enum fake_fault away_after_first(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    return n == 0 ? FAKE_NONE : FAKE_AWAY;
}

static enum fake_fault away_for_a_while(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    return n == 0 || n > 5 ? FAKE_NONE : FAKE_AWAY;
}

TEST_THAT(a_server_away_at_first_is_reported_at_once)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_provider, NULL);
    f.fake.fault = always_away;
    assert_int_equal(acquire(&f, 10000, &took_us), LK_UNAVAILABLE);
    assert_int_equal(took_us, 0);
    assert_int_equal(f.fake.n_calls, 1);
    lk_close(f.client);
}

TEST_THAT(a_server_going_away_during_the_wait_is_retried_until_wait_ms)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_waiting_provider, NULL);
    fake_take(&f.fake, KEY, "other", 20);
    f.fake.fault = away_after_first;
    assert_int_equal(acquire(&f, 200, &took_us), LK_UNAVAILABLE);
    assert_int_equal(took_us, 200000);
    f.fake.n_calls = 0;
    f.fake.fault = away_for_a_while;
    fake_take(&f.fake, KEY, "other", 20);
    assert_int_equal(acquire(&f, 10000, &took_us), LK_OK);
    assert_in_range(took_us, 20000, 100000);
    lk_release(&f.hold);
    lk_close(f.client);
}

static enum fake_fault all_requests_lost(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    (void)n;
    return FAKE_REQUEST_LOST;
}

static enum fake_fault first_reply_lost(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    return n == 0 ? FAKE_REPLY_LOST : FAKE_NONE;
}

static enum fake_fault replies_lost_for_a_while(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    return n < 4 ? FAKE_REPLY_LOST : FAKE_NONE;
}

TEST_THAT(a_hung_server_cannot_hold_the_caller_beyond_two_more_commands)
{
    struct fake_fixture f;
    int64_t took_us, timeout_us;
    for (int64_t wait_ms = 0; wait_ms <= 400; wait_ms += 7) {
        fake_fixture_open(&f, &fake_provider, NULL);
        timeout_us = f.fake.timeout_us;
        f.fake.fault = all_requests_lost;
        assert_int_equal(acquire(&f, wait_ms, &took_us), LK_UNKNOWN);
        assert_true(took_us <= wait_ms * 1000 + 2 * timeout_us);
        lk_close(f.client);
    }
}

/* Commands are slow, one has an unknown outcome, and another client holds the lock. */
TEST_THAT(nor_can_a_slow_one)
{
    struct fake_fixture f;
    int64_t took_us;
    for (int64_t wait_ms = 0; wait_ms <= 400; wait_ms++) {
        fake_fixture_open(&f, &fake_provider, NULL);
        f.fake.latency_us = f.fake.timeout_us - 2000;
        f.fake.fault = first_reply_lost;
        fake_take(&f.fake, KEY, "other", 0);
        acquire(&f, wait_ms, &took_us);
        assert_true(took_us <= wait_ms * 1000 + 2 * f.fake.timeout_us);
        lk_close(f.client);
    }
}

TEST_THAT(a_grant_whose_answer_is_lost_leaves_no_orphan)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_provider, NULL);
    f.fake.fault = first_reply_lost;
    assert_int_equal(acquire(&f, 0, &took_us), LK_UNKNOWN);
    assert_int_equal(f.fake.calls[FAKE_TRY], 1);
    assert_false(fake_held(&f.fake, KEY, NULL));
    assert_int_equal(lk_release(&f.hold), LK_LOST); /* nothing was held */
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 1);
    lk_close(f.client);
}

TEST_THAT(a_lost_answer_is_undone_and_the_lock_then_taken)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_provider, NULL);
    f.fake.fault = replies_lost_for_a_while;
    assert_int_equal(acquire(&f, 1000, &took_us), LK_OK);
    assert_int_equal(f.hold.attempts, 2); /* no try while an outcome is unknown */
    assert_int_equal(f.hold.fence, 2);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

static char first_token[LK_TOKEN_MAX + 1];

/* The first try is granted without an answer; of its undoing nothing is heard. */
static enum fake_fault undoing_lost(struct fake *fake, enum fake_call call, uint64_t n)
{
    if (n == 1)
        memcpy(first_token, fake->locks[0].token, sizeof first_token);
    return n == 0                           ? FAKE_REPLY_LOST
           : n == 1 && call == FAKE_RELEASE ? FAKE_REQUEST_LOST
                                            : FAKE_NONE;
}

/* That undoing may still arrive, and must not free a lock that was granted since. */
TEST_THAT(after_an_unanswered_undoing_the_next_try_has_another_token)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_provider, NULL);
    f.fake.fault = undoing_lost;
    assert_int_equal(acquire(&f, 1000, &took_us), LK_OK);
    assert_true(first_token[0] != '\0');
    assert_string_not_equal(f.hold.token, first_token);
    assert_true(fake_held(&f.fake, KEY, f.hold.token));
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

static enum fake_fault first_request_late(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)call;
    return n == 0 ? FAKE_REQUEST_LATE : FAKE_NONE;
}

/* The first try arrives long after it was undone. Its grant must not remain. */
TEST_THAT(a_request_that_arrives_late_is_cleaned_up_at_the_end)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_provider, NULL);
    fake_take(&f.fake, KEY, "other", 120);
    f.fake.fault = first_request_late;
    f.fake.late_us = 80000; /* at 130 ms, while we sleep before the deadline at 131 */
    lk_options slow = {.retry_min_ms = 60, .retry_max_ms = 60};
    lk_close(f.client);
    f.client = fake_open(&f.fake, &fake_provider, &slow);
    assert_int_equal(acquire(&f, 131, &took_us), LK_TIMEOUT);
    assert_false(fake_held(&f.fake, KEY, f.hold.token));
    lk_close(f.client);
}

static enum fake_fault garbage(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_TRY ? FAKE_GARBAGE : FAKE_NONE;
}

TEST_THAT(nonsense_is_undone_and_reported_at_once)
{
    struct fake_fixture f;
    int64_t took_us;
    fake_fixture_open(&f, &fake_provider, NULL);
    f.fake.fault = garbage;
    assert_int_equal(acquire(&f, 10000, &took_us), LK_PROTOCOL);
    assert_int_equal(took_us, 0);
    assert_false(fake_held(&f.fake, KEY, NULL));
    lk_close(f.client);
}

TEST_THAT(a_grant_that_took_longer_than_its_lease_is_not_had)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, NULL);
    f.fake.latency_us = 30000; /* the server's lease ends 15 ms later than ours */
    lk_request request = {.key = KEY, .lease_ms = 25};
    assert_int_equal(lk_acquire(f.client, &request, &f.hold), LK_TIMEOUT);
    assert_false(fake_held(&f.fake, KEY, NULL));
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 1);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST);
    lk_close(f.client);
}

TEST_THAT(a_late_grant_of_a_guard_without_owner_test_is_left_to_its_lease)
{
    struct fake_fixture f;
    lk_provider bare = fake_provider;
    bare.info.caps &= ~(uint32_t)LK_CAP_OWNER;
    fake_fixture_open(&f, &bare, NULL);
    f.fake.latency_us = 30000;
    lk_request request = {.key = KEY, .lease_ms = 25};
    assert_int_equal(lk_acquire(f.client, &request, &f.hold), LK_TIMEOUT);
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 0);
    lk_close(f.client);
}
