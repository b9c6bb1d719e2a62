/* Operations on a hold, and the tokens that distinguish holds. */
#include "lk_fake.h"
#include "tests.h"

#include <string.h>

#define KEY "lock:item:1"

static const lk_options unwatched = {.watchdog_off = true};

static lk_stats stats_of(const lk_client *client)
{
    lk_stats stats;
    lk_client_stats(client, &stats);
    return stats;
}

static void acquire(struct fake_fixture *f, int64_t lease_ms)
{
    lk_request request = {.key = KEY, .lease_ms = lease_ms};
    assert_int_equal(lk_acquire(f->client, &request, &f->hold), LK_OK);
}

TEST_THAT(check_counts_down_to_the_end_of_the_lease)
{
    struct fake_fixture f;
    int64_t left_ms = -1;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 100);
    fake_sleep_us(&f.fake, 60500);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, 39);
    fake_sleep_us(&f.fake, 39499);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, 0);
    fake_sleep_us(&f.fake, 1);
    left_ms = -1;
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_LOST);
    assert_int_equal(left_ms, -1); /* written only on success */
    lk_release(&f.hold);
    lk_close(f.client);
}

TEST_THAT(a_lock_without_lease_is_ours_without_end)
{
    struct fake_fixture f;
    int64_t left_ms;
    lk_provider forever = fake_provider;
    forever.info.caps &= ~(uint32_t)LK_CAP_LEASE;
    fake_init(&f.fake, 7);
    f.client = fake_open(&f.fake, &forever, NULL);
    acquire(&f, 100);
    assert_int_equal(f.hold.lease_ms, 0);
    fake_sleep_us(&f.fake, INT64_C(86400000000));
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_true(left_ms == INT64_MAX);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

TEST_THAT(an_extended_lease_counts_from_the_extension)
{
    struct fake_fixture f;
    int64_t left_ms;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 100);
    fake_sleep_us(&f.fake, 50000);
    f.fake.latency_us = 2000;
    assert_int_equal(lk_extend(&f.hold, 500), LK_OK);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, 498);
    assert_int_equal(stats_of(f.client).renewals, 1);
    fake_sleep_us(&f.fake, 400000);
    assert_true(fake_held(&f.fake, KEY, f.hold.token));
    assert_int_equal(lk_extend(&f.hold, 0), LK_INVALID);
    assert_int_equal(lk_extend(&f.hold, LK_LEASE_MS_MAX + 1), LK_INVALID);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    assert_int_equal(lk_extend(&f.hold, 500), LK_LOST);
    lk_close(f.client);
}

static enum fake_fault extension_away(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_RENEW ? FAKE_AWAY : FAKE_NONE;
}

static enum fake_fault extension_in_doubt(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_RENEW ? FAKE_REPLY_LOST : FAKE_NONE;
}

TEST_THAT(of_two_possible_leases_the_shorter_is_trusted)
{
    struct fake_fixture f;
    int64_t left_ms;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 1000);
    f.fake.fault = extension_away;
    assert_int_equal(lk_extend(&f.hold, 100), LK_UNAVAILABLE);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, 1000); /* the extension was certainly not executed */
    f.fake.fault = extension_in_doubt;
    assert_int_equal(lk_extend(&f.hold, 100), LK_UNKNOWN);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, 100 - f.fake.timeout_us / 1000);
    assert_int_equal(lk_extend(&f.hold, 5000), LK_UNKNOWN);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST); /* 100 ms have passed */
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

TEST_THAT(extending_a_lock_that_another_has_loses_it)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 0);
    fake_take(&f.fake, KEY, "other", 0);
    assert_int_equal(lk_check(&f.hold, NULL), LK_OK); /* the loss is not known yet */
    assert_int_equal(lk_extend(&f.hold, 500), LK_LOST);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST);
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 0); /* the loss is known from the server */
    assert_true(fake_held(&f.fake, KEY, "other"));
    assert_int_equal(stats_of(f.client).lost, 1);
    lk_close(f.client);
}

TEST_THAT(what_cannot_be_renewed_cannot_be_extended)
{
    struct fake_fixture f;
    lk_provider fixed = fake_provider;
    fixed.info.caps &= ~(uint32_t)LK_CAP_RENEW;
    fake_init(&f.fake, 7);
    f.client = fake_open(&f.fake, &fixed, NULL);
    acquire(&f, 100);
    assert_int_equal(lk_extend(&f.hold, 500), LK_UNSUPPORTED);
    assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
    lk_release(&f.hold);
    lk_close(f.client);
}

TEST_THAT(releasing_twice_is_lost_and_sends_nothing)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 0);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    fake_take(&f.fake, KEY, f.hold.token, 0); /* a second command would free this lock */
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST);
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 1);
    lk_close(f.client);
}

