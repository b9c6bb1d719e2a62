/* Releases that a client could not do at once: the janitor repeats them as soon as Redis answers.
 * No client has to wait for the lease of a lock without a holder. */
#include "lock_hooks.h"
#include "lateness.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define KEY   "lock:item:1"
#define QUEUE "{lock:item:1}:queue"

enum {
    LEASE_MS = 30000,
    SOON_MS = 3000,
    PAUSE_MS = 4500,
    WAIT_MS = 600,
    QUICK_MS = 250,
    COMMAND_MS = 1000
};

static const char *const guards[] = {"redis-token", "redis-reentrant", "redis-fair",
                                     "redis-readwrite", "redis-semaphore"};
enum { GUARDS = sizeof guards / sizeof guards[0] };

/* The client's reports on pending releases. */
struct told {
    _Atomic int n[3]; /* by lk_pending */
};
static struct told told;

static void note_pending(void *arg, const char *key, lk_pending what, int64_t pending_ms)
{
    (void)arg;
    if (strcmp(key, KEY) == 0 && pending_ms >= 0)
        atomic_fetch_add(&told.n[what], 1);
}

static bool is_settled(void *arg)
{
    (void)arg;
    return atomic_load(&told.n[LK_PENDING_DONE]) == 1;
}

/* The client has reported one pending release and its completion, and nothing else. */
static void assert_settled(const lk_client *client)
{
    assert_true(wait_until(is_settled, NULL, SOON_MS));
    assert_int_equal(told.n[LK_PENDING_STARTED], 1);
    assert_int_equal(told.n[LK_PENDING_GIVEN_UP], 0);
    assert_true(world_stats(client).pending_done == world_stats(client).pending);
    told = (struct told){0};
}

static const lk_options noting = {.command_timeout_ms = COMMAND_MS, .on_pending = note_pending};
/* Its waiter ends before the server takes it for dead. */
static const lk_options quick = {.command_timeout_ms = QUICK_MS, .on_pending = note_pending};

static bool is_served(void *client)
{
    lk_hold hold;
    return world_acquire(client, "lock:warm", LEASE_MS, 0, &hold) == LK_OK &&
           lk_release(&hold) == LK_OK;
}

/* Waits until the client is connected and has loaded its scripts. Returns client. */
static lk_client *warm(lk_client *client)
{
    assert_true(wait_until(is_served, client, LEASE_MS));
    told = (struct told){0};
    return client;
}

/* How long another client waits for the key, even if Redis is away at first. */
static int64_t wait_of_another(const char *guard)
{
    lk_hold hold;
    lk_client *other = world_client(guard, NULL);
    int64_t start_ms = test_now_ms(), took_ms;
    lk_status status;
    do {
        status = world_acquire(other, KEY, LEASE_MS, 2 * LEASE_MS, &hold);
        took_ms = test_now_ms() - start_ms;
    } while (status != LK_OK && took_ms < 2 * LEASE_MS);
    if (status == LK_OK)
        lk_release(&hold);
    lk_close(other);
    assert_int_equal(status, LK_OK);
    return took_ms;
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(release_that_redis_answers_too_late_is_settled_when_it_answers)
{
    for (int i = 0; i < GUARDS; i++) {
        lk_hold hold;
        lk_client *client = warm(world_client(guards[i], &noting));
        assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
        assert_int_equal(world_ask("CLIENT PAUSE %d ALL", PAUSE_MS), 1);
        assert_int_equal(lk_release(&hold), LK_UNKNOWN);
        int64_t took_ms = wait_of_another(guards[i]);
        printf("%s: the next holder waited %lld ms\n", guards[i], (long long)took_ms);
        assert_true(took_at_most(took_ms, PAUSE_MS + SOON_MS));
        assert_settled(client);
        lk_close(client);
    }
}

/* A bare DEL is not repeated: another client may hold the key by then. A lock without a lease stays
 * until an operator frees it. */
TEST_THAT(bare_release_that_did_not_arrive_is_left)
{
    static const struct {
        const char *guard;
        bool forever;
    } bare[] = {{"redis-set", false}, {"redis-setnx-expire", false}, {"redis-setnx", true}};
    for (size_t i = 0; i < sizeof bare / sizeof bare[0]; i++) {
        lk_hold hold;
        struct proxy *proxy = proxy_open(world_redis->port);
        assert_non_null(proxy);
        lk_client *client = warm(world_client_at(bare[i].guard, proxy_port(proxy), &noting));
        assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_OK);
        proxy_lose_request(proxy, KEY, 1);
        lk_status status = lk_release(&hold);
        struct told heard = told;
        int64_t left_ms = world_ask("PTTL " KEY);
        lk_lock_info info;
        assert_int_equal(lk_inspect(client, KEY, &info), LK_OK);
        assert_int_equal(lk_force_release(client, KEY), LK_OK);
        lk_close(client);
        proxy_close(proxy);
        assert_int_equal(status, LK_UNKNOWN);
        assert_int_equal(heard.n[LK_PENDING_GIVEN_UP], 1);
        assert_int_equal(heard.n[LK_PENDING_STARTED], 0);
        assert_int_equal(info.holders, 1);
        if (bare[i].forever)
            assert_int_equal(left_ms, -1); /* no lease */
        else
            assert_in_range(left_ms, 1, LEASE_MS);
    }
}

