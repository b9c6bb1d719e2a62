/* redis+cluster:// while a node dies or hangs: locks on other nodes work, its own work again after
 * the failover. */
#include "cluster_rig.h"
#include "lateness.h"
#include "lock_hooks.h"
#include "process.h"
#include "redis.h"
#include "redis_set.h"
#include "tests.h"

#include <signal.h>

enum { LONG_MS = 60000, RECOVERED_MS = 5000, SOON_MS = 4000, OTHERS = 20 };

/* Each test changes the masters. */
static void others_go_on_and_its_keys_come_back(int signal)
{
    char key[32];
    lk_client *client = set_client("redis-token", cluster.url, NULL);
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        assert_true(set_recovers(client, set_key_on(i, 0, key), 0, NULL));
    assert_true(set_caught_up(cluster.master[0], cluster.replica[0]));
    assert_true(sandbox_signal(cluster.master[0], signal) >= 0);
    for (int i = 0; i < OTHERS; i++) { /* without a delay, each time */
        lk_hold hold;
        lk_status status = set_acquire(client, set_key_on(0, i, key), 0, &hold);
        if (status == LK_OK) /* the replica has taken over */
            assert_int_equal(lk_release(&hold), LK_OK);
        assert_true(set_recovers(client, set_key_on(1, i, key), 0, NULL));
        assert_true(set_recovers(client, set_key_on(2, i, key), 0, NULL));
    }
    assert_true(wait_until(set_is_taken_over, &(struct set_takeover){&cluster, 0}, SET_SWITCH_MS));
    assert_true(set_recovers(client, set_key_on(0, 0, key), RECOVERED_MS, NULL));
    lk_hold hold;
    assert_int_equal(set_acquire(client, key, 0, &hold), LK_OK);
    assert_true(hold.fence >= 3); /* the replica had its counter */
    assert_int_equal(redis_do(cluster.replica[0], "EXISTS %s", key), 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

TEST_FIXTURE(open_replicated_cluster, close_cluster);

TEST_THAT(killed_node_holds_up_its_own_keys_only_until_it_is_replaced)
{
    others_go_on_and_its_keys_come_back(SIGKILL);
}

TEST_THAT(node_that_hangs_holds_up_its_own_keys_only_until_it_is_replaced)
{
    others_go_on_and_its_keys_come_back(SIGSTOP);
    assert_int_equal(sandbox_signal(cluster.master[0], SIGCONT), 0);
}

/* A client can listen at any node for messages: here the first, which does not hold the lock. */
TEST_THAT(waiter_hears_of_its_lock_though_the_node_it_listens_to_dies)
{
    static struct hooked hooked; /* static: a failed assertion leaves the waiter running */
    static struct asker waiter;
    char key[32];
    lk_client *holder = set_patient_client("redis-reentrant", cluster.url, NULL);
    lk_client *client =
        set_patient_client("redis-reentrant", cluster.url, &(lk_options){.env = hook(&hooked)});
    lk_hold hold;
    assert_int_equal(set_acquire(holder, set_key_on(1, 0, key), 0, &hold), LK_OK);
    waiter = (struct asker){.client = client, .key = key, .wait_ms = LONG_MS};
    asker_start(&waiter);
    assert_true(wait_until(refused_twice, &hooked, SET_SWITCH_MS));
    assert_true(wait_until(set_is_heard, cluster.master[0], SET_SWITCH_MS));
    assert_true(sandbox_signal(cluster.master[0], SIGKILL) >= 0);
    assert_true(wait_until(set_is_heard, cluster.master[1], SET_SWITCH_MS));
    int64_t start_ms = test_now_ms();
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(asker_join(&waiter), LK_OK);
    assert_true(ended_within(start_ms, SOON_MS)); /* well before the lease ends */
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
    lk_close(client);
    lk_close(holder);
}

TEST_THAT(failover_grants_a_lock_twice_unless_a_replica_must_have_it)
{
    char key[32], copied[32];
    const lk_options options = {.replicas = 1, .replicas_ms = 1000};
    lk_client *careless = set_patient_client("redis-token", cluster.url, NULL);
    lk_client *careful = set_patient_client("redis-token", cluster.url, &options);
    lk_client *other = set_patient_client("redis-token", cluster.url, NULL);
    lk_hold first, second;
    set_key_on(0, 0, key);
    set_key_on(0, 1, copied);
    assert_true(set_recovers(careful, copied, 0, NULL)); /* while there is a replica */
    assert_true(set_cut_off(cluster.master[0], cluster.replica[0]));
    assert_int_equal(set_acquire(careful, copied, 0, &first), LK_UNAVAILABLE);
    assert_int_equal(set_acquire(careless, key, 0, &first), LK_OK);
    assert_true(sandbox_signal(cluster.master[0], SIGKILL) >= 0);
    assert_true(wait_until(set_is_taken_over, &(struct set_takeover){&cluster, 0}, SET_SWITCH_MS));
    assert_true(set_recovers(other, copied, RECOVERED_MS, NULL));
    assert_int_equal(set_acquire(other, key, 0, &second), LK_OK);
    assert_int_equal(lk_check(&first, NULL), LK_OK); /* two holders at once */
    assert_int_equal(lk_release(&second), LK_OK);
    assert_int_equal(lk_release(&first), LK_LOST);
    lk_close(other);
    lk_close(careful);
    lk_close(careless);
}
