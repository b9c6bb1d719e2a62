/* redis+sentinel:// while the master dies: clients follow, lost locks are reported, and a lock that
 * no replica had is granted twice. */
#include "lock_hooks.h"
#include "lateness.h"
#include "process.h"
#include "redis.h"
#include "redis_set.h"
#include "tests.h"

#include <signal.h>
#include <sys/wait.h>

#define KEY "lock:item:1"

enum { LONG_MS = 60000, RECOVERED_MS = 5000 };

static struct sandbox *sandbox;
static struct sandbox_sentinel set;

/* Each test changes the master. */
static int open_set(void **state)
{
    (void)state;
    return sandbox_open(&sandbox) == 0 ? sandbox_sentinel(sandbox, &set) : -1;
}

static int close_set(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static void kill_master(void)
{
    assert_true(WIFSIGNALED(sandbox_signal(set.master, SIGKILL)));
}

TEST_FIXTURE(open_set, close_set);

TEST_THAT(client_follows_a_killed_master_with_every_call_bounded)
{
    lk_client *client = set_client("redis-token", set.url, NULL);
    assert_true(set_recovers(client, KEY, SET_SWITCH_MS, NULL));
    kill_master();
    int64_t killed_ms = test_now_ms(), took_ms;
    assert_true(set_recovers(client, KEY, SET_SWITCH_MS, &took_ms)); /* tries repeatedly */
    assert_true(wait_until(set_is_switched, &set, SET_SWITCH_MS));
    int64_t named_ms = test_now_ms() - killed_ms;
    assert_true(took_at_most(took_ms, named_ms + RECOVERED_MS));
    lk_hold hold;
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
    assert_int_equal(redis_do(set.replica, "EXISTS " KEY), 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

/* Sentinel does this after it has seen the old master's INFO for eight undisturbed seconds. On a
 * busy machine that may take minutes. */
static void demote(const struct sandbox_server *old, const struct sandbox_server *master)
{
    redis_do(old, "REPLICAOF 127.0.0.1 %d", master->port);
    redis_do(old, "CLIENT KILL TYPE normal");
}

TEST_THAT(client_follows_a_switch_by_hand_though_the_old_master_lives)
{
    lk_client *client = set_client("redis-token", set.url, NULL);
    assert_true(set_recovers(client, KEY, SET_SWITCH_MS, NULL));
    assert_int_equal(redis_do(set.sentinel[0], "SENTINEL FAILOVER " SANDBOX_MASTER_NAME), 1);
    assert_true(wait_until(set_is_switched, &set, SET_SWITCH_MS));
    demote(set.master, set.replica);
    assert_true(wait_until(set_is_replica, set.master, SET_SWITCH_MS));
    assert_true(set_recovers(client, KEY, RECOVERED_MS, NULL));
    assert_int_equal(redis_do(set.replica, "EXISTS {" KEY "}:fence"), 1);
    lk_close(client);
}

struct loss {
    atomic_bool told;
    lk_loss cause;
};

static void on_lost(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct loss *loss = arg;
    (void)hold;
    loss->cause = cause;
    atomic_store(&loss->told, true);
}

TEST_THAT(lock_lost_in_a_switch_is_told)
{
    struct loss loss = {.told = false};
    lk_client *client =
        set_patient_client("redis-token", set.url, &(lk_options){.lease_ms = 12000});
    lk_request request = {.key = KEY, .on_lost = on_lost, .on_lost_arg = &loss};
    lk_hold hold;
    assert_true(set_cut_off(set.master, set.replica));
    assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
    kill_master();
    assert_true(wait_until(is_set, &loss.told, SET_SWITCH_MS));
    assert_int_equal(loss.cause, LK_LOSS_DELETED); /* known from the new master, not the clock */
    assert_int_equal(lk_check(&hold, NULL), LK_LOST);
    assert_int_equal(lk_release(&hold), LK_LOST);
    lk_close(client);
}

TEST_THAT(lock_that_the_replica_has_survives_the_switch)
{
    lk_client *client =
        set_patient_client("redis-reentrant", set.url, &(lk_options){.lease_ms = LONG_MS});
    lk_client *other = set_patient_client("redis-reentrant", set.url, NULL);
    lk_hold hold, refused;
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
    assert_true(set_caught_up(set.master, set.replica));
    kill_master();
    assert_true(wait_until(set_is_switched, &set, SET_SWITCH_MS));
    assert_int_equal(set_acquire(other, KEY, 100, &refused), LK_TIMEOUT);
    assert_int_equal(lk_extend(&hold, LONG_MS), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(other);
    lk_close(client);
}

/* A known weakness, made certain: the replica is cut off before the lock is acquired. */
TEST_THAT(failover_grants_a_lock_twice)
{
    lk_client *one = set_patient_client("redis-token", set.url, &(lk_options){.lease_ms = LONG_MS});
    lk_client *two = set_patient_client("redis-token", set.url, NULL);
    lk_hold first, second;
    assert_int_equal(set_acquire(one, KEY, 0, &first), LK_OK); /* the replica gets the counter */
    assert_int_equal(lk_release(&first), LK_OK);
    assert_true(set_caught_up(set.master, set.replica));
    assert_true(set_cut_off(set.master, set.replica));
    assert_int_equal(set_acquire(one, KEY, 0, &first), LK_OK);
    kill_master();
    assert_true(wait_until(set_is_switched, &set, SET_SWITCH_MS));
    assert_int_equal(set_acquire(two, KEY, 0, &second), LK_OK);
    assert_int_equal(lk_check(&first, NULL), LK_OK); /* two holders at once ... */
    assert_true(second.fence > first.fence);         /* ... the later one with a higher fence */
    assert_int_equal(lk_release(&second), LK_OK);
    assert_int_equal(lk_release(&first), LK_LOST);
    lk_close(two);
    lk_close(one);
}

TEST_THAT(replicas_option_refuses_the_lock_that_a_failover_would_grant_twice)
{
    const lk_options options = {.lease_ms = LONG_MS, .replicas = 1, .replicas_ms = 1000};
    lk_client *one = set_patient_client("redis-token", set.url, &options);
    lk_client *two = set_patient_client("redis-token", set.url, NULL);
    lk_hold first, second;
    assert_int_equal(set_acquire(one, KEY, 0, &first), LK_OK); /* while there is a replica */
    assert_int_equal(lk_release(&first), LK_OK);
    assert_true(set_caught_up(set.master, set.replica));
    assert_true(set_cut_off(set.master, set.replica));
    assert_int_equal(set_acquire(one, KEY, 0, &first), LK_UNAVAILABLE);
    kill_master();
    assert_true(wait_until(set_is_switched, &set, SET_SWITCH_MS));
    assert_int_equal(set_acquire(two, KEY, 0, &second), LK_OK); /* the only holder */
    assert_int_equal(lk_release(&second), LK_OK);
    lk_close(two);
    lk_close(one);
}
