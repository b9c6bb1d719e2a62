/* redlock on nodes that hang, are slow or lose answers. Waits are bounded, a grant that took too
 * long is refused, and no lock remains without a holder. */
#include "lock_hooks.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "redis.h"
#include "lateness.h"
#include "redlock_rig.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

enum {
    COMMAND_MS = 1000,
    NODE_MS = COMMAND_MS / 2, /* timeout of one node */
    SLEEP_MS = 300,
    PATIENT_MS = 40000, /* command timeout of clients that wait for nodes that sleep */
    PAIRS = 40
};

static const lk_options impatient = {.command_timeout_ms = COMMAND_MS};
static const lk_options patient = {.command_timeout_ms = PATIENT_MS, .lease_ms = 2 * PATIENT_MS};

/* Opens a client of five nodes, the first behind a proxy. */
static struct proxy *open_behind_proxy(lk_client **ret, const lk_options *options)
{
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    *ret = world_client_at("redlock", proxy_port(proxy), options);
    assert_non_null(*ret);
    redlock_warm_up(*ret);
    return proxy;
}

static bool first_is_free(void *unused)
{
    (void)unused;
    return redis_do(world_nodes[0], "EXISTS " REDLOCK_KEY) == 0;
}

/* -- lost answers ------------------------------------------------------------------------------ */

GROUP_FIXTURE(redlock_open, world_close);
TEST_FIXTURE(redlock_set_up, redlock_tear_down);

/* The first node sets the key but never answers again. The undo command on the same connection
 * removes the key. The other nodes hold the lock. */
TEST_THAT(key_set_by_a_node_that_falls_silent_is_undone)
{
    lk_client *client;
    struct proxy *proxy = open_behind_proxy(&client, &impatient);
    proxy_lose_answer(proxy, REDLOCK_KEY, 1, PROXY_SILENCE);
    lk_status status = redlock_try(client, &redlock_hold);
    bool undone = wait_until(first_is_free, NULL, REDLOCK_GRACE_MS);
    int standing = world_standing(REDLOCK_KEY), lost = proxy_lost(proxy);
    lk_status released = lk_release(&redlock_hold);
    lk_close(client);
    proxy_close(proxy);
    assert_int_equal(status, LK_OK);
    assert_int_equal(lost, 1);
    assert_true(undone);
    assert_int_equal(standing, 4);
    assert_int_equal(released, LK_OK);
    assert_int_equal(world_standing(REDLOCK_KEY), 0);
}

/* The node's answer is cut off. The release reaches the node on a new connection. */
TEST_THAT(release_goes_to_a_node_that_never_said_yes)
{
    lk_client *client;
    struct proxy *proxy = open_behind_proxy(&client, NULL);
    proxy_lose_answer(proxy, REDLOCK_KEY, 1, PROXY_CUT);
    lk_status status = redlock_try(client, &redlock_hold);
    int standing = world_standing(REDLOCK_KEY), lost = proxy_lost(proxy);
    lk_status released = lk_release(&redlock_hold);
    lk_close(client);
    proxy_close(proxy);
    assert_int_equal(status, LK_OK);
    assert_int_equal(lost, 1);
    assert_int_equal(standing, WORLD_NODES);
    assert_int_equal(released, LK_OK);
    assert_int_equal(world_standing(REDLOCK_KEY), 0);
}

/* A majority refuses and one positive answer is lost. Its key must not remain. */
TEST_THAT(lost_vote_of_a_refused_try_is_taken_back)
{
    lk_client *client;
    struct proxy *proxy = open_behind_proxy(&client, NULL);
    for (int i = 2; i < WORLD_NODES; i++)
        redis_do(world_nodes[i], "SET " REDLOCK_KEY " theirs PX 60000");
    proxy_lose_answer(proxy, REDLOCK_KEY, 1, PROXY_CUT);
    lk_status status = redlock_try(client, &redlock_hold);
    int standing = world_standing(REDLOCK_KEY), lost = proxy_lost(proxy);
    lk_close(client);
    proxy_close(proxy);
    assert_int_equal(status, LK_TIMEOUT);
    assert_int_equal(lost, 1);
    assert_int_equal(standing, 3);
}

/* There is one node. The command to it is lost, and the node then confirms that no key was set. */
TEST_THAT(try_that_no_node_ever_heard_of_is_not_in_doubt)
{
    lk_client *client;
    lk_stats stats;
    char endpoint[WORLD_ENDPOINTS_MAX];
    struct proxy *proxy = proxy_open(world_nodes[0]->port);
    assert_non_null(proxy);
    snprintf(endpoint, sizeof endpoint, "redis://127.0.0.1:%d", proxy_port(proxy));
    assert_int_equal(lk_open("redlock", endpoint, NULL, &client, NULL), LK_OK);
    world_warm(client);
    proxy_lose_request(proxy, REDLOCK_KEY, 1);
    lk_status status = redlock_try(client, &redlock_hold);
    int lost = proxy_lost(proxy), standing = world_standing(REDLOCK_KEY);
    lk_client_stats(client, &stats);
    lk_close(client);
    proxy_close(proxy);
    assert_int_equal(lost, 1);
    assert_int_equal(standing, 0);
    assert_int_equal(status, LK_UNAVAILABLE);
    assert_int_equal(stats.cleanups, 0); /* no second undo is needed */
}

