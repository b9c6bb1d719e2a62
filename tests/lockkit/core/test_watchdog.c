/* The watchdog's exact rules, on a virtual clock. For its thread see test_watchdog_thread.c. */
#include "lk_fake.h"
#include "tests.h"

#define KEY "lock:item:1"

enum { LEASE_MS = 300, HOLDS_MANY = 1000 };

struct fixture {
    struct fake fake;
    lk_client *client;
    lk_hold hold;
    int n_lost;
    lk_loss cause;
    int64_t lost_at_us, start_us;
};

static void note_loss(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct fixture *f = arg;
    f->n_lost++;
    f->cause = cause;
    f->lost_at_us = fake_now_us(&f->fake);
    if (lk_check(hold, NULL) != LK_LOST)
        f->n_lost = -1000; /* reported before the loss */
}

static void open_fixture(struct fixture *f, const lk_options *options)
{
    *f = (struct fixture){0};
    fake_init(&f->fake, 7);
    f->client = fake_open(&f->fake, &fake_provider, options);
}

static void acquire(struct fixture *f, int64_t lease_ms)
{
    lk_request request = {.key = KEY, .lease_ms = lease_ms, .on_lost = note_loss, .on_lost_arg = f};
    f->start_us = fake_now_us(&f->fake);
    assert_int_equal(lk_acquire(f->client, &request, &f->hold), LK_OK);
}

/* Does the work of the watchdog's thread, up to this time after the grant. */
static void run_to_ms(struct fixture *f, int64_t ms)
{
    fake_run_watchdog(&f->fake, f->client, f->start_us + ms * 1000);
}

TEST_THAT(a_section_three_leases_long_keeps_its_lock)
{
    struct fixture f;
    int64_t left_ms;
    open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS});
    acquire(&f, 0);
    for (int64_t ms = 1; ms <= 3 * LEASE_MS; ms++) {
        run_to_ms(&f, ms);
        assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
        assert_in_range(left_ms, LEASE_MS * 2 / 3 - 1, LEASE_MS);
        assert_true(fake_held(&f.fake, KEY, f.hold.token));
    }
    assert_int_equal(f.fake.calls[FAKE_RENEW], 9); /* at each third */
    assert_int_equal(lk_release(&f.hold), LK_OK);
    run_to_ms(&f, 6 * LEASE_MS);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 9); /* none after the release */
    assert_int_equal(f.n_lost, 0);
    lk_close(f.client);
}

TEST_THAT(a_key_deleted_under_its_holder_is_told_within_a_third_of_the_lease)
{
    for (int64_t at_ms = 1; at_ms < LEASE_MS; at_ms += 7) {
        struct fixture f;
        open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS});
        acquire(&f, 0);
        run_to_ms(&f, at_ms);
        fake_free(&f.fake, KEY);
        run_to_ms(&f, 3 * LEASE_MS);
        assert_int_equal(f.n_lost, 1);
        assert_int_equal(f.cause, LK_LOSS_DELETED);
        assert_in_range(f.lost_at_us, f.start_us + at_ms * 1000,
                        f.start_us + at_ms * 1000 + LEASE_MS * 1000 / 3);
        fake_take(&f.fake, KEY, "next", 0);
        assert_int_equal(lk_release(&f.hold), LK_LOST);
        assert_int_equal(f.fake.calls[FAKE_RELEASE], 0); /* the loss is known from the server */
        assert_true(fake_held(&f.fake, KEY, "next"));
        lk_close(f.client);
    }
}

static enum fake_fault no_renewals(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_RENEW ? FAKE_AWAY : FAKE_NONE;
}

static enum fake_fault three_renewals_fail(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)n;
    return call == FAKE_RENEW && fake->calls[FAKE_RENEW] <= 3 ? FAKE_REQUEST_LOST : FAKE_NONE;
}

TEST_THAT(failed_renewals_are_repeated_until_the_lease_ends_by_our_clock)
{
    struct fixture f;
    open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS});
    acquire(&f, 0);
    f.fake.fault = no_renewals;
    run_to_ms(&f, 2 * LEASE_MS);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.cause, LK_LOSS_EXPIRED);
    assert_int_equal(f.lost_at_us - f.start_us, LEASE_MS * 1000);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 7); /* at 10/30, then each 3/30, to 28/30 */
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    lk_close(f.client);
}

/* A tenth of the lease would be 3 ms. */
TEST_THAT(of_a_short_lease_no_renewal_is_repeated_within_5_ms)
{
    struct fixture f;
    open_fixture(&f, &(lk_options){.lease_ms = 30});
    acquire(&f, 0);
    f.fake.fault = no_renewals;
    run_to_ms(&f, 100);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 4); /* at 10, 15, 20, 25 ms */
    assert_int_equal(f.cause, LK_LOSS_EXPIRED);
    lk_release(&f.hold);
    lk_close(f.client);
}