TEST_THAT(an_expired_holder_cannot_release_its_successor)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 100);
    fake_sleep_us(&f.fake, 100000);
    fake_take(&f.fake, KEY, "other", 0);
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    assert_true(fake_held(&f.fake, KEY, "other"));
    lk_close(f.client);
}

static enum fake_fault release_cut(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)n;
    return call == FAKE_RELEASE && fake->calls[FAKE_RELEASE] == 1 ? FAKE_REQUEST_LOST : FAKE_NONE;
}

static enum fake_fault release_reply_cut(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)n;
    return call == FAKE_RELEASE && fake->calls[FAKE_RELEASE] == 1 ? FAKE_REPLY_LOST : FAKE_NONE;
}

static enum fake_fault reply_cut_then_away(struct fake *fake, enum fake_call call, uint64_t n)
{
    return fake->calls[FAKE_RELEASE] > 1 ? FAKE_AWAY : release_reply_cut(fake, call, n);
}

TEST_THAT(a_release_cut_off_is_sent_again_once)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    f.fake.fault = release_cut;
    f.fake.timeout_us = 1000; /* cut, not hung */
    acquire(&f, 0);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    assert_false(fake_held(&f.fake, KEY, NULL));
    f.fake.fault = release_reply_cut;
    f.fake.calls[FAKE_RELEASE] = 0;
    acquire(&f, 0);
    assert_int_equal(lk_release(&f.hold), LK_UNKNOWN); /* the repetition finds no lock */
    f.fake.fault = reply_cut_then_away;
    f.fake.calls[FAKE_RELEASE] = 0;
    acquire(&f, 0);
    assert_int_equal(lk_release(&f.hold), LK_UNKNOWN); /* not LK_UNAVAILABLE */
    assert_false(fake_held(&f.fake, KEY, NULL));
    lk_close(f.client);
}

TEST_THAT(a_hung_release_is_not_sent_again)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 0);
    f.fake.fault = release_cut;
    assert_int_equal(lk_release(&f.hold), LK_UNKNOWN);
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 1);
    lk_close(f.client);
}

/* A second bare DEL could free another client's lock. */
TEST_THAT(without_an_owner_test_a_release_is_never_repeated)
{
    struct fake_fixture f;
    lk_provider bare = fake_provider;
    bare.info.caps &= ~(uint32_t)LK_CAP_OWNER;
    fake_init(&f.fake, 7);
    f.client = fake_open(&f.fake, &bare, &(lk_options){.watchdog_off = true});
    f.fake.fault = release_cut;
    f.fake.timeout_us = 1000;
    acquire(&f, 0);
    assert_int_equal(lk_release(&f.hold), LK_UNKNOWN);
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 1);
    lk_close(f.client);
}

TEST_THAT(each_hold_has_a_token_of_its_own_unless_it_names_its_owner)
{
    struct fake_fixture f, g;
    char before[LK_TOKEN_MAX + 1];
    fake_fixture_open(&f, &fake_provider, &unwatched);
    acquire(&f, 0);
    assert_int_equal(strlen(f.hold.token), 32 + 1 + 32);
    strcpy(before, f.hold.token);
    lk_release(&f.hold);
    acquire(&f, 0);
    assert_string_not_equal(f.hold.token, before);
    lk_release(&f.hold);

    lk_request mine = {.key = KEY, .owner = "worker-3"};
    assert_int_equal(lk_acquire(f.client, &mine, &f.hold), LK_OK);
    assert_string_equal(f.hold.token + 32, ":worker-3");
    lk_release(&f.hold);
    fake_init(&g.fake, 8);
    g.client = fake_open(&g.fake, &fake_provider, NULL);
    assert_int_equal(lk_acquire(g.client, &mine, &g.hold), LK_OK);
    assert_string_not_equal(f.hold.token, g.hold.token); /* worker-3 of another client */
    lk_release(&g.hold);
    lk_close(g.client);
    lk_close(f.client);
}

TEST_THAT(marks_tell_the_holds_of_one_owner_apart)
{
    enum { HOLDS = 40 };
    static lk_hold holds[HOLDS];
    _Atomic uint64_t n_tokens = 0;
    for (int i = 0; i < HOLDS; i++) {
        holds[i] = (lk_hold){.token = "client:owner", .private_.slot = i % 2};
        lk_make_token_unique(&n_tokens, &holds[i]);
        lk_make_token_unique(&n_tokens, &holds[i]); /* unique already: no change */
        assert_int_equal(holds[i].private_.slot % 2, i % 2);
        assert_int_equal(atomic_load(&n_tokens), i + 1);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(holds[i].token, holds[j].token);
    }
}
