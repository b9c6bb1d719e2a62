/* redis-reentrant: the server counts entries, on Redisson's keys. */
#include "providers.h"
#include "lateness.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "redis_link.h"
#include "redis.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>

#define GUARD   "redis-reentrant"
#define KEY     "lock:item:1"
#define CHANNEL "redisson_lock__channel:{lock:item:1}"

enum { LONG_MS = 20000 };

static int empty(void **state)
{
    (void)state;
    world_ask("FLUSHALL");
    return 0;
}

static lk_status enter(lk_client *client, const char *owner, int64_t lease_ms, lk_hold *hold)
{
    lk_request request = {.key = KEY, .owner = owner, .lease_ms = lease_ms};
    return lk_acquire(client, &request, hold);
}

/* -- counting -----------------------------------------------------------------------------------
 */

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(empty, NULL);

TEST_THAT(server_counts_entries_of_an_owner_where_redisson_does)
{
    lk_client *client = world_client(GUARD, NULL);
    lk_hold holds[5], other;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(enter(client, "worker", 0, &holds[i]), LK_OK);
        assert_int_equal(holds[i].fence, holds[0].fence);
        assert_string_equal(holds[i].token, holds[0].token);
        char count[16];
        world_ask_text(count, sizeof count, "HGET " KEY " %s", holds[0].token);
        assert_int_equal(atoi(count), i + 1);
        assert_int_equal(enter(client, "other", 0, &other), LK_TIMEOUT);
    }
    for (int i = 4; i >= 0; i--) {
        assert_int_equal(world_ask("EXISTS " KEY), 1);
        assert_int_equal(lk_release(&holds[i]), LK_OK);
        assert_int_equal(lk_release(&holds[i]), LK_LOST);
    }
    assert_int_equal(world_ask("EXISTS " KEY), 0);
    assert_int_equal(enter(client, "other", 0, &other), LK_OK);
    assert_true(other.fence > holds[0].fence);
    assert_int_equal(lk_release(&other), LK_OK);
    lk_close(client);
}

/* The field of an entry has the owner's name in it. No other owner's name may be equal to it. */
TEST_THAT(no_owner_walks_in_by_the_name_of_anothers_entry)
{
    static const char *const fields[] = {"holder#1", "holder#2", "holder#3", "holder#4"};
    lk_client *client = world_client(GUARD, NULL);
    lk_hold hold, other;
    assert_int_equal(enter(client, "holder", 0, &hold), LK_OK);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        assert_int_equal(enter(client, fields[i], 0, &other), LK_TIMEOUT);
    assert_int_equal(lk_release(&hold), LK_OK);
}

TEST_THAT(inner_entry_keeps_the_outer_fence_though_the_counter_was_raised)
{
    lk_client *client = world_client(GUARD, NULL);
    lk_hold outer, inner;
    assert_int_equal(enter(client, "worker", 0, &outer), LK_OK);
    assert_int_equal(lk_raise_fence(client, KEY, REDIS_FENCE_AHEAD), LK_OK);
    assert_int_equal(enter(client, "worker", 0, &inner), LK_OK);
    assert_int_equal(inner.fence, outer.fence);
    assert_int_equal(lk_release(&inner), LK_OK);
    assert_int_equal(lk_release(&outer), LK_OK);
    assert_int_equal(enter(client, "worker", 0, &outer), LK_OK);
    assert_true(outer.fence == REDIS_FENCE_AHEAD + 1);
    assert_int_equal(lk_release(&outer), LK_OK);
    lk_close(client);
}

TEST_THAT(inner_entry_never_shortens_the_outer_lease)
{
    lk_client *client = world_client(GUARD, NULL);
    lk_hold outer, inner;
    assert_int_equal(enter(client, "worker", LONG_MS, &outer), LK_OK);
    assert_int_equal(enter(client, "worker", 50, &inner), LK_OK);
    assert_true(world_ask("PTTL " KEY) > LONG_MS / 2);
    assert_int_equal(lk_extend(&inner, 50), LK_OK);
    assert_true(world_ask("PTTL " KEY) > LONG_MS / 2);
    assert_int_equal(lk_release(&inner), LK_OK);
    assert_true(world_ask("PTTL " KEY) > LONG_MS / 2);
    assert_int_equal(lk_extend(&outer, 2 * LONG_MS), LK_OK);
    assert_true(world_ask("PTTL " KEY) > LONG_MS);
    assert_int_equal(lk_extend(&outer, LONG_MS), LK_OK); /* a single hold may shorten the lease */
    assert_true(world_ask("PTTL " KEY) <= LONG_MS);
    assert_int_equal(lk_release(&outer), LK_OK);
    lk_close(client);
}

