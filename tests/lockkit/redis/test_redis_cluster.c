/* redis+cluster://: every lock is on the node of its slot. */
#include "redis_cluster.h"
#include "cluster_rig.h"
#include "lock_batch.h"
#include "lock_hooks.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "redis.h"
#include "redis_link.h"
#include "redis_set.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define KEY "lock:item:1"

enum { KEYS = 60, WAIT_MS = 10000, LEASE_MS = 600000, RECOVERS_MS = 60000 };

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

GROUP_FIXTURE(open_cluster, close_cluster);
TEST_FIXTURE(empty, NULL);

TEST_THAT(locks_and_their_list_spread_over_all_masters)
{
    static lk_hold hold[KEYS];
    lk_client *client = set_patient_client("redis-token", cluster.url, NULL);
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        key_of(key, i);
        assert_int_equal(set_acquire(client, key, 0, &hold[i]), LK_OK);
        assert_true(hold[i].fence > 0);
    }
    int64_t stand = 0;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        int64_t here = redis_do(cluster.master[i], "DBSIZE");
        assert_true(here >= KEYS / 6);
        stand += here;
    }
    assert_int_equal(stand, 2 * KEYS); /* locks and fence counters */
    int listed = 0;
    assert_int_equal(lk_list(client, "lock:", count_info, &listed), LK_OK);
    assert_int_equal(listed, KEYS);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(lk_release(&hold[i]), LK_OK);
    lk_close(client);
}

TEST_THAT(locks_asked_for_at_once_stand_on_their_nodes)
{
    static struct lock_batch batch, second;
    lk_client *client = set_patient_client("redis-token", cluster.url, NULL);
    batch_init(&batch, 0, LK_EACH_MAX, LEASE_MS);
    batch_init(&second, 0, LK_EACH_MAX, LEASE_MS);
    batch_try(&batch, client);
    assert_true(batch_ok(&batch));
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        assert_true(redis_do(cluster.master[i], "DBSIZE") > 0);
    batch_try(&second, client);
    assert_int_equal(batch_count(&second, LK_TIMEOUT), LK_EACH_MAX);
    batch_release(&batch);
    assert_true(batch_ok(&batch));
    batch_try(&second, client);
    assert_true(batch_ok(&second));
    for (size_t i = 0; i < LK_EACH_MAX; i++)
        assert_true(second.hold[i].fence > batch.hold[i].fence);
    batch_release(&second);
    assert_true(batch_ok(&second));
    lk_close(client);
}

TEST_THAT(nodes_that_have_forgotten_a_script_are_sent_it_alone)
{
    static struct lock_batch batch;
    lk_client *client = set_patient_client("redis-token", cluster.url, NULL);
    batch_init(&batch, 0, LK_EACH_MAX, LEASE_MS);
    batch_try(&batch, client);
    batch_release(&batch);
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        assert_int_equal(redis_do(cluster.master[i], "SCRIPT FLUSH"), 1);
        batch_try(&batch, client);
        assert_true(batch_ok(&batch));
        assert_int_equal(redis_do(cluster.master[i], "SCRIPT FLUSH"), 1);
        batch_release(&batch);
        assert_true(batch_ok(&batch));
    }
    lk_close(client);
}

TEST_THAT(every_redis_guard_excludes_releases_and_wakes)
{
    const lk_provider_info *info;
    int n = 0;
    for (size_t i = 0; (info = lk_provider_at(i)) != NULL; i++) {
        if (strncmp(info->name, "redis-", 6) != 0)
            continue;
        lk_client *one = set_patient_client(info->name, cluster.url, NULL);
        lk_client *two = set_patient_client(info->name, cluster.url, NULL);
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

static int64_t lease_of(const char *key)
{
    int64_t lease_ms = -1;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) { /* the others answer MOVED */
        int64_t here_ms = redis_do(cluster.master[i], "PTTL %s", key);
        lease_ms = here_ms > lease_ms ? here_ms : lease_ms;
    }
    return lease_ms;
}

/* The node cannot know whether the waiter's client listens: PUBLISH counts only its own clients. */
TEST_THAT(fair_lock_that_was_handed_over_has_its_whole_lease)
{
    struct hooked hooked;
    lk_options options = {.env = hook(&hooked)};
    lk_client *one = set_patient_client("redis-fair", cluster.url, NULL);
    lk_client *two = set_patient_client("redis-fair", cluster.url, &options);
    for (int k = 0; k < 6; k++) {
        char key[32];
        lk_hold first;
        key_of(key, k);
        struct asker waiter = {.client = two, .key = key, .lease_ms = 30000, .wait_ms = WAIT_MS};
        assert_int_equal(set_acquire(one, key, 0, &first), LK_OK);
        hooked.refusals = 0;
        asker_start(&waiter);
        bool queued = wait_until(refused_twice, &hooked, WAIT_MS);
        lk_status released = lk_release(&first), granted = asker_join(&waiter);
        int64_t lease_ms = lease_of(key);
        assert_true(queued);
        assert_int_equal(released, LK_OK);
        assert_int_equal(granted, LK_OK);
        assert_true(lease_ms > 10000);
        assert_int_equal(lk_release(&waiter.hold), LK_OK);
    }
    lk_close(two);
    lk_close(one);
}

/* -- many threads, and forgetful nodes --------------------------------------------------------- */

struct taker {
    pthread_t thread;
    lk_client *client;
    int number;
    int64_t failed;
};

static void *take_often(void *arg)
{
    struct taker *taker = arg;
    for (int i = 0; i < 50; i++) {
        char key[32];
        lk_hold hold;
        key_of(key, taker->number * 50 + i);
        taker->failed +=
            set_acquire(taker->client, key, 0, &hold) != LK_OK || lk_release(&hold) != LK_OK;
    }
    return NULL;
}

static int64_t asked_for_maps(void)
{
    int64_t asked = 0;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        asked += set_calls_of(cluster.master[i], "cluster|slots");
    return asked;
}

/* The client has neither map nor scripts. The first host of the list hangs, so all threads arrive
 * while one is asking. */
TEST_THAT(threads_that_come_first_ask_for_the_map_once)
{
    struct taker taker[32];
    char url[SANDBOX_TEXT_MAX];
    struct sandbox_server *hangs = sandbox_redis(sandbox, NULL);
    assert_non_null(hangs);
    assert_int_equal(sandbox_signal(hangs, SIGSTOP), 0);
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d", hangs->port,
             cluster.master[1]->port);
    lk_client *client = set_client("redis-token", url, NULL);
    int64_t asked = asked_for_maps();
    for (int i = 0; i < 32; i++) {
        taker[i] = (struct taker){.client = client, .number = i};
        assert_int_equal(pthread_create(&taker[i].thread, NULL, take_often, &taker[i]), 0);
    }
    for (int i = 0; i < 32; i++)
        pthread_join(taker[i].thread, NULL);
    for (int i = 0; i < 32; i++)
        assert_int_equal(taker[i].failed, 0);
    assert_int_equal(asked_for_maps() - asked, 1);
    lk_close(client);
}

