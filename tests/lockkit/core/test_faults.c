/*
 * Call N fails, before or after its effect, for N = 1, 2, ... until N exceeds the number of calls.
 * After each kind of failure no lock remains on the server and there was never a second holder.
 */
#include "lk_fake.h"
#include "tests.h"

#include <string.h>

#define KEY "lock:item:1"

enum { CALLS_MAX = 200 }; /* no script here sends more */

struct script {
    uint64_t n;      /* this call fails ... */
    uint64_t length; /* ... as the first of this many failing calls */
    enum fake_fault fault;
    bool fired;
};

static enum fake_fault fail_nth(struct fake *fake, enum fake_call call, uint64_t n)
{
    struct script *script = fake->test;
    (void)call;
    if (n < script->n || n >= script->n + script->length)
        return FAKE_NONE;
    script->fired = true;
    return script->fault;
}

/* Two independent locks in one call. */
static bool run_each(struct fake *fake, lk_client *client)
{
    lk_request both[2] = {{.key = "b"}, {.key = "a"}};
    lk_hold hold[2], *holds[2] = {&hold[0], &hold[1]};
    lk_status tried[2], released[2];
    lk_try_each(client, both, 2, holds, tried);
    for (int i = 0; i < 2; i++)
        if (fake_held(fake, both[i].key, hold[i].token) != (tried[i] == LK_OK))
            return false;
    lk_release_each(holds, 2, released);
    for (int i = 0; i < 2; i++)
        if (fake_held(fake, both[i].key, NULL) || (released[i] == LK_OK && tried[i] != LK_OK))
            return false;
    return true;
}

/* Sends every kind of command: acquires against a contender, extends, releases, acquires two locks.
 * Returns false if a guarantee was broken. */
static bool run_section(struct fake *fake, lk_client *client)
{
    lk_hold hold, holds[2];
    lk_request request = {.key = KEY, .wait_ms = 400};
    fake_take(fake, KEY, "other", 30);
    lk_status status = lk_acquire(client, &request, &hold);
    if (status != LK_OK && fake_held(fake, KEY, hold.token))
        return false;
    if (status == LK_OK) {
        if (!fake_held(fake, KEY, hold.token) || lk_check(&hold, NULL) != LK_OK)
            return false;
        lk_extend(&hold, 20000);
        watchdog_step(client);
        lk_status released = lk_release(&hold);
        if (released == LK_OK && fake_held(fake, KEY, hold.token))
            return false;
    }
    lk_request both[2] = {{.key = "b", .wait_ms = 400}, {.key = "a"}};
    status = lk_acquire_many(client, both, 2, holds);
    for (int i = 0; i < 2; i++) {
        if (status != LK_OK && fake_held(fake, both[i].key, holds[i].token))
            return false;
        lk_release(&holds[i]);
    }
    return run_each(fake, client);
}

/* True if none of our locks remains. Their leases last longer than this wait; the contender's has
 * expired. */
static bool nothing_is_left(struct fake *fake)
{
    fake_sleep_us(fake, 30000);
    return !fake_held(fake, KEY, NULL) && !fake_held(fake, "a", NULL) &&
           !fake_held(fake, "b", NULL);
}

/* Returns for how many calls a failure was injected. */
static uint64_t fail_each_call(const lk_provider *provider, struct script *script)
{
    uint64_t n = 0;
    for (; n < CALLS_MAX; n++) {
        struct fake fake;
        fake_init(&fake, n);
        script->n = n;
        script->fired = false;
        fake.fault = fail_nth;
        fake.test = script;
        fake.latency_us = 200;
        fake.timeout_us = 10000;
        lk_client *client = fake_open(&fake, provider, &(lk_options){.command_timeout_ms = 50});
        if (!run_section(&fake, client) || !nothing_is_left(&fake)) {
            fail_msg("%s: call %d, fault %d x %d: broken promise or orphan", provider->info.name,
                     (int)n, (int)script->fault, (int)script->length);
        }
        lk_close(client);
        if (!script->fired)
            break;
    }
    assert_true(n < CALLS_MAX);
    return n;
}

TEST_THAT(one_failing_call_leaves_no_orphan)
{
    for (enum fake_fault fault = FAKE_AWAY; fault < FAKE_FAULTS; fault++) {
        if (fault == FAKE_REQUEST_LATE)
            continue; /* arrives after the test: only its lease can end it */
        struct script script = {.length = 1, .fault = fault};
        assert_in_range(fail_each_call(&fake_provider, &script), 6, CALLS_MAX);
        assert_in_range(fail_each_call(&fake_each_provider, &script), 6, CALLS_MAX);
        assert_in_range(fail_each_call(&fake_waiting_provider, &script), 8, CALLS_MAX);
    }
}

/* A clean-up that fails, too, is repeated until wait_ms is over. */
TEST_THAT(three_failing_calls_in_an_acquire_leave_no_orphan)
{
    for (enum fake_fault fault = FAKE_AWAY; fault < FAKE_FAULTS; fault++) {
        for (uint64_t n = 0; n < CALLS_MAX && fault != FAKE_REQUEST_LATE; n++) {
            struct fake fake;
            lk_hold hold;
            struct script script = {.n = n, .length = 3, .fault = fault};
            lk_request request = {.key = KEY, .wait_ms = 400};
            fake_init(&fake, n);
            fake.fault = fail_nth;
            fake.test = &script;
            lk_client *client = fake_open(&fake, &fake_provider, NULL);
            fake_take(&fake, KEY, "other", 30);
            lk_status status = lk_acquire(client, &request, &hold);
            script.length = 0;
            if (fault == FAKE_REQUEST_LOST || fault == FAKE_REPLY_LOST)
                assert_int_equal(status, LK_OK);
            if (status == LK_OK)
                assert_int_equal(lk_release(&hold), LK_OK);
            assert_true(nothing_is_left(&fake));
            lk_close(client);
            if (!script.fired)
                break;
        }
    }
}

/* Tests the checker: it must detect a provider whose clean-up does nothing. */
static lk_status release_nothing(void *self, lk_hold *hold)
{
    (void)self;
    (void)hold;
    return LK_OK;
}

TEST_THAT(the_check_finds_a_clean_up_that_does_nothing)
{
    struct fake fake;
    lk_provider lazy = fake_provider;
    lazy.release = release_nothing;
    struct script script = {.n = 0, .length = 1, .fault = FAKE_REPLY_LOST};
    fake_init(&fake, 1);
    fake.fault = fail_nth;
    fake.test = &script;
    lk_client *client = fake_open(&fake, &lazy, NULL);
    assert_false(run_section(&fake, client) && nothing_is_left(&fake));
    lk_close(client);
}
