/* redis+cluster:// with a hanging master and no replica. The client pauses before it asks the node
 * again; locks on other nodes and releases are not affected. */
#include "cluster_rig.h"
#include "process.h"
#include "redis.h"
#include "redis_set.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { LEASE_MS = 8 * SET_TIMEOUT_MS, ON_THE_HUNG = 12, LOST_MS = 20000, ASKERS = 8 };
/* A command's timeout, and the pause after it: long enough for a busy machine to see both. */
enum { PAUSE_MS = 1500 };

static void hang(bool on)
{
    assert_int_equal(sandbox_signal(cluster.master[0], on ? SIGSTOP : SIGCONT), 0);
}

static int hang_no_more(void **state)
{
    (void)state;
    return sandbox_signal(cluster.master[0], SIGCONT);
}

/* A client that is connected to the node and has loaded its scripts. */
static lk_client *open_client(const lk_options *options)
{
    char key[32];
    lk_client *client = set_client("redis-token", cluster.url, options);
    assert_true(set_recovers(client, set_key_on(0, 0, key), LOST_MS, NULL));
    return client;
}

static void count_loss(void *losses, const lk_hold *hold, lk_loss cause)
{
    (void)hold;
    (void)cause;
    atomic_fetch_add((_Atomic int *)losses, 1);
}

static bool all_are_lost(void *losses)
{
    return atomic_load((_Atomic int *)losses) == ON_THE_HUNG;
}

GROUP_FIXTURE(open_cluster, close_cluster);
TEST_FIXTURE(NULL, hang_no_more);

TEST_THAT(watchdog_keeps_the_holds_on_the_other_nodes)
{
    static lk_hold hung[ON_THE_HUNG], sound; /* static: after a failed assertion they are renewed */
    static _Atomic int losses;
    char key[32];
    lk_client *client = open_client(&(lk_options){.lease_ms = LEASE_MS});
    for (int i = 0; i < ON_THE_HUNG; i++) {
        lk_request request = {
            .key = set_key_on(0, i, key), .on_lost = count_loss, .on_lost_arg = &losses};
        assert_int_equal(lk_acquire(client, &request, &hung[i]), LK_OK);
    }
    assert_int_equal(set_acquire(client, set_key_on(1, 0, key), 0, &sound), LK_OK);
    hang(true);
    assert_true(wait_until(all_are_lost, &losses, LOST_MS));
    assert_int_equal(lk_check(&sound, NULL), LK_OK);
    assert_int_equal(redis_do(cluster.master[1], "EXISTS %s", key), 1);
    hang(false);
    for (int i = 0; i < ON_THE_HUNG; i++)
        lk_release(&hung[i]);
    assert_int_equal(lk_release(&sound), LK_OK);
    lk_close(client);
}

/* One try for the nth lock on the node that hangs. Returns how long it took. */
static int64_t time_try(lk_client *client, int nth, lk_status *ret)
{
    char key[32];
    lk_hold hold;
    set_key_on(0, nth, key);
    int64_t start_ms = test_now_ms();
    *ret = set_acquire(client, key, 0, &hold);
    int64_t took_ms = test_now_ms() - start_ms;
    lk_release(&hold);
    return took_ms;
}

TEST_THAT(node_that_hangs_refuses_tries_at_once_but_no_release)
{
    static lk_hold hold;
    char key[32];
    lk_status status;
    lk_client *client = open_client(&(lk_options){.command_timeout_ms = PAUSE_MS});
    assert_int_equal(set_acquire(client, set_key_on(0, 0, key), 0, &hold), LK_OK);
    hang(true);
    assert_true(time_try(client, 1, &status) >= PAUSE_MS);
    assert_int_equal(status, LK_UNKNOWN);
    assert_true(time_try(client, 1, &status) < PAUSE_MS);
    assert_int_equal(status, LK_UNAVAILABLE);
    hang(false);
    assert_int_equal(lk_release(&hold), LK_OK); /* even during the client's pause */
    time_try(client, 2, &status);    /* of 1, the janitor may still be undoing the first try */
    assert_int_equal(status, LK_OK); /* the answer ended the pause */
    lk_close(client);
}

struct asker {
    pthread_t thread;
    lk_client *client;
    int nth;           /* its own lock: askers of one lock would wait for each other */
    _Atomic int *slow; /* tries of all askers */
};

static void *ask_on(void *arg)
{
    struct asker *asker = arg;
    for (int64_t start_ms = test_now_ms();
         atomic_load(asker->slow) == 0 && test_now_ms() - start_ms < LOST_MS;) {
        lk_status status;
        if (time_try(asker->client, asker->nth, &status) >= PAUSE_MS / 2)
            atomic_fetch_add(asker->slow, 1);
        lk_env_system()->sleep_us(NULL, 1000);
    }
    return NULL;
}

/* The askers go on until a try has been slow. If each asker probed the node itself, all would be
 * in a slow try then. Two rules prevent that, and each is enough: one caller asks the node
 * (redis_cluster.c), and a batch without an answer ends the queue behind it (redis_mux_combine.c).
 */
TEST_THAT(one_finds_out_for_all)
{
    struct asker askers[ASKERS];
    _Atomic int slow = 0;
    lk_status status;
    lk_client *client = open_client(&(lk_options){.command_timeout_ms = PAUSE_MS});
    hang(true);
    time_try(client, 1, &status);
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = (struct asker){.client = client, .nth = 1 + i, .slow = &slow};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_on, &askers[i]), 0);
    }
    for (int i = 0; i < ASKERS; i++)
        pthread_join(askers[i].thread, NULL);
    hang(false);
    assert_true(slow <= ASKERS / 2); /* 0: the janitor, which undoes the first try, asked instead */
    lk_close(client);
}
