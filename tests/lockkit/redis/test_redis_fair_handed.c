/* redis-fair: a waiter to which the lock was handed over. The provider is called directly, so the
 * test controls the order of tries and messages. */
#include "providers.h"
#include "redis_fair_scripts.h"
#include "lock_world.h"
#include "redis.h"
#include "redis_link.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define GUARD   "redis-fair"
#define KEY     "lock:item:1"
#define CHANNEL "lockkit_fair__channel:"

enum { LONG_MS = 30000, CLAIM_MS = LK_FAIR_CLAIM_MS, US_PER_MS = 1000, OLD_FENCE = 1 };

static const lk_provider *const fair = &lk_redis_fair;
static lk_client *client;
static lk_hold first;

/* A waiter in the queue, whose client listens. */
static struct waiter {
    struct link link;
    void *self;
    lk_hold hold;
    lk_attempt attempt;
    int64_t asked_us;
} waiter;

static int64_t now_us(void)
{
    return lk_env_system()->now_us(NULL);
}

static lk_status try_at(int64_t sent_us)
{
    waiter.attempt.since_us = sent_us;
    return fair->try_acquire(waiter.self, &waiter.attempt);
}

static void wait_for_message(void)
{
    assert_int_equal(fair->wait(waiter.self, &waiter.attempt, now_us() + LONG_MS * US_PER_MS),
                     LK_OK);
}

static void queue_up_at(const char *url, int64_t lease_ms)
{
    memset(&waiter, 0, sizeof waiter);
    assert_true(link_open(&waiter.link, url));
    memcpy(waiter.link.context.client_id, "00112233445566778899aabbccddeeff", 33);
    assert_int_equal(fair->open(&waiter.link.context, &waiter.self, NULL), LK_OK);
    waiter.attempt.hold = &waiter.hold;
    strcpy(waiter.hold.key, KEY);
    waiter.hold.lease_ms = lease_ms;
    snprintf(waiter.hold.token, sizeof waiter.hold.token, "%s:waiter",
             waiter.link.context.client_id);
    assert_int_equal(try_at(now_us()), LK_BUSY);
    wait_for_message(); /* only joins the channel */
    waiter.asked_us = now_us();
    assert_int_equal(try_at(waiter.asked_us), LK_BUSY);
    assert_int_equal(world_ask("LLEN {" KEY "}:queue"), 1);
}

static void queue_up(int64_t lease_ms)
{
    queue_up_at(world_redis->url, lease_ms);
}

static void leave(void)
{
    assert_int_equal(fair->release(waiter.self, &waiter.hold), LK_OK);
    fair->wait_end(waiter.self, &waiter.attempt);
    fair->close(waiter.self);
    link_close(&waiter.link);
    assert_int_equal(world_ask("EXISTS " KEY " {" KEY "}:queue {" KEY "}:seen"), 0);
}

/* A Redis with nothing but a fence counter that counts the grants; another client holds the lock.
 */
static int hold_it(void **state)
{
    (void)state;
    world_ask("FLUSHALL");
    client = world_client(GUARD, NULL);
    return lk_raise_fence(client, KEY, REDIS_FENCE_AHEAD) == LK_OK &&
                   world_acquire(client, KEY, LONG_MS, 0, &first) == LK_OK
               ? 0
               : -1;
}