/* -- stopped nodes ------------------------------------------------------------------------------
 */

static bool all_are_back(void *client)
{
    assert_int_equal(redlock_try(client, &redlock_hold), LK_OK);
    bool all = world_standing(REDLOCK_KEY) == WORLD_NODES;
    assert_int_equal(lk_release(&redlock_hold), LK_OK);
    return all;
}

/* The stopped nodes cost one node timeout in total, and are used again when they continue. */
TEST_THAT(stopped_minority_is_waited_for_once)
{
    lk_client *client = world_client("redlock", &impatient);
    redlock_warm_up(client);
    redlock_signal(0, 2, SIGSTOP);
    int64_t start_ms = test_now_ms();
    lk_status first = redlock_try(client, &redlock_hold);
    int64_t took_ms = test_now_ms() - start_ms;
    lk_status status = lk_release(&redlock_hold);
    int64_t pairs_ms = test_now_ms();
    for (int i = 0; i < PAIRS && status == LK_OK; i++) {
        status = redlock_try(client, &redlock_hold);
        if (status == LK_OK)
            status = lk_release(&redlock_hold);
    }
    pairs_ms = test_now_ms() - pairs_ms;
    redlock_signal(0, 2, SIGCONT);
    bool back = status == LK_OK && wait_until(all_are_back, client, REDLOCK_LONG_MS);
    lk_close(client);
    assert_int_equal(first, LK_OK);
    assert_true(took_ms >= NODE_MS && took_at_most(took_ms, NODE_MS + REDLOCK_GRACE_MS));
    assert_int_equal(status, LK_OK);
    assert_true(took_at_most(pairs_ms, PAIRS * NODE_MS / 2)); /* not a timeout each */
    assert_true(back);
    assert_int_equal(world->leftovers(), 0);
}

/* The command waits in the nodes' socket buffers. They execute it when they continue, and its undo
 * follows at once. */
TEST_THAT(command_that_a_stopped_majority_obeys_later_is_undone)
{
    lk_client *client = world_client("redlock", &impatient);
    redlock_warm_up(client);
    struct redis_watch *watch = redis_watch_open(world_nodes[4]);
    assert_non_null(watch);
    redlock_signal(2, 5, SIGSTOP);
    int64_t start_ms = test_now_ms();
    lk_status known = redlock_try(client, &redlock_hold);
    lk_status fresh =
        redlock_try(redlock_other, &redlock_second); /* not connected to them: sends nothing */
    int64_t took_ms = test_now_ms() - start_ms;
    int living = redis_do(world_nodes[0], "EXISTS " REDLOCK_KEY) == 1;
    redlock_signal(2, 5, SIGCONT);
    bool late = redis_watch_sees(watch, "\"NX\"", REDLOCK_LONG_MS);
    bool undone = redis_watch_sees(watch, "lua] \"del\"", REDLOCK_LONG_MS);
    redis_watch_close(watch);
    lk_close(client);
    assert_int_equal(known, LK_UNKNOWN);
    assert_int_equal(fresh, LK_UNAVAILABLE);
    assert_in_range(took_ms, NODE_MS, 4 * COMMAND_MS + REDLOCK_GRACE_MS);
    assert_int_equal(living, 0);
    assert_true(late);
    assert_true(undone);
    assert_true(world_frees(REDLOCK_KEY, REDLOCK_GRACE_MS));
}

/* -- time -------------------------------------------------------------------------------------- */

static bool has_slept(void *since_ms)
{
    return test_now_ms() - *(int64_t *)since_ms >= SLEEP_MS;
}

/* Acquires while a majority of nodes is stopped for SLEEP_MS after the others have executed the
 * command. The lease starts before that. */
static lk_status acquire_slowly(struct asker *asker)
{
    struct redis_watch *watch = redis_watch_open(world_nodes[4]);
    assert_non_null(watch);
    asker_start(asker);
    bool asked = redis_watch_sees(watch, "\"NX\"", REDLOCK_LONG_MS);
    redis_watch_close(watch);
    int64_t since_ms = test_now_ms();
    bool slept = wait_until(has_slept, &since_ms, REDLOCK_LONG_MS);
    bool early = asker_ended(asker);
    redlock_signal(0, 3, SIGCONT);
    lk_status status = asker_join(asker);
    assert_true(asked);
    assert_true(slept);
    assert_false(early);
    return status;
}

