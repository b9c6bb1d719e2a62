/* The polling Redis guards: their keys in Redis, and different guards on one key. */
#include "redis_guard.h"
#include "holder.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "redis.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "lock:item:1"

enum { LONG_MS = 20000, SOON_MS = 2000, POLLED_MS = 60 };

static const char *const fenced[] = {"redis-token", "redis-reentrant", "redis-fair",
                                     "redis-readwrite", "redis-semaphore"};
static const char *const guards[] = {"redis-setnx",  "redis-setnx-expire", "redis-set",
                                     "redis-getset", "redis-token",        "redis-reentrant",
                                     "redis-fair",   "redis-readwrite",    "redis-semaphore"};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* -- redis-token and other clients of its protocol --------------------------------------------- */

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(value_of_a_token_lock_is_its_token)
{
    char value[LK_TOKEN_MAX + 1];
    lk_hold hold;
    lk_client *client = world_client("redis-token", NULL);
    assert_int_equal(world_acquire(client, KEY, LONG_MS, 0, &hold), LK_OK);
    world_ask_text(value, sizeof value, "GET " KEY);
    assert_string_equal(value, hold.token);
    assert_in_range(world_ask("PTTL " KEY), LONG_MS - SOON_MS, LONG_MS);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

/* Any client that uses SET NX PX and compare-and-delete. */
TEST_THAT(foreign_client_of_the_protocol_excludes_and_is_excluded)
{
    lk_hold hold;
    lk_client *client = world_client("redis-token", NULL);
    assert_int_equal(world_ask("SET " KEY " foreign NX PX 20000"), 1);
    assert_int_equal(world_acquire(client, KEY, 0, 20, &hold), LK_TIMEOUT);
    assert_int_equal(world_ask("DEL " KEY), 1);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(world_ask("SET " KEY " foreign NX PX 20000"), 0);
    assert_int_equal(world_ask("DEL " KEY), 1);
    assert_int_equal(world_ask("SET " KEY " foreign NX PX 20000"), 1);
    assert_int_equal(lk_release(&hold), LK_LOST);
    assert_int_equal(world_ask("EXISTS " KEY), 1); /* the other client's lock remains */
    lk_close(client);
}

/* One owner makes two calls. Without re-entry neither may free the other's lock. */
TEST_THAT(two_holds_of_one_owner_are_told_apart)
{
    static const char *const names[] = {"redis-token", "redis-fair"};
    for (size_t i = 0; i < COUNT(names); i++) {
        world_ask("FLUSHALL");
        lk_client *client = world_client(names[i], NULL);
        lk_request request = {.key = KEY, .owner = "worker", .lease_ms = SOON_MS};
        lk_hold expired, current;
        assert_int_equal(lk_acquire(client, &request, &expired), LK_OK);
        request.wait_ms = LONG_MS;
        request.lease_ms = LONG_MS;
        assert_int_equal(lk_acquire(client, &request, &current), LK_OK);
        assert_int_equal(lk_release(&expired), LK_LOST);
        assert_int_equal(world_ask("EXISTS " KEY), 1);
        assert_int_equal(lk_release(&current), LK_OK);
        lk_close(client);
    }
}

/* -- fences -------------------------------------------------------------------------------------
 */

TEST_THAT(fences_rise_per_key_across_guards)
{
    lk_client *clients[COUNT(fenced)];
    uint64_t last = 0;
    for (size_t i = 0; i < COUNT(fenced); i++)
        clients[i] = world_client(fenced[i], NULL);
    assert_int_equal(lk_raise_fence(clients[0], KEY, REDIS_FENCE_AHEAD), LK_OK);
    for (size_t i = 0; i < 30; i++) {
        lk_hold hold;
        assert_int_equal(world_acquire(clients[i % COUNT(fenced)], KEY, 0, 0, &hold), LK_OK);
        assert_true(i == 0 || hold.fence == last + 1);
        last = hold.fence;
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    for (size_t i = 0; i < COUNT(fenced); i++)
        lk_close(clients[i]);
}

TEST_THAT(raised_counter_heals_one_lost_with_its_server)
{
    for (size_t i = 0; i < COUNT(fenced); i++) {
        lk_hold hold;
        uint64_t before;
        lk_client *client = world_client(fenced[i], NULL);
        world_ask("FLUSHALL");
        assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
        before = hold.fence;
        world_ask("FLUSHALL"); /* like a restart without persistence */
        assert_int_equal(lk_raise_fence(client, KEY, 41), LK_OK); /* never lowers the next fence */
        assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
        assert_true(hold.fence > before);
        assert_int_equal(lk_release(&hold), LK_OK);
        before = REDIS_FENCE_AHEAD;
        assert_int_equal(lk_raise_fence(client, KEY, before), LK_OK);
        assert_int_equal(lk_raise_fence(client, KEY, 7), LK_OK);
        assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
        assert_true(hold.fence == before + 1);
        assert_int_equal(lk_release(&hold), LK_OK);
        assert_int_equal(lk_raise_fence(client, KEY, UINT64_MAX), LK_INVALID);
        lk_close(client);
    }
}

/* Fences rise up to the last integer that Lua represents exactly. */
TEST_THAT(raised_counter_leaves_room_for_grants_that_rise)
{
    for (size_t i = 0; i < COUNT(fenced); i++) {
        lk_hold hold;
        uint64_t last = UINT64_C(1) << 53;
        lk_client *client = world_client(fenced[i], NULL);
        world_ask("FLUSHALL");
        assert_int_equal(lk_raise_fence(client, KEY, last), LK_INVALID);
        assert_int_equal(lk_raise_fence(client, KEY, LK_REDIS_FENCE_MAX + 1), LK_INVALID);
        assert_int_equal(lk_raise_fence(client, KEY, LK_REDIS_FENCE_MAX), LK_OK);
        assert_true(world_ask("INCRBY {" KEY "}:fence %llu",
                              (unsigned long long)LK_REDIS_FENCES_LEFT - 2) > 0);
        for (uint64_t fence = last - 1; fence <= last; fence++) {
            assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
            assert_true(hold.fence == fence);
            assert_int_equal(lk_release(&hold), LK_OK);
        }
        lk_close(client);
    }
}

/* -- waiting ------------------------------------------------------------------------------------
 */

static bool refused_again(void *hooked)
{
    return atomic_load(&((struct hooked *)hooked)->refusals) > 2;
}

TEST_THAT(waiter_learns_the_end_of_a_lease_that_was_shortened)
{
    static const char *const waking[] = {"redis-reentrant", "redis-readwrite", "redis-semaphore"};
    enum { MINUTE_MS = 60000, HOUR_MS = 3600000 };
    for (size_t i = 0; i < COUNT(waking); i++) {
        struct hooked hooked;
        lk_hold hold;
        lk_client *holding = world_client(waking[i], NULL);
        lk_client *waiting = world_client(waking[i], &(lk_options){.env = hook(&hooked)});
        struct asker waiter = {.client = waiting, .key = KEY, .wait_ms = HOUR_MS};
        assert_int_equal(world_acquire(holding, KEY, HOUR_MS, 0, &hold), LK_OK);
        asker_start(&waiter);
        bool waits = wait_until(refused_twice, &hooked, LONG_MS);
        lk_status shortened = lk_extend(&hold, MINUTE_MS);
        bool told = wait_until(refused_again, &hooked, LONG_MS);
        assert_int_equal(lk_release(&hold), LK_OK);
        assert_int_equal(asker_end(&waiter), LK_OK);
        assert_int_equal(shortened, LK_OK);
        assert_true(waits && told);
        lk_close(holding);
    }
}

/* -- flawed guards ------------------------------------------------------------------------------
 */

TEST_THAT(setnx_expire_rounds_leases_up_to_seconds)
{
    static const struct {
        int64_t lease_ms, low_ms, high_ms;
    } rows[] = {{700, 1, 1000}, {1000, 1, 1000}, {1001, 1001, 2000}, {20000, 18000, 20000}};
    lk_client *client = world_client("redis-setnx-expire", NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        lk_hold hold;
        world_ask("DEL " KEY);
        assert_int_equal(world_acquire(client, KEY, rows[i].lease_ms, 0, &hold), LK_OK);
        assert_in_range(world_ask("PTTL " KEY), rows[i].low_ms, rows[i].high_ms);
        lk_release(&hold);
    }
    lk_close(client);
}

TEST_THAT(holder_killed_before_expire_leaves_a_lock_without_lease)
{
    struct holder holder;
    struct holder_plan plan = {.guard = "redis-setnx-expire",
                               .endpoints = world_redis->url,
                               .key = KEY,
                               .lease_ms = 100,
                               .die_at = LK_POINT_EXPIRE};
    assert_true(holder_start(&holder, &plan));
    assert_true(world_becomes(1, LONG_MS, "EXISTS " KEY));
    holder_kill(&holder);
    assert_int_equal(world_ask("PTTL " KEY), -1);
}

struct rival {
    lk_client *client;
    lk_hold hold;
    lk_status status;
};

static void be_quicker(void *arg)
{
    struct rival *rival = arg;
    rival->status = world_acquire(rival->client, KEY, LONG_MS, 0, &rival->hold);
}

/* Both see an expired stamp; B replaces it first; A's GETSET then replaces B's. */
TEST_THAT(getset_loser_moves_the_stamp_of_the_winner)
{
    struct hooked hooked;
    struct rival rival = {.client = world_client("redis-getset", NULL)};
    lk_client *client = world_client("redis-getset", &(lk_options){.env = hook(&hooked)});
    lk_hold loser;
    char value[32];
    world_ask("SET " KEY " 1"); /* expired in 1970 */
    hooked.point = LK_POINT_GETSET;
    hooked.call = be_quicker;
    hooked.arg = &rival;
    assert_int_equal(world_acquire(client, KEY, 2 * LONG_MS, 0, &loser), LK_TIMEOUT);
    assert_int_equal(rival.status, LK_OK);
    world_ask_text(value, sizeof value, "GET " KEY);
    assert_int_not_equal(strcmp(value, rival.hold.token), 0);
    assert_true(atoll(value) > atoll(rival.hold.token)); /* other clients see a longer lease */
    assert_int_equal(lk_release(&rival.hold), LK_OK);
    assert_int_equal(world_ask("EXISTS " KEY), 0);
    lk_close(rival.client);
    lk_close(client);
}

TEST_THAT(getset_client_whose_clock_is_ahead_takes_a_live_lock)
{
    struct hooked hooked;
    lk_hold hold, thief;
    lk_client *client = world_client("redis-getset", NULL);
    lk_client *ahead = world_client("redis-getset", &(lk_options){.env = hook(&hooked)});
    assert_int_equal(world_acquire(client, KEY, LONG_MS, 0, &hold), LK_OK);
    assert_int_equal(world_acquire(ahead, KEY, LONG_MS, 0, &thief), LK_TIMEOUT);
    atomic_store(&hooked.ahead_us, 2 * LONG_MS * 1000);
    assert_int_equal(world_acquire(ahead, KEY, LONG_MS, 0, &thief), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK); /* a bare DEL frees the other client's lock */
    assert_int_equal(world_ask("EXISTS " KEY), 0);
    assert_int_equal(lk_release(&thief), LK_LOST);
    lk_close(ahead);
    lk_close(client);
}

/* A holder whose own stamp has passed does not delete the key. */
TEST_THAT(getset_holder_past_its_stamp_deletes_nothing)
{
    lk_hold a, b;
    lk_client *client = world_client("redis-getset", NULL);
    assert_int_equal(world_acquire(client, KEY, 50, 0, &a), LK_OK);
    assert_int_equal(world_acquire(client, KEY, LONG_MS, LONG_MS, &b), LK_OK);
    assert_int_equal(lk_release(&a), LK_LOST);
    assert_int_equal(world_ask("EXISTS " KEY), 1);
    assert_int_equal(lk_release(&b), LK_OK);
    lk_close(client);
}

/* -- all of them --------------------------------------------------------------------------------
 */

/* A key of any guard counts as held, and no guard harms the key of another. */
TEST_THAT(guards_of_different_kinds_exclude_each_other_on_one_key)
{
    for (size_t i = 0; i < COUNT(guards); i++)
        for (size_t j = 0; j < COUNT(guards); j++) {
            lk_hold hold, other;
            world_ask("FLUSHALL");
            lk_client *holder = world_client(guards[i], NULL);
            lk_client *client = world_client(guards[j], NULL);
            assert_int_equal(world_acquire(holder, KEY, LONG_MS, 0, &hold), LK_OK);
            lk_status status = world_acquire(client, KEY, LONG_MS, 0, &other);
            if (status != LK_TIMEOUT)
                fail_msg("%s on a key of %s: %s", guards[j], guards[i], lk_status_text(status));
            assert_int_equal(lk_release(&hold), LK_OK);
            lk_close(client);
            lk_close(holder);
        }
}

/* Some releases send no message that the waiter receives. Then it polls at intervals. */
TEST_THAT(waiter_behind_another_kind_of_guard_notices_its_release)
{
    for (size_t i = 0; i < COUNT(fenced); i++)
        for (size_t j = 0; j < COUNT(fenced); j++) {
            static struct asker waiter; /* static: a failed assertion leaves it running */
            static struct hooked hooked;
            lk_hold hold, other;
            world_ask("FLUSHALL");
            lk_client *holder = world_client(fenced[i], NULL);
            lk_client *client = world_client(fenced[j], &(lk_options){.env = hook(&hooked)});
            assert_int_equal(world_acquire(holder, KEY, LONG_MS, 0, &hold), LK_OK);
            assert_int_equal(world_acquire(client, KEY, LONG_MS, POLLED_MS, &other), LK_TIMEOUT);
            assert_true(other.attempts <= POLLED_MS / 2);
            waiter = (struct asker){.client = client, .key = KEY, .wait_ms = LONG_MS};
            atomic_store(&hooked.refusals, 0);
            asker_start(&waiter);
            assert_true(wait_until(refused_twice, &hooked, LONG_MS));
            int64_t start_ms = test_now_ms();
            assert_int_equal(lk_release(&hold), LK_OK);
            assert_int_equal(asker_join(&waiter), LK_OK);
            if (test_now_ms() - start_ms > SOON_MS)
                fail_msg("%s behind %s slept on", fenced[j], fenced[i]);
            assert_int_equal(lk_release(&waiter.hold), LK_OK);
            lk_close(client);
            lk_close(holder);
        }
}

TEST_THAT(lock_replaced_by_another_kind_is_lost)
{
    for (size_t i = 0; i < COUNT(fenced); i++) {
        bool is_hash = strcmp(fenced[i], "redis-reentrant") == 0;
        lk_hold hold;
        world_ask("FLUSHALL");
        lk_client *client = world_client(fenced[i], NULL);
        assert_int_equal(world_acquire(client, KEY, LONG_MS, 0, &hold), LK_OK);
        world_ask("DEL " KEY);
        world_ask(is_hash ? "SET " KEY " x" : "HSET " KEY " x 1");
        assert_int_equal(lk_extend(&hold, LONG_MS), LK_LOST);
        assert_int_equal(lk_release(&hold), LK_LOST);
        assert_int_equal(world_ask("EXISTS " KEY), 1);
        lk_close(client);
    }
}

TEST_THAT(every_guard_tells_its_four_facts_and_answers_ping)
{
    for (size_t i = 0; i < COUNT(guards); i++) {
        const lk_provider_info *info = lk_provider_find(guards[i]);
        assert_non_null(info);
        assert_true(strlen(info->algorithm) > 0 && strlen(info->guarantee) > 0);
        assert_true(strlen(info->weakness) > 0 && strlen(info->source) > 0);
        lk_client *client = world_client(guards[i], NULL);
        assert_int_equal(lk_ping(client), LK_OK);
        lk_close(client);
        lk_error error;
        assert_int_equal(lk_open(guards[i], "http://nonsense", NULL, &client, &error), LK_INVALID);
        assert_true(strlen(error.message) > 0);
    }
}

/* The longest allowed key and owner fit everywhere. */
TEST_THAT(longest_key_and_owner_fit)
{
    char key[LK_KEY_MAX + 1], owner[LK_OWNER_MAX + 1];
    memset(key, 'k', LK_KEY_MAX);
    key[LK_KEY_MAX] = '\0';
    memset(owner, 'o', LK_OWNER_MAX);
    owner[LK_OWNER_MAX] = '\0';
    for (size_t i = 0; i < COUNT(guards); i++) {
        lk_request request = {.key = key, .owner = owner, .lease_ms = 0};
        lk_hold hold;
        struct asker waiter = {.key = key, .wait_ms = LONG_MS};
        struct hooked hooked;
        lk_client *client = world_client(guards[i], &(lk_options){.env = hook(&hooked)});
        waiter.client = client;
        assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
        asker_start(&waiter);
        assert_true(wait_until(refused_twice, &hooked, LONG_MS));
        assert_int_equal(lk_release(&hold), LK_OK);
        assert_int_equal(asker_join(&waiter), LK_OK);
        assert_int_equal(lk_release(&waiter.hold), LK_OK);
        lk_close(client);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    return tests_run();
}