static int let_go(void **state)
{
    (void)state;
    lk_close(client);
    return 0;
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(hold_it, let_go);

TEST_THAT(whoever_was_handed_the_lock_has_it_without_another_command)
{
    queue_up(LONG_MS);
    uint64_t commands = waiter.link.commands;
    assert_int_equal(lk_release(&first), LK_OK);
    assert_true(world_ask("PTTL " KEY) > CLAIM_MS); /* the waiter's lease, in full */
    wait_for_message();
    assert_int_equal(try_at(now_us()), LK_OK);
    assert_int_equal(waiter.link.commands, commands);
    assert_true(waiter.hold.fence == first.fence + 1);
    leave();
}

/* The hand-over happened after that try, whenever its message arrived. */
TEST_THAT(lease_of_what_was_handed_counts_from_the_try_before)
{
    queue_up(LONG_MS);
    assert_int_equal(lk_release(&first), LK_OK);
    wait_for_message();
    assert_int_equal(try_at(now_us() + LONG_MS * US_PER_MS / 4), LK_OK);
    assert_true(waiter.attempt.since_us == waiter.asked_us);
    leave();
}

/* The process slept for most of the lease, so the waiter asks the server for a new one. */
TEST_THAT(message_of_half_a_lease_ago_is_claimed)
{
    queue_up(LONG_MS);
    uint64_t commands = waiter.link.commands;
    assert_int_equal(lk_release(&first), LK_OK);
    wait_for_message();
    int64_t sent_us = now_us() + LONG_MS * US_PER_MS * 3 / 4;
    assert_int_equal(try_at(sent_us), LK_OK);
    assert_true(waiter.link.commands > commands);
    assert_true(waiter.attempt.since_us == sent_us);
    leave();
}

TEST_THAT(short_lease_is_claimed_and_short)
{
    queue_up(CLAIM_MS / 2);
    uint64_t commands = waiter.link.commands;
    assert_int_equal(lk_release(&first), LK_OK);
    assert_true(world_ask("PTTL " KEY) > CLAIM_MS / 2); /* time for the claim */
    wait_for_message();
    assert_int_equal(try_at(now_us()), LK_OK);
    assert_true(waiter.link.commands > commands);
    assert_in_range(world_ask("PTTL " KEY), 1, CLAIM_MS / 2);
    leave();
}

/* The message belongs to a lock that has ended; since then the waiter's next try was refused. */
TEST_THAT(message_for_an_older_try_grants_nothing)
{
    queue_up(LONG_MS);
    char message[LK_TOKEN_MAX + 64];
    snprintf(message, sizeof message, "%s %d %lld", waiter.hold.token, OLD_FENCE,
             (long long)waiter.asked_us - 1);
    assert_int_equal(world_ask("PUBLISH " CHANNEL "%s %s", waiter.link.context.client_id, message),
                     1);
    wait_for_message();
    assert_int_equal(try_at(now_us()), LK_BUSY);
    assert_int_equal(lk_release(&first), LK_OK);
    wait_for_message();
    assert_int_equal(try_at(now_us()), LK_OK);
    assert_true(waiter.hold.fence == first.fence + 1);
    leave();
}

/* A try with an unknown outcome is undone, and another client gets the lock. asked: the try reached
 * the server. heard_before: the message arrived before the undoing. */
static void nothing_is_left_of_a_try_that_was_undone(bool asked, bool heard_before)
{
    struct proxy *proxy = proxy_open(world_redis->port);
    char url[64];
    lk_hold other;
    assert_non_null(proxy);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", proxy_port(proxy));
    queue_up_at(url, LONG_MS);
    assert_int_equal(fair->wait(waiter.self, &waiter.attempt, now_us()), LK_OK);
    int64_t in_doubt_us = now_us();
    if (asked)
        proxy_lose_answer(proxy, KEY, 1, PROXY_CUT);
    else
        proxy_lose_request(proxy, KEY, 1);
    assert_int_equal(try_at(in_doubt_us), LK_UNKNOWN);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_true(world_stands(&waiter.hold)); /* handed over */
    if (heard_before)
        wait_for_message();
    assert_int_equal(fair->release(waiter.self, &waiter.hold), LK_OK);
    assert_int_equal(world_acquire(client, KEY, LONG_MS, 0, &other), LK_OK);
    if (!heard_before)
        wait_for_message();
    lk_status second = try_at(now_us()), freed = lk_release(&other);
    assert_int_equal(freed, LK_OK);
    assert_int_equal(second, LK_BUSY);
    wait_for_message();
    assert_int_equal(try_at(now_us()), LK_OK);
    assert_true(waiter.hold.fence == other.fence + 1);
    leave();
    proxy_close(proxy);
}

/* The message arrives before or after the undoing. */
TEST_THAT(message_for_a_try_that_was_undone_grants_nothing)
{
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            assert_int_equal(world_acquire(client, KEY, LONG_MS, 0, &first), LK_OK);
        nothing_is_left_of_a_try_that_was_undone(i & 1, i & 2);
    }
}

/* No client receives the message, as if the waiter had died. The lock is handed over only for the
 * short claim time. */
TEST_THAT(lock_handed_to_one_who_does_not_listen_is_lent_until_it_looks)
{
    char token[LK_TOKEN_MAX + 1], sign[64];
    queue_up(LONG_MS);
    snprintf(sign, sizeof sign, "99999999999999 %d 1", LONG_MS);
    world_ask_text(token, sizeof token, "LPOP {" KEY "}:queue");
    assert_int_equal(world_ask("HDEL {" KEY "}:seen %s", token), 1);
    assert_int_equal(world_ask("RPUSH {" KEY "}:queue f%s", token), 1); /* of an unknown client */
    world_ask("HSET {" KEY "}:seen f%s %s", token, sign);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_in_range(world_ask("PTTL " KEY), 1, CLAIM_MS);
    assert_int_equal(lk_force_release(client, KEY), LK_OK);
    assert_int_equal(try_at(now_us()), LK_OK);
    leave();
}