TEST_THAT(validity_shrinks_by_the_time_that_slow_nodes_take)
{
    int64_t left_ms = 0;
    lk_client *client = world_client("redlock", &patient);
    struct asker asker = {.client = client, .key = REDLOCK_KEY, .lease_ms = REDLOCK_LEASE_MS};
    redlock_warm_up(client);
    redlock_signal(0, 3, SIGSTOP);
    lk_status status = acquire_slowly(&asker);
    lk_check(&asker.hold, &left_ms);
    lk_release(&asker.hold);
    lk_close(client);
    assert_int_equal(status, LK_OK);
    assert_in_range(left_ms, 1, REDLOCK_LEASE_MS - REDLOCK_DRIFT_MS - SLEEP_MS + 1);
}

/* The nodes' leases are still valid, but the acquisition took longer than the lease. */
TEST_THAT(acquisition_slower_than_its_lease_is_refused_and_undone)
{
    lk_client *client = world_client("redlock", &patient);
    struct asker asker = {.client = client, .key = REDLOCK_KEY, .lease_ms = SLEEP_MS};
    struct redis_watch *watch = redis_watch_open(world_nodes[0]);
    assert_non_null(watch);
    redlock_warm_up(client);
    redlock_signal(0, 3, SIGSTOP);
    lk_status status = acquire_slowly(&asker);
    bool set = redis_watch_sees(watch, "\"NX\"", REDLOCK_LONG_MS) && /* of the warm-up */
               redis_watch_sees(watch, "\"NX\"", REDLOCK_LONG_MS);
    bool undone = redis_watch_sees(watch, "\"EVAL\"", REDLOCK_LONG_MS);
    lk_stats stats;
    lk_client_stats(client, &stats);
    redis_watch_close(watch);
    lk_release(&asker.hold);
    lk_close(client);
    assert_int_equal(status, LK_TIMEOUT);
    assert_true(set && undone);
    assert_true(stats.cleanups > 0);
    assert_int_equal(world_standing(REDLOCK_KEY), 0);
}

/* -- contention -------------------------------------------------------------------------------- */

enum { CONTENDERS = 32 };

struct contender {
    pthread_t thread;
    lk_client *client;
    volatile int64_t *value;
    _Atomic int64_t *done;
    int64_t times;
    lk_status failed;
};

/* Plain memory on purpose: only the lock orders the accesses of two clients. ThreadSanitizer cannot
 * see that. */
__attribute__((no_sanitize("thread"))) static void *contend(void *arg)
{
    struct contender *contender = arg;
    while (contender->times-- > 0 && contender->failed == LK_OK) {
        lk_hold hold;
        contender->failed =
            world_acquire(contender->client, REDLOCK_KEY, REDLOCK_LEASE_MS, REDLOCK_LONG_MS, &hold);
        if (contender->failed != LK_OK)
            break;
        int64_t read = *contender->value;
        lk_env_system()->sleep_us(NULL, 1);
        *contender->value = read + 1;
        contender->failed = lk_release(&hold);
        atomic_fetch_add(contender->done, 1);
    }
    return NULL;
}

struct progress {
    _Atomic int64_t *done;
    int64_t want;
};

static bool has_come_to(void *arg)
{
    struct progress *progress = arg;
    return atomic_load(progress->done) >= progress->want;
}

TEST_THAT(contenders_of_two_clients_exclude_each_other_while_nodes_fail)
{
    struct contender contenders[CONTENDERS];
    lk_client *clients[2] = {world_client("redlock", &impatient),
                             world_client("redlock", &impatient)};
    int64_t times = test_size(10, 500), all = CONTENDERS * times;
    volatile int64_t value = 0;
    _Atomic int64_t done = 0;
    for (int i = 0; i < CONTENDERS; i++) {
        contenders[i] = (struct contender){
            .client = clients[i % 2], .value = &value, .done = &done, .times = times};
        assert_int_equal(pthread_create(&contenders[i].thread, NULL, contend, &contenders[i]), 0);
    }
    struct progress third = {&done, all / 3}, two_thirds = {&done, all * 2 / 3};
    bool first = wait_until(has_come_to, &third, REDLOCK_LONG_MS);
    int stopped = sandbox_signal(world_nodes[0], SIGSTOP);
    bool second = wait_until(has_come_to, &two_thirds, REDLOCK_LONG_MS);
    sandbox_signal(world_nodes[1], SIGKILL);
    for (int i = 0; i < CONTENDERS; i++)
        pthread_join(contenders[i].thread, NULL);
    lk_close(clients[0]);
    lk_close(clients[1]);
    assert_true(first && second);
    assert_int_equal(stopped, 0);
    for (int i = 0; i < CONTENDERS; i++)
        assert_int_equal(contenders[i].failed, LK_OK);
    assert_int_equal(value, all);
}