static atomic_bool armed;

static void deafen(void *proxy)
{
    if (atomic_exchange(&armed, false))
        proxy_drop(proxy, PROXY_TO_SERVER, true);
}

/* The answer to the try is lost, and the clean-up does not arrive. */
TEST_THAT(attempt_whose_clean_up_is_lost_too_leaves_no_grant)
{
    for (int i = 0; i < GUARDS; i++) {
        lk_hold hold;
        struct proxy *proxy = proxy_open(world_redis->port);
        assert_non_null(proxy);
        static struct hooked hooked;
        lk_options options = quick;
        options.env = hook(&hooked);
        hooked.point = LK_POINT_CLEANUP;
        hooked.call = deafen;
        hooked.arg = proxy;
        lk_client *client = warm(world_client_at(guards[i], proxy_port(proxy), &options));
        proxy_drop(proxy, PROXY_TO_CLIENT, true); /* commands are executed, answers are lost */
        atomic_store(&armed, true);
        assert_int_equal(world_acquire(client, KEY, LEASE_MS, 0, &hold), LK_UNKNOWN);
        assert_int_equal(world_ask("EXISTS " KEY), 1);
        proxy_drop(proxy, PROXY_TO_CLIENT, false);
        proxy_drop(proxy, PROXY_TO_SERVER, false);
        assert_true(wait_of_another(guards[i]) < SOON_MS);
        assert_settled(client);
        lk_close(client);
        proxy_close(proxy);
    }
}

/* -- redis-fair: granted to a waiter that is gone -------------------------------------------------
 */

static lk_client *holder, *gone;
static lk_hold first;
static struct proxy *line;
static struct asker waiter;

/* A client holds the lock; a waiter behind a proxy is in the queue. */
static void queue_up(void)
{
    line = proxy_open(world_redis->port);
    assert_non_null(line);
    holder = world_client("redis-fair", NULL);
    gone = warm(world_client_at("redis-fair", proxy_port(line), &quick));
    assert_int_equal(world_acquire(holder, KEY, LEASE_MS, 0, &first), LK_OK);
    waiter = (struct asker){.client = gone, .key = KEY, .lease_ms = LEASE_MS, .wait_ms = WAIT_MS};
    asker_start(&waiter);
    assert_true(world_becomes(1, SOON_MS, "LLEN " QUEUE));
}

static void part(void)
{
    assert_settled(gone);
    lk_close(gone);
    lk_close(holder);
    proxy_close(line);
}

/* The waiter times out, but Redis does not receive its leaving the queue. */
TEST_THAT(grant_to_a_waiter_that_is_gone_is_released_at_once)
{
    char standing[LK_TOKEN_MAX + 1];
    queue_up();
    proxy_drop(line, PROXY_TO_SERVER, true);
    assert_int_not_equal(asker_join(&waiter), LK_OK);
    assert_int_equal(lk_release(&first), LK_OK);
    world_ask_text(standing, sizeof standing, "GET " KEY);
    assert_string_equal(standing, waiter.hold.token);         /* it was seen recently ... */
    assert_true(world_ask("PTTL " KEY) > LEASE_MS - SOON_MS); /* ... and its client listens */
    proxy_drop(line, PROXY_TO_SERVER, false);
    int64_t took_ms = wait_of_another("redis-fair");
    printf("redis-fair: the next holder waited %lld ms\n", (long long)took_ms);
    assert_true(took_at_most(took_ms, SOON_MS));
    part();
}

/* The waiter times out, and the command to leave the queue is lost. */
TEST_THAT(waiter_whose_leave_is_lost_does_not_stay_in_the_queue)
{
    queue_up();
    proxy_lose_request(line, "\r\n$1\r\n1\r\n", 1); /* ARGV of the release: it may queue */
    assert_int_equal(asker_join(&waiter), LK_TIMEOUT);
    assert_int_equal(proxy_lost(line), 1);
    assert_true(world_becomes(0, SOON_MS, "LLEN " QUEUE));
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(world_ask("EXISTS " KEY), 0);
    part();
}
