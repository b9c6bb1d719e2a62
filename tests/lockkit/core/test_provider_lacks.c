/* A provider that offers less than others: what the core refuses, and what it does in its place. */
#include "lk_fake.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define KEY "lock:item:1"

static const lk_options unwatched = {.watchdog_off = true};

static int never(void *arg, const lk_lock_info *info)
{
    (void)info;
    *(bool *)arg = true;
    return 0;
}

TEST_THAT(what_a_provider_cannot_do_is_unsupported_and_sends_nothing)
{
    struct fake_fixture f;
    lk_lock_info info;
    bool told = false;
    fake_fixture_open(&f, &fake_provider, &unwatched);
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
    uint64_t n_calls = f.fake.n_calls;
    assert_int_equal(lk_confirm(&f.hold), LK_UNSUPPORTED);
    assert_int_equal(lk_inspect(f.client, KEY, &info), LK_UNSUPPORTED);
    assert_int_equal(lk_list(f.client, "", never, &told), LK_UNSUPPORTED);
    assert_int_equal(lk_force_release(f.client, KEY), LK_UNSUPPORTED);
    assert_int_equal(lk_raise_fence(f.client, KEY, 9), LK_UNSUPPORTED);
    assert_int_equal(lk_ping(f.client), LK_OK); /* without a server, nothing is away */
    assert_int_equal(f.fake.n_calls, n_calls);
    assert_false(told);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    lk_close(f.client);
}

TEST_THAT(nobody_asks_without_a_client_or_a_key)
{
    struct fake_fixture f;
    lk_lock_info info;
    lk_status status = LK_OK;
    bool told = false;
    lk_hold *hold = &f.hold;
    const lk_request request = {.key = KEY};
    fake_fixture_open(&f, &fake_each_provider, &unwatched);
    assert_int_equal(lk_inspect(NULL, KEY, &info), LK_INVALID);
    assert_int_equal(lk_list(NULL, "", never, &told), LK_INVALID);
    assert_int_equal(lk_force_release(NULL, KEY), LK_INVALID);
    assert_int_equal(lk_raise_fence(f.client, "a b", 9), LK_INVALID);
    assert_int_equal(lk_acquire(NULL, &request, &f.hold), LK_INVALID);
    lk_try_each(NULL, &request, 1, &hold, &status);
    assert_int_equal(status, LK_INVALID);
    assert_int_equal(f.fake.n_calls, 0);
    lk_close(f.client);
}

static lk_status confirmed;

static lk_status confirm(void *self, const lk_hold *hold)
{
    (void)self;
    (void)hold;
    return confirmed;
}

static lk_status list(void *self, const char *prefix,
                      int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    (void)self;
    (void)prefix;
    lk_lock_info info = {.key = "a b", .token = "t", .holders = 1};
    if (each(arg, &info) != 0) /* a name that no lock has */
        return LK_PROTOCOL;
    memcpy(info.key, KEY, sizeof KEY);
    memcpy(info.token, "a\x1b[2J\xc3", 7);
    each(arg, &info);
    return LK_OK;
}

struct shown {
    int n;
    char text[LK_KEY_MAX + LK_TOKEN_MAX + 2];
};

static int note(void *arg, const lk_lock_info *info)
{
    struct shown *shown = arg;
    shown->n++;
    snprintf(shown->text, sizeof shown->text, "%s %s", info->key, info->token);
    return 0;
}

/* The server may still have it for us. */
TEST_THAT(lapsed_hold_is_asked_about_and_a_released_one_is_not)
{
    struct fake_fixture f;
    lk_provider confirming = fake_provider;
    confirming.confirm = confirm;
    fake_fixture_open(&f, &confirming, &(lk_options){.lease_ms = 100});
    const lk_request request = {.key = KEY, .renewed = false, .lease_ms = 100};
    confirmed = LK_OK;
    assert_int_equal(lk_acquire(f.client, &request, &f.hold), LK_OK);
    assert_int_equal(lk_confirm(&f.hold), LK_OK);
    hold_set_state(&f.hold, HOLD_LAPSED);
    assert_int_equal(lk_confirm(&f.hold), LK_OK);
    hold_set_state(&f.hold, HOLD_GONE);
    assert_int_equal(lk_confirm(&f.hold), LK_LOST);
    hold_set_state(&f.hold, HOLD_HELD);
    assert_int_equal(lk_release(&f.hold), LK_OK);
    assert_int_equal(lk_confirm(&f.hold), LK_LOST);
    lk_close(f.client);
}

