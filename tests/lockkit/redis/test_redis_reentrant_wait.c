/* redis-reentrant: waiting for a message, also one that does not come. */
#include "holder.h"
#include "lateness.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#define GUARD   "redis-reentrant"
#define KEY     "lock:item:1"
#define CHANNEL "redisson_lock__channel:{lock:item:1}"

enum { LONG_MS = 20000, SOON_MS = 2000, WAITERS = 16 };

static int empty(void **state)
{
    (void)state;
    world_ask("FLUSHALL");
    return 0;
}

struct other_release {
    lk_hold hold;
    lk_status status;
};

static void release_other(void *arg)
{
    struct other_release *other = arg;
    other->status = lk_release(&other->hold);
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(empty, NULL);

TEST_THAT(release_between_the_failed_try_and_subscribe_is_not_missed)
{
    struct hooked hooked;
    struct other_release other;
    lk_client *holder = world_client(GUARD, NULL);
    lk_client *client = world_client(GUARD, &(lk_options){.env = hook(&hooked)});
    lk_hold hold;
    assert_int_equal(world_acquire(holder, KEY, LONG_MS, 0, &other.hold), LK_OK);
    hooked.point = LK_POINT_SUBSCRIBE;
    hooked.call = release_other;
    hooked.arg = &other;
    int64_t start_ms = test_now_ms();
    assert_int_equal(world_acquire(client, KEY, 0, LONG_MS, &hold), LK_OK);
    assert_true(ended_within(start_ms, SOON_MS)); /* well before the lease ends */
    assert_int_equal(other.status, LK_OK);
    assert_int_equal(hold.attempts, 2);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
    lk_close(holder);
}

/* Expiry publishes nothing. */
TEST_THAT(waiter_of_a_dead_holder_wakes_with_the_end_of_its_lease)
{
    struct holder holder;
    struct holder_plan plan = {
        .guard = GUARD, .endpoints = world_redis->url, .key = KEY, .lease_ms = 400};
    assert_true(holder_start(&holder, &plan));
    assert_true(holder_says(&holder, "held"));
    holder_kill(&holder);
    lk_client *client = world_client(GUARD, NULL);
    lk_hold hold;
    int64_t start_ms = test_now_ms();
    assert_int_equal(world_acquire(client, KEY, 0, LONG_MS, &hold), LK_OK);
    assert_true(ended_within(start_ms, 400 + SOON_MS));
    assert_true(hold.attempts <= 5);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

static struct hooked crowd;
static lk_client *crowd_client;
static int crowd_refusals;

static bool crowd_refused(void *arg)
{
    (void)arg;
    return atomic_load(&crowd.refusals) >= crowd_refusals;
}

static bool granted_another(void *grants)
{
    lk_stats stats;
    lk_client_stats(crowd_client, &stats);
    return stats.grants > *(uint64_t *)grants;
}

/* Sixteen waiters sleep; each release leads to one try. */
TEST_THAT(one_release_wakes_one_waiter_of_a_client)
{
    struct asker waiters[WAITERS];
    bool taken[WAITERS] = {false};
    lk_client *holder = world_client(GUARD, NULL);
    crowd_client = world_client(GUARD, &(lk_options){.env = hook(&crowd)});
    lk_hold hold;
    assert_int_equal(world_acquire(holder, KEY, 0, 0, &hold), LK_OK);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct asker){.client = crowd_client, .key = KEY, .wait_ms = LONG_MS};
        asker_start(&waiters[i]);
        crowd_refusals = i + 2; /* only the first tries again, after SUBSCRIBE */
        assert_true(wait_until(crowd_refused, NULL, LONG_MS));
    }
    lk_hold *last = &hold;
    for (int i = 0; i < WAITERS; i++) {
        lk_stats before, after;
        lk_client_stats(crowd_client, &before);
        assert_int_equal(lk_release(last), LK_OK);
        assert_true(wait_until(granted_another, &before.grants, LONG_MS));
        lk_client_stats(crowd_client, &after);
        assert_int_equal(after.attempts - before.attempts, 1);
        struct asker *got = NULL;
        while (got == NULL)
            for (int j = 0; j < WAITERS; j++)
                if (!taken[j] && asker_ended(&waiters[j])) {
                    taken[j] = true;
                    got = &waiters[j];
                }
        last = &got->hold;
    }
    assert_int_equal(lk_release(last), LK_OK);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(asker_join(&waiters[i]), LK_OK);
    lk_close(crowd_client);
    lk_close(holder);
}

