/* A subscription to a single node whose packets are lost silently. The client notices it, whatever
 * else goes on. For Sentinels and clusters see test_redis_sub.c. */
#include "redis_sub.h"
#include "lateness.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "redis_link.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <stdio.h>
#include <unistd.h>

#define KEY "lock:item:1"

enum {
    LEASE_MS = 30000,
    SILENCE_MS = 2000, /* a second to the next PING, a second for its answer */
    SLACK_MS = 3000,
    CROWD = 24,
    HOLD_US = 50000
};

/* Drops all packets on the existing subscriptions. Later subscriptions work. */
static void silence(struct proxy *proxy)
{
    proxy_mute(proxy, "no such command", true);
}

static struct proxy *open_proxy(void)
{
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    proxy_mute(proxy, "SUBSCRIBE", false); /* marks the connections */
    return proxy;
}

TEST_THAT(waiter_behind_a_silent_subscription_is_served)
{
    static const char *const guards[] = {"redis-reentrant", "redis-readwrite", "redis-semaphore",
                                         "redis-fair"};
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        lk_hold hold;
        static struct hooked hooked;
        struct proxy *proxy = open_proxy();
        lk_client *holder = world_client(guards[i], NULL);
        lk_client *client =
            world_client_at(guards[i], proxy_port(proxy), &(lk_options){.env = hook(&hooked)});
        struct asker waiter = {.client = client, .key = KEY, .wait_ms = 2 * LEASE_MS};
        assert_int_equal(world_acquire(holder, KEY, LEASE_MS, 0, &hold), LK_OK);
        asker_start(&waiter);
        assert_true(wait_until(refused_twice, &hooked, LEASE_MS));
        silence(proxy);
        int64_t start_ms = test_now_ms();
        assert_int_equal(lk_release(&hold), LK_OK);
        assert_int_equal(asker_end(&waiter), LK_OK);
        int64_t took_ms = test_now_ms() - start_ms;
        printf("%s: %lld ms after the release\n", guards[i], (long long)took_ms);
        assert_true(took_at_most(took_ms, SILENCE_MS + SLACK_MS));
        lk_close(holder);
        proxy_close(proxy);
    }
}

/* -- many waiters, each woken by its predecessor --------------------------------------------------
 */

struct crowd {
    lk_client *client;
    _Atomic int served;
};

static void *hold_once(void *arg)
{
    struct crowd *crowd = arg;
    lk_hold hold;
    if (world_acquire(crowd->client, KEY, LEASE_MS, 10 * LEASE_MS, &hold) != LK_OK)
        return NULL;
    usleep(HOLD_US);
    lk_release(&hold);
    atomic_fetch_add(&crowd->served, 1);
    return NULL;
}

static bool some_are_served(void *arg)
{
    return atomic_load(&((struct crowd *)arg)->served) >= CROWD / 4;
}

static bool all_are_served(void *arg)
{
    return atomic_load(&((struct crowd *)arg)->served) == CROWD;
}

TEST_THAT(contended_lock_heals)
{
    struct proxy *proxy = open_proxy();
    struct crowd crowd = {.client = world_client_at("redis-reentrant", proxy_port(proxy), NULL)};
    pthread_t threads[CROWD];
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_once, &crowd), 0);
    assert_true(wait_until(some_are_served, &crowd, LEASE_MS));
    silence(proxy);
    int64_t start_ms = test_now_ms(), served = atomic_load(&crowd.served);
    bool all = wait_until(all_are_served, &crowd, 2 * (SILENCE_MS + SLACK_MS));
    printf("%lld grants in %lld ms\n", (long long)(atomic_load(&crowd.served) - served),
           (long long)(test_now_ms() - start_ms));
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    assert_true(all);
    lk_close(crowd.client);
    proxy_close(proxy);
}

/* -- the subscriber ------------------------------------------------------------------------------
 */

static _Atomic int losses;

static void note_loss(void *arg, const char *channel, const char *payload)
{
    (void)arg;
    (void)payload;
    if (channel == NULL)
        atomic_fetch_add(&losses, 1);
}

/* Each new channel wakes the thread; no join waits long enough to give up the connection. */
static bool is_lost_though_others_come(void *arg)
{
    static int n;
    char channel[32];
    snprintf(channel, sizeof channel, "channel:%d", n++);
    if (lk_redis_sub_join(arg, channel, HOLD_US, NULL) == LK_OK)
        lk_redis_sub_leave(arg, channel);
    return atomic_load(&losses) > 0;
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(silence_is_noticed_however_many_subscribe)
{
    static struct link link;
    lk_redis_sub *sub;
    struct proxy *proxy = open_proxy();
    assert_true(link_open_port(&link, proxy_port(proxy)));
    link.options.command_timeout_ms = 20 * HOLD_US / 1000; /* far longer than a join waits */
    assert_int_equal(lk_redis_sub_open(&link.context, link.redis, note_loss, NULL, &sub, NULL),
                     LK_OK);
    assert_int_equal(lk_redis_sub_join(sub, "channel", LEASE_MS * INT64_C(1000), NULL), LK_OK);
    silence(proxy);
    int64_t start_ms = test_now_ms();
    assert_true(wait_until(is_lost_though_others_come, sub, SILENCE_MS + SLACK_MS));
    printf("noticed after %lld ms\n", (long long)(test_now_ms() - start_ms));
    lk_redis_sub_leave(sub, "channel");
    lk_redis_sub_close(sub);
    link_close(&link);
    proxy_close(proxy);
}