TEST_THAT(strange_bytes_of_a_list_are_not_shown)
{
    struct fake_fixture f;
    struct shown shown = {0};
    lk_provider listing = fake_provider;
    listing.list = list;
    fake_fixture_open(&f, &listing, &unwatched);
    assert_int_equal(lk_list(f.client, "", note, &shown), LK_OK);
    assert_int_equal(shown.n, 1);
    assert_string_equal(shown.text, KEY " a?[2J?");
    lk_close(f.client);
}

/* -- replicas ---------------------------------------------------------------------------------- */

static enum fake_fault releases_lost(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_RELEASE ? FAKE_REQUEST_LOST : FAKE_NONE;
}

/* The fake names no replica, so each grant has too few. */
TEST_THAT(grant_on_too_few_replicas_is_undone_or_of_unknown_outcome)
{
    struct fake_fixture f;
    lk_provider replicating = fake_provider;
    replicating.replicates = true;
    fake_fixture_open(&f, &replicating, &(lk_options){.watchdog_off = true, .replicas = 1});
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_UNAVAILABLE);
    assert_false(fake_held(&f.fake, KEY, NULL));
    f.fake.fault = releases_lost;
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_UNKNOWN);
    assert_true(fake_held(&f.fake, KEY, NULL)); /* until its lease ends */
    assert_int_equal(lk_release(&f.hold), LK_LOST);
    f.fake.fault = NULL;
    lk_close(f.client);
}

TEST_THAT(grants_of_a_batch_are_undone_one_by_one)
{
    struct fake_fixture f;
    lk_hold other, *holds[] = {&f.hold, &other};
    const lk_request requests[] = {{.key = KEY}, {.key = "lock:item:2"}};
    lk_status statuses[2] = {LK_OK, LK_OK};
    lk_provider provider = fake_each_provider;
    provider.replicates = true;
    provider.release_each = NULL;
    fake_fixture_open(&f, &provider, &(lk_options){.watchdog_off = true, .replicas = 1});
    lk_try_each(f.client, requests, 2, holds, statuses);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(statuses[i], LK_UNAVAILABLE);
        assert_false(fake_held(&f.fake, requests[i].key, NULL));
    }
    assert_int_equal(f.fake.calls[FAKE_RELEASE], 2);
    lk_close(f.client);
}

/* Nothing outside the process has it, so nothing is owed. */
TEST_THAT(failed_release_within_the_process_is_not_repeated)
{
    struct fake_fixture f;
    lk_stats stats;
    lk_provider local = fake_provider;
    local.info.caps &= ~(uint32_t)LK_CAP_DISTRIBUTED;
    fake_fixture_open(&f, &local, &unwatched);
    f.fake.fault = releases_lost;
    assert_int_equal(lk_try_acquire(f.client, KEY, &f.hold), LK_OK);
    assert_int_equal(lk_release(&f.hold), LK_UNKNOWN);
    lk_client_stats(f.client, &stats);
    assert_int_equal(stats.pending, 0);
    assert_true(janitor_step(f.client) == INT64_MAX);
    lk_close(f.client);
}

/* -- the queue within the process
 * ------------------------------------------------------------------- */

TEST_THAT(only_a_whole_exclusive_lock_of_no_named_owner_is_handed_on)
{
    struct fake_fixture f;
    lk_provider provider = fake_provider;
    provider.info.caps |= LK_CAP_SHARED | LK_CAP_PERMITS;
    fake_fixture_open(&f, &provider, &(lk_options){.watchdog_off = true, .local_queue = true});
    const struct {
        lk_request request;
        bool queues;
    } rows[] = {
        {{.key = KEY}, true},
        {{.key = KEY, .permits = 1}, true},
        {{.key = KEY, .permits = 2}, false},
        {{.key = KEY, .owner = "worker"}, false},
        {{.key = KEY, .mode = LK_SHARED}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(lk_acquire(f.client, &rows[i].request, &f.hold), LK_OK);
        assert_int_equal(f.hold.private_.queues, rows[i].queues);
        assert_int_equal(lk_release(&f.hold), LK_OK);
    }
    lk_close(f.client);
}
