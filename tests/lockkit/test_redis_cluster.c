/* redis+cluster://: every lock on its slot's node, wherever that is. */
#include "../../lockkit/redis_cluster.h"
#include "../lib/process.h"
#include "../lib/redis.h"
#include "../lib/redis_link.h"
#include "../lib/redis_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define KEY "lock:item:1"

enum { KEYS = 60, WAIT_MS = 10000 };

static struct sandbox *sandbox;
static struct sandbox_cluster cluster;

static int open_cluster(void **state)
{
    (void)state;
    return sandbox_open(&sandbox) == 0 ? sandbox_cluster(sandbox, false, &cluster) : -1;
}

static int close_cluster(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static int empty(void **state)
{
    (void)state;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        if (redis_do(cluster.master[i], "FLUSHALL") != 1)
            return -1;
    return 0;
}

static void key_of(char ret[32], int i)
{
    snprintf(ret, 32, "lock:item:%d", i);
}

static int count_info(void *n, const lk_lock_info *info)
{
    (void)info;
    ++*(int *)n;
    return 0;
}

static void locks_and_their_list_spread_over_all_masters(void **state)
{
    (void)state;
    static lk_hold hold[KEYS];
    lk_client *client = set_client("redis-token", cluster.url, NULL);
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        key_of(key, i);
        assert_int_equal(set_acquire(client, key, 0, &hold[i]), LK_OK);
        assert_int_equal(hold[i].fence, 1);
    }
    int64_t stand = 0;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        int64_t here = redis_do(cluster.master[i], "DBSIZE");
        assert_true(here >= KEYS / 6);
        stand += here;
    }
    assert_int_equal(stand, 2 * KEYS); /* each beside its fence */
    int listed = 0;
    assert_int_equal(lk_list(client, "lock:", count_info, &listed), LK_OK);
    assert_int_equal(listed, KEYS);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(lk_release(&hold[i]), LK_OK);
    lk_close(client);
}

static void every_redis_guard_excludes_releases_and_wakes(void **state)
{
    (void)state;
    const lk_provider_info *info;
    int n = 0;
    for (size_t i = 0; (info = lk_provider_at(i)) != NULL; i++) {
        if (strncmp(info->name, "redis-", 6) != 0)
            continue;
        lk_client *one = set_client(info->name, cluster.url, NULL);
        lk_client *two = set_client(info->name, cluster.url, NULL);
        assert_int_equal(lk_ping(one), LK_OK);
        for (int k = 0; k < 6; k++) {
            char key[32];
            lk_hold first, second;
            key_of(key, k);
            assert_int_equal(set_acquire(one, key, 0, &first), LK_OK);
            assert_int_equal(set_acquire(two, key, 30, &second), LK_TIMEOUT);
            assert_int_equal(lk_release(&first), LK_OK);
            assert_int_equal(set_acquire(two, key, WAIT_MS, &second), LK_OK);
            if (info->caps & LK_CAP_FENCE)
                assert_true(second.fence > first.fence);
            assert_int_equal(lk_release(&second), LK_OK);
        }
        lk_close(two);
        lk_close(one);
        assert_int_equal(empty(NULL), 0);
        n++;
    }
    assert_true(n >= 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(locks_and_their_list_spread_over_all_masters, empty),
        cmocka_unit_test_setup(every_redis_guard_excludes_releases_and_wakes, empty),
    };
    return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
