/* The fault proxy: what it holds, delays and swallows, in front of a real Redis. */
#include "sandbox.h"
#include "sandbox_proxy.h"
#include "process.h"
#include "redis.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { SEEN_WITHIN_MS = 5000, PATIENCE_MS = 150, DELAY_MS = 60 };

static struct sandbox *sandbox;
static struct sandbox_server *redis;

static int open_redis(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    redis = sandbox_redis(sandbox, NULL);
    return redis != NULL ? 0 : -1;
}

static int close_redis(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static redisContext *connect_through(struct proxy *proxy, int patience_ms)
{
    const struct timeval patience = {.tv_sec = patience_ms / 1000,
                                     .tv_usec = patience_ms % 1000 * 1000};
    redisContext *context = redisConnectWithTimeout("127.0.0.1", proxy_port(proxy), patience);
    assert_non_null(context);
    assert_int_equal(context->err, 0);
    redisSetTimeout(context, patience);
    redisReply *reply = redisCommand(context, "AUTH %s", sandbox_password());
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    return context;
}

/* True: it was answered. */
static bool say(redisContext *context, const char *command)
{
    redisReply *reply = redisCommand(context, command);
    bool answered = reply != NULL;
    freeReplyObject(reply);
    return answered;
}

static bool one_is_held(void *proxy)
{
    return proxy_held(proxy) == 1;
}

static bool late_is_set(void *key)
{
    return redis_do(redis, "EXISTS %s", (const char *)key) == 1;
}

GROUP_FIXTURE(open_redis, close_redis);

TEST_THAT(held_command_arrives_after_its_client_has_gone)
{
    char key[] = "late";
    struct proxy *proxy = proxy_open(redis->port);
    redisContext *context = connect_through(proxy, PATIENCE_MS);
    proxy_hold(proxy, "late", 2);
    assert_true(say(context, "GET late"));
    assert_false(say(context, "SET late 1"));
    assert_true(wait_until(one_is_held, proxy, SEEN_WITHIN_MS));
    redisFree(context);
    assert_int_equal(redis_do(redis, "EXISTS late"), 0);
    proxy_let_go(proxy);
    assert_true(wait_until(late_is_set, key, SEEN_WITHIN_MS));
    assert_int_equal(proxy_held(proxy), 0);
    proxy_close(proxy);
}

TEST_THAT(others_pass_while_one_is_held)
{
    struct proxy *proxy = proxy_open(redis->port);
    redisContext *one = connect_through(proxy, PATIENCE_MS);
    redisContext *other = connect_through(proxy, SEEN_WITHIN_MS);
    proxy_hold(proxy, "SET", 1);
    assert_false(say(one, "SET x 1"));
    assert_true(say(other, "SET x 2"));
    redisFree(one);
    redisFree(other);
    proxy_close(proxy);
}

TEST_THAT(delay_holds_up_both_ways)
{
    struct proxy *proxy = proxy_open(redis->port);
    redisContext *context = connect_through(proxy, SEEN_WITHIN_MS);
    proxy_delay(proxy, DELAY_MS);
    int64_t start_ms = test_now_ms();
    assert_true(say(context, "PING"));
    assert_true(test_now_ms() - start_ms >= 2 * DELAY_MS);
    proxy_delay(proxy, 0);
    assert_true(say(context, "PING"));
    redisFree(context);
    proxy_close(proxy);
}

TEST_THAT(one_direction_can_be_dropped)
{
    struct proxy *proxy = proxy_open(redis->port);
    redisContext *context = connect_through(proxy, PATIENCE_MS);
    proxy_drop(proxy, PROXY_TO_CLIENT, true);
    assert_false(say(context, "SET done 1")); /* done, and nobody is told */
    redisFree(context);
    assert_int_equal(redis_do(redis, "EXISTS done"), 1);
    proxy_drop(proxy, PROXY_TO_CLIENT, false);
    context = connect_through(proxy, PATIENCE_MS);
    proxy_drop(proxy, PROXY_TO_SERVER, true);
    assert_false(say(context, "SET never 1"));
    redisFree(context);
    assert_int_equal(redis_do(redis, "EXISTS never"), 0);
    assert_int_equal(proxy_dropped(proxy), 2);
    proxy_close(proxy);
}
