/* --redis and --redis-replicas reach the lock library: Sentinels, a cluster, replicas. */
#include "guard.h"
#include "lateness.h"
#include "process.h"
#include "sandbox.h"
#include "tests.h"

#include <stdio.h>

static struct sandbox *sandbox;

static int open_sandbox(void **state)
{
    (void)state;
    return sandbox_open(&sandbox);
}

static int close_sandbox(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

/* The status of a redis-token lock in a service with this --redis and --redis-replicas. */
static lk_status lock_at(const char *redis, int64_t replicas)
{
    struct config config = {
        .guard = "none", .lease_ms = 30000, .watchdog = true, .redis_replicas = replicas};
    struct guards *guards;
    lk_error error;
    lk_hold hold;
    snprintf(config.redis, sizeof config.redis, "%s", redis);
    assert_int_equal(guards_open(&config, &seams_none, &guards), 0);
    lk_client *client = guard_client(guard_find(guards, "redis-token"), &error);
    assert_non_null(client);
    assert_non_null(guard_client(guard_find(guards, "mutex"), &error)); /* ignores them */
    lk_status status = lk_try_acquire(client, "lock:item:1", &hold);
    if (status == LK_OK)
        assert_int_equal(lk_release(&hold), LK_OK);
    guards_close(guards);
    return status;
}

/* Whether it is granted there. A machine that is slower than the lock servers' timeout may need
 * more than one attempt. */
static bool locks_at(const char *redis)
{
    int64_t start_ms;
    lk_status status;
    do {
        start_ms = test_now_ms();
        status = lock_at(redis, 0);
    } while (status == LK_UNAVAILABLE && lateness_since(start_ms) > GUARD_COMMAND_TIMEOUT_MS / 4);
    return status == LK_OK;
}

GROUP_FIXTURE(open_sandbox, close_sandbox);

TEST_THAT(guards_lock_where_sentinels_say_and_where_replicas_are)
{
    struct sandbox_sentinel set;
    assert_int_equal(sandbox_sentinel(sandbox, &set), 0);
    char list[2 * SANDBOX_TEXT_MAX];
    snprintf(list, sizeof list, "%s,redis://127.0.0.1:1", set.url); /* for redlock */
    assert_true(locks_at(list));
    assert_int_equal(lock_at(set.url, 2), LK_UNAVAILABLE); /* there is only one replica */
    assert_int_equal(lock_at(set.replica->url, 0), LK_UNAVAILABLE);
}

TEST_THAT(guards_lock_on_a_cluster)
{
    struct sandbox_cluster cluster;
    assert_int_equal(sandbox_cluster(sandbox, false, &cluster), 0);
    assert_true(locks_at(cluster.url));
}
