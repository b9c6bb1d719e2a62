/* A client: options and requests that it refuses, and when it may be closed. */
#include "lk_fake.h"
#include "tests.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "lock:item:1"

static const lk_options unwatched = {.watchdog_off = true};

TEST_THAT(a_bad_request_is_refused_before_anything_is_sent)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    char long_key[LK_KEY_MAX + 2], long_owner[LK_OWNER_MAX + 2];
    memset(long_key, 'k', sizeof long_key - 1);
    long_key[LK_KEY_MAX + 1] = '\0';
    memset(long_owner, 'o', sizeof long_owner - 1);
    long_owner[LK_OWNER_MAX + 1] = '\0';
    const lk_request bad[] = {
        {.key = NULL},
        {.key = ""},
        {.key = "a b"},
        {.key = "{a"},
        {.key = "a}"},
        {.key = "a\n"},
        {.key = "\xc3\xa4"},
        {.key = "a\x7f"},
        {.key = long_key},
        {.key = KEY, .owner = ""},
        {.key = KEY, .owner = "a b"},
        {.key = KEY, .owner = "a\x7f"},
        {.key = KEY, .owner = long_owner},
        {.key = KEY, .wait_ms = -1},
        {.key = KEY, .lease_ms = -1},
        {.key = KEY, .lease_ms = LK_LEASE_MS_MIN - 1},
        {.key = KEY, .lease_ms = LK_LEASE_MS_MAX + 1},
        {.key = KEY, .mode = (lk_mode)2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(&f.hold, 0xff, sizeof f.hold);
        assert_int_equal(lk_acquire(f.client, &bad[i], &f.hold), LK_INVALID);
        assert_int_equal(lk_release(&f.hold), LK_LOST);
    }
    lk_request shared = {.key = KEY, .mode = LK_SHARED};
    assert_int_equal(lk_acquire(f.client, &shared, &f.hold), LK_UNSUPPORTED);
    assert_int_equal(f.fake.n_calls, 0);
    long_key[LK_KEY_MAX] = '\0';
    long_owner[LK_OWNER_MAX] = '\0';
    lk_request longest = {.key = long_key, .owner = long_owner, .wait_ms = INT64_MAX};
    assert_int_equal(lk_acquire(f.client, &longest, &f.hold), LK_OK);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    static const int64_t leases_ms[] = {LK_LEASE_MS_MIN, LK_LEASE_MS_MAX};
    for (int i = 0; i < 2; i++) {
        lk_request at_the_bound = {.key = KEY, .lease_ms = leases_ms[i]};
        assert_int_equal(lk_acquire(f.client, &at_the_bound, &f.hold), LK_OK);
        assert_int_equal(lk_release(&f.hold), LK_OK);
    }
    lk_close(f.client);
}

TEST_THAT(a_bad_option_is_refused_by_name)
{
    struct fake fake;
    fake_init(&fake, 7);
    lk_env lame[] = {fake.env, fake.env, fake.env, fake.env, fake.env};
    lame[0].now_us = NULL;
    lame[1].wall_us = NULL;
    lame[2].sleep_us = NULL;
    lame[3].random = NULL;
    lame[4].point = NULL;
    const struct {
        lk_options options;
        const char *name;
    } bad[] = {
        {{.lease_ms = 9}, "lease_ms"},
        {{.lease_ms = -1}, "lease_ms"},
        {{.lease_ms = LK_LEASE_MS_MAX + 1}, "lease_ms"},
        {{.max_hold_ms = -1}, "max_hold_ms"},
        {{.retry_min_ms = -1}, "retry_min_ms"},
        {{.retry_min_ms = 20, .retry_max_ms = 10}, "retry_max_ms"},
        {{.command_timeout_ms = -5}, "command_timeout_ms"},
        {{.retry_max_ms = INT64_MAX}, "retry_max_ms"},
        {{.spin_us = -2}, "spin_us"},
        {{.spin_us = LK_SPIN_US_MAX + 1}, "spin_us"},
        {{.replicas = -1}, "replicas"},
        {{.replicas = 1000}, "replicas"},
        {{.replicas = 1}, "fake has no replicas"},
        {{.replicas_ms = -1}, "replicas_ms"},
        {{.local_handovers = -1, .local_queue = true}, "local_handovers"},
        {{.local_handovers = INT_MAX, .local_queue = true}, "local_handovers"},
        {{.local_handovers = 1}, "needs local_queue"},
        {{.env = &lame[0]}, "env"},
        {{.env = &lame[1]}, "env"},
        {{.env = &lame[2]}, "env"},
        {{.env = &lame[3]}, "env"},
        {{.env = &lame[4]}, "env"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lk_client *client = NULL;
        lk_error error = {LK_OK, ""};
        assert_int_equal(lk_open_provider(&fake_provider, NULL, &bad[i].options, &client, &error),
                         LK_INVALID);
        assert_int_equal(error.status, LK_INVALID);
        assert_non_null(strstr(error.message, bad[i].name));
        assert_null(client);
    }
}

/* Closes the client in a child process. True if that aborts. */
static bool closing_aborts(lk_client *client)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr))
            signal(SIGABRT, SIG_DFL); /* cmocka's handler would continue the tests */
        lk_close(client);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

TEST_THAT(closing_with_a_lock_held_aborts)
{
    struct fake_fixture f;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
    assert_true(closing_aborts(f.client));
    lk_release(&f.hold);
    lk_close(f.client);
}

static void close_while_asleep(struct fake *fake, int64_t us)
{
    fake->sleep_us = NULL;
    fake_sleep_us(fake, us);
    assert_true(closing_aborts(fake->context->client));
}

TEST_THAT(closing_while_a_lock_is_waited_for_aborts)
{
    struct fake_fixture f;
    lk_request request = {.key = KEY, .wait_ms = 1000};
    fake_fixture_open(&f, &fake_provider, &unwatched);
    fake_take(&f.fake, KEY, "other", 0);
    f.fake.sleep_us = close_while_asleep;
    assert_int_equal(lk_acquire(f.client, &request, &f.hold), LK_TIMEOUT);
    assert_null(f.fake.sleep_us); /* it was called */
    lk_close(f.client);
}
