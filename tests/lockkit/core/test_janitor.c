/* How long a release without an answer is repeated: until the longest lease that the server may
 * have been told has ended. */
#include "lk_fake.h"
#include "tests.h"

#define KEY "lock:item:1"

enum { SHORT_MS = 1000, LONG_MS = 3600000, TIMEOUT_MS = 50, STEPS_MAX = 100000 };

static const lk_options options = {.watchdog_off = true,
                                   .command_timeout_ms = TIMEOUT_MS,
                                   .local_queue = true,
                                   .local_handovers = 10};

struct script {
    struct fake_fixture f;
    enum fake_call lost;   /* calls of this kind ... */
    enum fake_fault fault; /* ... fail like this */
    bool handed_on;
};

static enum fake_fault fails(struct fake *fake, enum fake_call call, uint64_t n)
{
    const struct script *script = fake->test;
    (void)n;
    return call == script->lost ? script->fault : FAKE_NONE;
}

static void open_script(struct script *script)
{
    *script = (struct script){.fault = FAKE_NONE};
    fake_fixture_open(&script->f, &fake_provider, &options);
    script->f.fake.timeout_us = INT64_C(1000) * TIMEOUT_MS;
    script->f.fake.fault = fails;
    script->f.fake.test = script;
}

/* Calls of this kind get no answer from now on. */
static void lose(struct script *script, enum fake_call call, enum fake_fault fault)
{
    script->lost = call;
    script->fault = fault;
}

/* Lets the janitor work for so long. */
static void run_for(struct script *script, int64_t ms)
{
    struct fake *fake = &script->f.fake;
    int64_t end_us = fake->now_us + ms * 1000;
    for (int i = 0;; i++) {
        int64_t next_us = janitor_step(script->f.client);
        if (next_us > end_us)
            break;
        if (next_us > fake->now_us)
            fake->now_us = next_us;
        assert_true(i < STEPS_MAX);
    }
    if (end_us > fake->now_us)
        fake->now_us = end_us;
}

static lk_status take(struct script *script, int64_t lease_ms, int64_t wait_ms, lk_hold *hold)
{
    const lk_request request = {.key = KEY, .lease_ms = lease_ms, .wait_ms = wait_ms};
    return lk_acquire(script->f.client, &request, hold);
}

/* The release gets no answer for longer than the hold's own lease, then the server is back. */
static void expect_freed_after_an_outage(struct script *script, lk_hold *hold)
{
    struct fake *fake = &script->f.fake;
    lose(script, FAKE_RELEASE, FAKE_REQUEST_LOST);
    assert_int_equal(lk_release(hold), LK_UNKNOWN);
    run_for(script, 15 * SHORT_MS);
    assert_true(fake_held(fake, KEY, NULL));
    script->fault = FAKE_NONE;
    run_for(script, SHORT_MS);
    assert_false(fake_held(fake, KEY, NULL));
    lk_close(script->f.client);
}

TEST_THAT(release_is_repeated_until_an_extension_without_an_answer_has_ended)
{
    struct script script;
    open_script(&script);
    assert_int_equal(take(&script, SHORT_MS, 0, &script.f.hold), LK_OK);
    lose(&script, FAKE_RENEW, FAKE_REPLY_LOST);
    assert_int_equal(lk_extend(&script.f.hold, LONG_MS), LK_UNKNOWN);
    expect_freed_after_an_outage(&script, &script.f.hold);
}

/* During the first pause of the waiter. */
static void hand_on(struct fake *fake, int64_t us)
{
    struct script *script = fake->test;
    fake->now_us += us;
    if (!script->handed_on) {
        script->handed_on = true;
        assert_int_equal(lk_release(&script->f.hold), LK_OK);
    }
}

/* The server counts the lease of the holder that it granted the lock. */
TEST_THAT(release_of_an_inherited_hold_is_repeated_until_the_first_holders_lease_has_ended)
{
    struct script script;
    lk_hold heir, last;
    open_script(&script);
    assert_int_equal(take(&script, LONG_MS, 0, &script.f.hold), LK_OK);
    script.f.fake.sleep_us = hand_on;
    assert_int_equal(take(&script, SHORT_MS, LONG_MS, &heir), LK_OK);
    assert_int_equal(heir.fence, script.f.hold.fence);
    script.f.hold = heir;
    script.handed_on = false;
    assert_int_equal(take(&script, SHORT_MS, LONG_MS, &last), LK_OK); /* and so on to the last */
    assert_int_equal(last.fence, heir.fence);
    script.f.fake.sleep_us = NULL;
    expect_freed_after_an_outage(&script, &last);
}

TEST_THAT(release_is_given_up_once_the_lease_has_ended)
{
    struct script script;
    open_script(&script);
    assert_int_equal(take(&script, SHORT_MS, 0, &script.f.hold), LK_OK);
    lose(&script, FAKE_RELEASE, FAKE_REQUEST_LOST);
    assert_int_equal(lk_release(&script.f.hold), LK_UNKNOWN);
    run_for(&script, SHORT_MS + 2 * TIMEOUT_MS + JANITOR_PAUSE_MS_MAX);
    assert_true(janitor_step(script.f.client) == INT64_MAX);
    lk_close(script.f.client);
}