static int master_of(int slot)
{
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        if (slot < (i + 1) * LK_REDIS_SLOTS / SANDBOX_CLUSTER_MASTERS)
            return i;
    return -1;
}

/* A master tells the others its port by gossip. Waits until each of them names the right one. */
static void wait_for_the_map(void)
{
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        char url[SANDBOX_TEXT_MAX];
        snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", cluster.master[i]->port);
        lk_client *client = set_client("redis-token", url, NULL);
        assert_true(set_recovers(client, "k", RECOVERS_MS, NULL));
        lk_close(client);
    }
}

/* A command without an answer may have been executed, so it is not sent again to any node. */
TEST_THAT(lost_answer_of_a_node_is_unknown_and_not_asked_for_again)
{
    struct sandbox_server *owner = cluster.master[master_of(lk_redis_slot("k"))];
    struct proxy *proxy = proxy_open(owner->port);
    assert_non_null(proxy);
    assert_int_equal(redis_do(owner, "CONFIG SET cluster-announce-port %d", proxy_port(proxy)), 1);
    char url[SANDBOX_TEXT_MAX];
    struct link link;
    lk_redis_reply reply;
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", owner->port);
    assert_true(link_open(&link, url));
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "k"), LK_OK);
    proxy_lose_answer(proxy, "INCR", 1, PROXY_CUT);
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "k"), LK_UNKNOWN);
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "k"), LK_OK);
    assert_int_equal(reply.root.integer, 3);
    link_close(&link);
    assert_int_equal(redis_do(owner, "CONFIG SET cluster-announce-port 0"), 1);
    proxy_close(proxy);
    assert_int_equal(redis_do(owner, "DEL k"), 1); /* it is a number, not a lock */
    wait_for_the_map();
}

TEST_THAT(scripts_are_given_to_each_node_that_does_not_know_them)
{
    lk_client *client = set_patient_client("redis-token", cluster.url, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
            assert_int_equal(redis_do(cluster.master[i], "SCRIPT FLUSH"), 1);
        for (int i = 0; i < KEYS; i++) {
            char key[32];
            lk_hold hold;
            key_of(key, i);
            assert_int_equal(set_acquire(client, key, 0, &hold), LK_OK);
            assert_int_equal(lk_release(&hold), LK_OK);
        }
    }
    lk_close(client);
}

TEST_THAT(hosts_of_the_endpoint_that_are_dead_or_no_cluster_are_passed_over)
{
    char url[SANDBOX_TEXT_MAX];
    struct sandbox_server *alone = sandbox_redis(sandbox, NULL);
    assert_non_null(alone);
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             sandbox_free_port(), alone->port, cluster.master[1]->port);
    lk_client *client = set_client("redis-token", url, NULL);
    assert_true(set_recovers(client, KEY, 0, NULL));
    lk_close(client);

    struct link link;
    char message[LK_MESSAGE_MAX];
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", alone->port);
    assert_true(link_open(&link, url));
    lk_redis_reply reply;
    assert_int_equal(lk_redis_command(link.redis, &reply, "GET", "k"), LK_UNAVAILABLE);
    lk_redis_last_error(link.redis, message, sizeof message);
    assert_non_null(strstr(message, "cluster support disabled"));
    link_close(&link);
}