/* A waiting waiter, and a holder on another client. */
struct pair {
    struct hooked hooked;
    lk_client *holder, *client;
    lk_hold hold;
    struct asker waiter;
};

static void pair_open(struct pair *pair, int waiter_port, int64_t lease_ms)
{
    pair->holder = world_client(GUARD, NULL);
    pair->client = world_client_at(GUARD, waiter_port, &(lk_options){.env = hook(&pair->hooked)});
    pair->waiter = (struct asker){.client = pair->client, .key = KEY, .wait_ms = LONG_MS};
    assert_int_equal(world_acquire(pair->holder, KEY, lease_ms, 0, &pair->hold), LK_OK);
    asker_start(&pair->waiter);
    assert_true(wait_until(refused_twice, &pair->hooked, LONG_MS));
}

/* Releases the lock; the waiter must get it within bound_ms. */
static void pair_close(struct pair *pair, int64_t bound_ms)
{
    int64_t start_ms = test_now_ms();
    assert_int_equal(lk_release(&pair->hold), LK_OK);
    assert_int_equal(asker_join(&pair->waiter), LK_OK);
    assert_true(ended_within(start_ms, bound_ms));
    assert_int_equal(lk_release(&pair->waiter.hold), LK_OK);
    lk_close(pair->client);
    lk_close(pair->holder);
}

TEST_THAT(broken_subscription_is_remade)
{
    struct pair pair;
    pair_open(&pair, world_redis->port, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(world_becomes(1, LONG_MS, "PUBLISH " CHANNEL " 0")); /* it listens */
        assert_int_equal(world_ask("CLIENT KILL TYPE pubsub"), 1);
    }
    pair_close(&pair, SOON_MS);
}

/* The lock comes free without a message. The broken connection wakes the waiter. */
TEST_THAT(waiter_looks_for_itself_when_its_subscription_breaks)
{
    struct pair pair;
    pair_open(&pair, world_redis->port, LONG_MS);
    assert_true(world_becomes(1, LONG_MS, "PUBLISH " CHANNEL " 0"));
    assert_int_equal(world_ask("DEL " KEY), 1);
    int64_t start_ms = test_now_ms();
    assert_int_equal(world_ask("CLIENT KILL TYPE pubsub"), 1);
    assert_int_equal(asker_join(&pair.waiter), LK_OK);
    assert_true(ended_within(start_ms, SOON_MS));
    assert_int_equal(lk_release(&pair.waiter.hold), LK_OK);
    assert_int_equal(lk_release(&pair.hold), LK_LOST);
    lk_close(pair.client);
    lk_close(pair.holder);
}

/* The connection stays open, but the message does not arrive. */
TEST_THAT(lost_message_costs_at_most_the_holders_lease)
{
    enum { LEASE_MS = 1500 };
    struct pair pair;
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    proxy_mute(proxy, "SUBSCRIBE", false); /* marks the connection */
    pair_open(&pair, proxy_port(proxy), LEASE_MS);
    proxy_mute(proxy, "SUBSCRIBE", true);
    pair_close(&pair, LEASE_MS + SOON_MS);
    assert_true(proxy_muted(proxy) > 0);
    proxy_close(proxy);
}

TEST_THAT(waiter_who_may_not_subscribe_polls)
{
    struct pair pair;
    world_ask("ACL SETUSER default -subscribe");
    pair_open(&pair, world_redis->port, 0);
    pair_close(&pair, SOON_MS);
    world_ask("ACL SETUSER default +subscribe");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    return tests_run();
}
