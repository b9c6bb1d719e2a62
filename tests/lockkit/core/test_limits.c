/* A lock server's numbers at the limits of 64 bits, and port numbers out of range. */
#include "login.h"
#include "number.h"
#include "redis_guard.h"
#include "sandbox.h"
#include "impostor.h"
#include "redis.h"
#include "tests.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_MS = 500, WAIT_MS = 200 };

static struct sandbox *sandbox;
static struct sandbox_server *redis;

static int open_server(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    redis = sandbox_redis(sandbox, NULL);
    return redis != NULL ? 0 : -1;
}

static int close_server(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static lk_client *client_of(const char *guard, const char *format, int port)
{
    lk_client *client;
    char endpoint[100];
    const lk_options options = {.command_timeout_ms = TIMEOUT_MS};
    snprintf(endpoint, sizeof endpoint, format, port);
    assert_int_equal(lk_open(guard, endpoint, &options, &client, NULL), LK_OK);
    return client;
}

GROUP_FIXTURE(open_server, close_server);

TEST_THAT(lease_beyond_all_time_is_not_over)
{
    static const int64_t leases_ms[] = {
        0, 1, INT64_MAX / 1000 - 1, INT64_MAX / 1000, INT64_MAX - 1, INT64_MAX};
    const lk_context context = {.env = lk_env_system()};
    const lk_redis_guard guard = {.context = &context};
    const int64_t now_us = context.env->now_us(context.env->ctx);
    for (size_t i = 0; i < sizeof leases_ms / sizeof *leases_ms; i++)
        assert_true(lk_redis_gone_at_us(&guard, leases_ms[i]) > now_us);
}

/* Any client may give a key such a lease. */
TEST_THAT(lock_that_never_ends_is_waited_for)
{
    lk_client *client = client_of("redis-token", "redis://127.0.0.1:%d", redis->port);
    lk_hold hold;
    assert_int_equal(redis_do(redis, "SET k x PXAT 9223372036854775807"), 1);
    const lk_request request = {.key = "k", .wait_ms = WAIT_MS};
    assert_int_equal(lk_acquire(client, &request, &hold), LK_TIMEOUT);
    lk_close(client);
}

TEST_THAT(seconds_of_memcached_are_milliseconds_at_the_limit_too)
{
    static const struct {
        const char *answer;
        int64_t left_ms;
    } rows[] = {{"VA 1 t7\r\nx\r\n", 7000},
                {"VA 1 t-1\r\nx\r\n", INT64_MAX},
                {"VA 1 t9223372036854775\r\nx\r\n", 9223372036854775000},
                {"VA 1 t9223372036854776\r\nx\r\n", INT64_MAX},
                {"VA 1 t9223372036854775807\r\nx\r\n", INT64_MAX},
                {"VA 1 t99999999999999999999\r\nx\r\n", INT64_MAX}};
    unsetenv(LK_MEMCACHED_LOGIN); /* the answers are those to a lock's command */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int port = sandbox_free_port();
        struct impostor *impostor = impostor_say(port, rows[i].answer);
        assert_non_null(impostor);
        lk_client *client = client_of("memcached", "127.0.0.1:%d", port);
        lk_lock_info info;
        assert_int_equal(lk_inspect(client, "k", &info), LK_OK);
        lk_close(client);
        impostor_close(impostor);
        assert_true(info.left_ms == rows[i].left_ms);
    }
}

/* 2^32 plus a port number is no valid port. */
TEST_THAT(sentinel_that_names_no_port_is_not_followed)
{
    char answer[100], port_text[24], host[] = "127.0.0.1";
    lk_hold hold;
    const lk_request request = {.key = "p"};
    int port = sandbox_free_port();
    int n = snprintf(port_text, sizeof port_text, "%lld", (1LL << 32) + redis->port);
    snprintf(answer, sizeof answer, "*2\r\n$9\r\n%s\r\n$%d\r\n%s\r\n", host, n, port_text);
    struct impostor *impostor = impostor_say(port, answer);
    assert_non_null(impostor);
    lk_client *client = client_of("redis-token", "redis+sentinel://127.0.0.1:%d/main", port);
    assert_int_equal(lk_acquire(client, &request, &hold), LK_UNAVAILABLE);
    lk_close(client);
    impostor_close(impostor);
}

TEST_THAT(digits_are_read_up_to_their_most)
{
    static const struct {
        const char *text;
        int number, used;
    } rows[] = {{"0", 0, 1},    {"65535", 65535, 5},  {"65536", 0, 0},
                {"007:", 7, 3}, {"12 34", 12, 2},     {"", 0, 0},
                {"-1", 0, 0},   {"+1", 0, 0},         {" 1", 0, 0},
                {"x", 0, 0},    {"4294967297", 0, 0}, {"99999999999999999999", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int number = 0;
        const char *end = lk_digits(rows[i].text, 65535, &number);
        assert_int_equal(end == NULL ? 0 : end - rows[i].text, rows[i].used);
        assert_int_equal(number, rows[i].number);
    }
}
