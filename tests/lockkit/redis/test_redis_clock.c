/* Redis measures leases by its wall clock: leases when that clock jumps ahead and back. */
#include "lockkit.h"
#include "sandbox.h"
#include "redis.h"
#include "tests.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY "lock:item:1"

enum { LEASE_MS = 2000, HOUR_MS = 3600000, MINUTE_MS = 60000 };

static struct sandbox *sandbox;
static struct sandbox_server *redis;
static lk_client *client;

static int open_redis(void **state)
{
    char path[PATH_MAX], shim[PATH_MAX], url[64];
    const char *build = getenv("BUILD");
    (void)state;
    snprintf(path, sizeof path, "%s/libclockshim.so", build != NULL ? build : "build");
    if (realpath(path, shim) == NULL || sandbox_open(&sandbox) != 0)
        return -1;
    redis = sandbox_redis_with_clock(sandbox, shim);
    if (redis == NULL)
        return -1;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", redis->port);
    return lk_open("redis-token", url, NULL, &client, NULL) == LK_OK ? 0 : -1;
}

static int close_redis(void **state)
{
    (void)state;
    lk_close(client);
    sandbox_close(sandbox);
    return 0;
}

static int empty(void **state)
{
    (void)state;
    return sandbox_set_clock(redis, 0) == 0 && redis_do(redis, "FLUSHALL") == 1 ? 0 : -1;
}

static void leap_ms(int64_t ahead_ms)
{
    assert_int_equal(sandbox_set_clock(redis, ahead_ms * 1000), 0);
}

GROUP_FIXTURE(open_redis, close_redis);
TEST_FIXTURE(empty, NULL);

/* The lock of a dead holder. */
TEST_THAT(lock_granted_while_the_clock_was_an_hour_ahead_stands_for_an_hour)
{
    lk_hold hold;
    leap_ms(HOUR_MS);
    assert_int_equal(redis_do(redis, "SET " KEY " dead NX PX %d", LEASE_MS), 1);
    leap_ms(0);
    assert_in_range(redis_do(redis, "PTTL " KEY), HOUR_MS - MINUTE_MS, HOUR_MS + LEASE_MS);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_TIMEOUT);
}

TEST_THAT(its_release_frees_it_all_the_same)
{
    lk_hold hold;
    leap_ms(HOUR_MS);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    leap_ms(0);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
}

TEST_THAT(leap_ahead_ends_a_lease_that_is_still_counted_on)
{
    lk_hold first, second;
    lk_request request = {.key = KEY, .lease_ms = HOUR_MS / 2};
    assert_int_equal(lk_acquire(client, &request, &first), LK_OK);
    leap_ms(HOUR_MS);
    assert_int_equal(lk_acquire(client, &request, &second), LK_OK);
    assert_int_equal(lk_check(&first, NULL), LK_OK); /* it does not know the loss */
    assert_true(second.fence > first.fence);         /* the fence refuses its writes */
    assert_int_equal(lk_release(&first), LK_LOST);
    assert_int_equal(lk_release(&second), LK_OK);
}