TEST_THAT(a_server_that_comes_back_in_time_costs_nothing)
{
    struct fixture f;
    open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS});
    acquire(&f, 0);
    f.fake.timeout_us = 20000;
    f.fake.fault = three_renewals_fail;
    for (int64_t ms = 1; ms <= 3 * LEASE_MS; ms++) {
        run_to_ms(&f, ms);
        assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
    }
    assert_int_equal(f.n_lost, 0);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

/* The maximum of 1050 ms lies between two renewals. */
TEST_THAT(a_hung_worker_is_let_go_of_at_the_maximum_hold_time)
{
    struct fixture f;
    open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS, .max_hold_ms = 1050});
    acquire(&f, 0);
    run_to_ms(&f, 1049);
    assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
    run_to_ms(&f, 1050);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.cause, LK_LOSS_MAX_HOLD);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST);
    uint64_t renewals = f.fake.calls[FAKE_RENEW];
    assert_true(fake_held(&f.fake, KEY, f.hold.token)); /* it may still be writing */
    run_to_ms(&f, 1050 + LEASE_MS);
    assert_int_equal(f.fake.calls[FAKE_RENEW], renewals);
    assert_false(fake_held(&f.fake, KEY, NULL)); /* free for the next holder */
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    lk_close(f.client);

    open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS}); /* the default: ten leases */
    acquire(&f, 0);
    run_to_ms(&f, 20 * LEASE_MS);
    assert_int_equal(f.cause, LK_LOSS_MAX_HOLD);
    assert_int_equal(f.lost_at_us - f.start_us, 10 * LEASE_MS * 1000);
    lk_release(&f.hold);
    acquire(&f, 0);
    run_to_ms(&f, 10 * LEASE_MS);
    assert_int_equal(lk_release(&f.hold), LK_LOST); /* as reported before, but ... */
    assert_false(fake_held(&f.fake, KEY, NULL));    /* ... the release frees it */
    lk_close(f.client);
}

TEST_THAT(an_explicit_lease_is_not_renewed_but_its_end_is_told)
{
    struct fixture f;
    open_fixture(&f, NULL);
    acquire(&f, LEASE_MS);
    run_to_ms(&f, LEASE_MS - 1);
    assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
    run_to_ms(&f, 2 * LEASE_MS);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 0);
    assert_int_equal(f.n_lost, 1);
    assert_int_equal(f.cause, LK_LOSS_EXPIRED);
    assert_int_equal(f.lost_at_us - f.start_us, LEASE_MS * 1000);
    lk_release(&f.hold);

    lk_request untold = {.key = KEY, .lease_ms = LEASE_MS};
    assert_int_equal(lk_acquire(f.client, &untold, &f.hold), LK_OK);
    assert_true(watchdog_step(f.client) == INT64_MAX); /* no callback: not watched */
    fake_sleep_us(&f.fake, LEASE_MS * 1000);
    assert_int_equal(lk_check(&f.hold, NULL), LK_LOST);
    lk_release(&f.hold);
    lk_close(f.client);
}

TEST_THAT(a_lease_of_ones_own_is_renewed_when_asked_for)
{
    struct fixture f;
    open_fixture(&f, &(lk_options){.lease_ms = 100 * LEASE_MS});
    lk_request own = {.key = KEY, .lease_ms = LEASE_MS, .renewed = true};
    f.start_us = fake_now_us(&f.fake);
    assert_int_equal(lk_acquire(f.client, &own, &f.hold), LK_OK);
    assert_int_equal(f.hold.lease_ms, LEASE_MS);
    run_to_ms(&f, 3 * LEASE_MS);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 9); /* at each third */
    assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

TEST_THAT(a_watchdog_switched_off_renews_nothing)
{
    struct fixture f;
    open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS, .watchdog_off = true});
    acquire(&f, 0);
    run_to_ms(&f, 2 * LEASE_MS);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 0);
    assert_int_equal(f.cause, LK_LOSS_EXPIRED);
    lk_release(&f.hold);
    lk_close(f.client);
}

TEST_THAT(an_extended_lease_is_renewed_at_its_new_length)
{
    struct fixture f;
    int64_t left_ms;
    open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS});
    acquire(&f, 0);
    run_to_ms(&f, 50);
    assert_int_equal(lk_extend(&f.hold, 4 * LEASE_MS), LK_OK);
    run_to_ms(&f, 50 + 4 * LEASE_MS / 3 - 1);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 1); /* the extension itself */
    run_to_ms(&f, 50 + 4 * LEASE_MS / 3);
    assert_int_equal(f.fake.calls[FAKE_RENEW], 2);
    assert_int_equal(lk_check(&f.hold, &left_ms), LK_OK);
    assert_int_equal(left_ms, 4 * LEASE_MS);
    lk_release(&f.hold);
    lk_close(f.client);
}