/* An inner try whose answer is lost is undone once, whether it was executed or not. */
TEST_THAT(undoing_an_inner_attempt_of_unknown_outcome_leaves_the_outer_hold_alone)
{
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    lk_client *client = world_client_at(GUARD, proxy_port(proxy), NULL);
    lk_hold outer, inner, other;
    char count[16];
    assert_int_equal(enter(client, "worker", 0, &outer), LK_OK);
    proxy_lose_answer(proxy, KEY, 1, PROXY_CUT); /* executed */
    assert_int_equal(enter(client, "worker", 0, &inner), LK_UNKNOWN);
    assert_int_equal(proxy_lost(proxy), 1);
    world_ask_text(count, sizeof count, "HGET " KEY " %s", outer.token);
    assert_string_equal(count, "1");
    /* token, its one entry, #fence */
    assert_int_equal(world_ask("HLEN " KEY), 3);
    assert_int_equal(enter(client, "other", 0, &other), LK_TIMEOUT);

    proxy_lose_answer(proxy, KEY, 2, PROXY_CUT); /* the answer to the release of the inner one */
    assert_int_equal(enter(client, "worker", 0, &inner), LK_OK);
    assert_int_equal(lk_release(&inner), LK_UNKNOWN);
    assert_int_equal(proxy_lost(proxy), 2);
    world_ask_text(count, sizeof count, "HGET " KEY " %s", outer.token);
    assert_string_equal(count, "1");
    assert_int_equal(lk_release(&outer), LK_OK);
    assert_int_equal(world_ask("EXISTS " KEY), 0);
    lk_close(client);
    proxy_close(proxy);
}

/* A try reaches the server after its repetition. The core repeats it with the same hold. */
TEST_THAT(attempt_that_is_done_twice_counts_once)
{
    const lk_provider *provider = &lk_redis_reentrant;
    struct link link;
    lk_hold hold = {.key = KEY, .lease_ms = LONG_MS, .token = "00112233:worker"};
    lk_attempt attempt = {.hold = &hold};
    void *self;
    assert_true(link_open(&link, world_redis->url));
    assert_int_equal(provider->open(&link.context, &self, NULL), LK_OK);
    assert_int_equal(provider->try_acquire(self, &attempt), LK_OK);
    assert_int_equal(provider->try_acquire(self, &attempt), LK_OK);
    assert_int_equal(provider->release(self, &hold), LK_OK);
    assert_int_equal(world_ask("EXISTS " KEY), 0);
    assert_int_equal(provider->release(self, &hold), LK_LOST);
    provider->close(self);
    link_close(&link);
}

/* -- together with Redisson ----------------------------------------------------------------------
 */

TEST_THAT(excludes_and_is_excluded_by_a_lock_of_redisson)
{
    lk_client *client = world_client(GUARD, NULL);
    lk_hold hold;
    world_ask("HSET " KEY " 6f0d5e9c-2a51-4a2e-9d2b-3c1f6a0f6a11:47 1");
    world_ask("PEXPIRE " KEY " 30000");
    assert_int_equal(enter(client, "worker", 0, &hold), LK_TIMEOUT);
    struct hooked hooked;
    lk_client *hooked_client = world_client(GUARD, &(lk_options){.env = hook(&hooked)});
    struct asker waiter = {.client = hooked_client, .key = KEY, .wait_ms = LONG_MS};
    asker_start(&waiter);
    assert_true(wait_until(refused_twice, &hooked, LONG_MS));
    assert_int_equal(world_ask("DEL " KEY), 1); /* its unlock(): delete, then publish 0 */
    assert_true(world_ask("PUBLISH " CHANNEL " 0") >= 1);
    assert_int_equal(asker_join(&waiter), LK_OK);
    assert_true(took_at_most(waiter.took_ms, LONG_MS / 2));
    /* its tryLock(): the key exists, and has no field of its own */
    assert_int_equal(world_ask("EXISTS " KEY), 1);
    assert_int_equal(world_ask("HEXISTS " KEY " 6f0d5e9c-2a51-4a2e-9d2b-3c1f6a0f6a11:47"), 0);
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
    lk_close(hooked_client);
    lk_close(client);
}

TEST_THAT(last_release_publishes_what_redisson_waits_for)
{
    lk_client *client = world_client(GUARD, NULL);
    lk_hold outer, inner;
    redisContext *listener = redis_connect(world_redis->port);
    freeReplyObject(redisCommand(listener, "SUBSCRIBE " CHANNEL));
    assert_int_equal(enter(client, "worker", 0, &outer), LK_OK);
    assert_int_equal(enter(client, "worker", 0, &inner), LK_OK);
    assert_int_equal(lk_release(&inner), LK_OK);
    assert_int_equal(lk_release(&outer), LK_OK);
    redisReply *reply;
    assert_int_equal(redisGetReply(listener, (void **)&reply), REDIS_OK);
    assert_int_equal(reply->elements, 3);
    assert_string_equal(reply->element[0]->str, "message");
    assert_string_equal(reply->element[1]->str, CHANNEL);
    assert_string_equal(reply->element[2]->str, "0");
    freeReplyObject(reply);
    struct pollfd more = {.fd = listener->fd, .events = POLLIN};
    assert_int_equal(world_ask("PUBLISH nobody 0"), 0); /* earlier messages have arrived */
    assert_int_equal(poll(&more, 1, 0), 0);
    redisFree(listener);
    lk_close(client);
}