/* A server that grants every key, for more holds than the fake server can store. A renewal takes
 * 0.1 ms; every hundredth hangs for 20 ms and fails. That is 300 ms of work in each 333 ms. */
static lk_status grant_any(void *self, lk_attempt *attempt)
{
    (void)self;
    (void)attempt;
    return LK_OK;
}

static lk_status free_any(void *self, lk_hold *hold)
{
    (void)self;
    (void)hold;
    return LK_OK;
}

static lk_status renew_slowly(void *self, lk_hold *hold, int64_t lease_ms)
{
    struct fake *fake = self;
    (void)hold;
    (void)lease_ms;
    bool hangs = ++fake->calls[FAKE_RENEW] % 100 == 0;
    fake_sleep_us(fake, hangs ? 20000 : 100);
    return hangs ? LK_UNKNOWN : LK_OK;
}

/* The maximum is ten leases of the hold, or of the client if those are longer. So a short lease
 * does not limit the work to a short time. */
TEST_THAT(a_lease_of_ones_own_is_not_over_held_before_ten_of_it)
{
    static const struct {
        int64_t lease_ms, lost_ms;
    } own[] = {{20 * LEASE_MS, 200 * LEASE_MS}, {LEASE_MS / 2, 10 * LEASE_MS}};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        struct fixture f;
        open_fixture(&f, &(lk_options){.lease_ms = LEASE_MS});
        lk_request request = {.key = KEY,
                              .lease_ms = own[i].lease_ms,
                              .renewed = true,
                              .on_lost = note_loss,
                              .on_lost_arg = &f};
        f.start_us = fake_now_us(&f.fake);
        assert_int_equal(lk_acquire(f.client, &request, &f.hold), LK_OK);
        run_to_ms(&f, own[i].lost_ms - 1);
        assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
        run_to_ms(&f, own[i].lost_ms);
        assert_int_equal(f.n_lost, 1);
        assert_int_equal(f.cause, LK_LOSS_MAX_HOLD);
        assert_int_equal(lk_release(&f.hold), LK_LOST);
        lk_close(f.client);
    }
}

/* An extension at 290 ms, with a maximum of 300 ms: the maximum starts again, and is at least as
 * long as the extension. */
TEST_THAT(a_hold_that_is_extended_is_not_over_held_before_its_end)
{
    static const struct {
        int64_t max_hold_ms, extend_ms, lost_ms;
    } when[] = {
        {0, 20, 290 + 300}, {0, 50, 290 + 500}, {300, 50, 290 + 300}, {300, 900, 290 + 900}};
    for (size_t i = 0; i < sizeof when / sizeof when[0]; i++) {
        struct fixture f;
        open_fixture(&f, &(lk_options){.lease_ms = 30, .max_hold_ms = when[i].max_hold_ms});
        acquire(&f, 0);
        run_to_ms(&f, 290);
        assert_int_equal(lk_extend(&f.hold, when[i].extend_ms), LK_OK);
        run_to_ms(&f, when[i].lost_ms - 1);
        assert_int_equal(lk_check(&f.hold, NULL), LK_OK);
        run_to_ms(&f, when[i].lost_ms);
        assert_int_equal(f.n_lost, 1);
        assert_int_equal(f.cause, LK_LOSS_MAX_HOLD);
        assert_int_equal(f.lost_at_us - f.start_us, when[i].lost_ms * 1000);
        assert_int_equal(lk_release(&f.hold), LK_LOST);
        lk_close(f.client);
    }
}

TEST_THAT(slow_renewals_of_some_do_not_expire_the_others)
{
    static lk_hold holds[HOLDS_MANY];
    struct fixture f = {0};
    lk_provider crowded = fake_provider;
    crowded.try_acquire = grant_any;
    crowded.release = free_any;
    crowded.renew = renew_slowly;
    fake_init(&f.fake, 7);
    f.client = fake_open(&f.fake, &crowded, &(lk_options){.lease_ms = 1000, .max_hold_ms = 60000});
    f.start_us = fake_now_us(&f.fake);
    for (int i = 0; i < HOLDS_MANY; i++) {
        lk_request request = {.key = KEY, .on_lost = note_loss, .on_lost_arg = &f};
        assert_int_equal(lk_acquire(f.client, &request, &holds[i]), LK_OK);
    }
    run_to_ms(&f, 20000);
    assert_true(f.fake.calls[FAKE_RENEW] > 40 * HOLDS_MANY);
    assert_int_equal(f.n_lost, 0);
    for (int i = 0; i < HOLDS_MANY; i++)
        assert_int_equal(lk_release(&holds[(i * 7) % HOLDS_MANY]), LK_OK); /* in any order */
    assert_true(watchdog_step(f.client) == INT64_MAX);
    lk_close(f.client);
}
