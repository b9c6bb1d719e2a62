#include "lock_incidents.h"
#include "lateness.h"
#include "lock_claims.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <stdio.h>

enum {
    TIMEOUT_MS = 500,  /* of a command: one that is held on its way is given up then */
    RENEWED_MS = 3000, /* a lease that the watchdog renews, or a session */
    HOLDS = 8
};

static bool has(const lk_provider_info *guard, uint32_t bit)
{
    return (guard->caps & bit) != 0;
}

/* A guard whose client finds its lock by token alone, over any connection. */
static bool is_owned_by_token(const lk_provider_info *guard)
{
    return world->port() != 0 && has(guard, LK_CAP_OWNER) && !has(guard, LK_CAP_SESSION);
}

/* A client that reaches its server through a proxy, and another that does not need it. */
struct pair {
    struct proxy *proxy;
    lk_client *client, *other;
    lk_hold hold, next; /* of client; of other */
};

static void pair_open(struct pair *pair, const lk_provider_info *guard)
{
    lk_options options = {.lease_ms = RENEWED_MS, .command_timeout_ms = TIMEOUT_MS};
    *pair = (struct pair){.proxy = proxy_open(world->port())};
    assert_non_null(pair->proxy);
    pair->client = world_client_at(guard->name, proxy_port(pair->proxy), &options);
    pair->other = world_client(guard->name, &world_patient);
}

static void pair_close(struct pair *pair)
{
    lk_close(pair->client);
    lk_close(pair->other);
    proxy_close(pair->proxy);
}

static void client_acquires(struct pair *pair, int64_t lease_ms)
{
    int64_t until_ms = test_now_ms() + CLAIM_LONG_MS;
    lk_status status;
    do /* a busy machine may take longer than TIMEOUT_MS */
        status = world_acquire(pair->client, CLAIM_KEY, lease_ms, CLAIM_LONG_MS, &pair->hold);
    while (status != LK_OK && test_now_ms() < until_ms);
    assert_int_equal(status, LK_OK);
}

static void other_acquires(struct pair *pair)
{
    lk_status status =
        world_acquire(pair->other, CLAIM_KEY, CLAIM_HELD_MS, CLAIM_LONG_MS, &pair->next);
    assert_int_equal(status, LK_OK);
}

/* The other's lock is what it acquired, until it releases it. */
static void other_is_untouched(struct pair *pair, const lk_provider_info *guard)
{
    assert_int_equal(lk_confirm(&pair->next), LK_OK);
    if (has(guard, LK_CAP_LEASE))
        assert_true(world->left_ms(CLAIM_KEY) > RENEWED_MS);
    assert_int_equal(lk_release(&pair->next), LK_OK);
}

static bool is_held(void *proxy)
{
    return proxy_held(proxy) > 0;
}

static bool is_none_held(void *proxy)
{
    return proxy_held(proxy) == 0;
}

static void held_command_arrives(struct pair *pair)
{
    proxy_let_go(pair->proxy);
    assert_true(wait_until(is_none_held, pair->proxy, CLAIM_LONG_MS));
    world->exists(CLAIM_KEY); /* a round trip: the late command has been executed */
}

/* -- commands that arrive late ------------------------------------------------------------------
 */

/* A renewal is on its way while its hold is released. It arrives when the lock is free, or when
 * another client has it. */
bool incident_late_renewal(const lk_provider_info *guard)
{
    if (!is_owned_by_token(guard) || !has(guard, LK_CAP_RENEW))
        return false;
    for (int taken = 0; taken <= 1; taken++) {
        struct pair pair;
        pair_open(&pair, guard);
        client_acquires(&pair, 0);
        proxy_hold(pair.proxy, CLAIM_KEY, 1);
        assert_true(wait_until(is_held, pair.proxy, RENEWED_MS));
        lk_release(&pair.hold);
        assert_true(world_frees(CLAIM_KEY, CLAIM_LONG_MS));
        if (taken)
            other_acquires(&pair);
        held_command_arrives(&pair);
        if (!taken)
            other_acquires(&pair); /* at once: nothing stands in its way */
        other_is_untouched(&pair, guard);
        pair_close(&pair);
    }
    return true;
}

/* A release is given up and repeated over another connection. Then it arrives, too. */
bool incident_late_release(const lk_provider_info *guard)
{
    struct pair pair;
    if (!is_owned_by_token(guard))
        return false;
    pair_open(&pair, guard);
    client_acquires(&pair, CLAIM_HELD_MS);
    proxy_hold(pair.proxy, CLAIM_KEY, 1);
    lk_status status = lk_release(&pair.hold);
    bool heard_by_others = world == &family_redlock; /* four nodes of five */
    assert_true(status == LK_UNKNOWN || status == LK_UNAVAILABLE || heard_by_others);
    assert_true(wait_until(is_held, pair.proxy, CLAIM_LONG_MS));
    other_acquires(&pair);
    held_command_arrives(&pair);
    other_is_untouched(&pair, guard);
    pair_close(&pair);
    return true;
}

static bool is_lost_on_its_way(void *proxy)
{
    return proxy_lost(proxy) == 1;
}

/* A release never arrives. The client still knows its token, and releases again. */
bool incident_lost_release(const lk_provider_info *guard)
{
    struct pair pair;
    if (!is_owned_by_token(guard))
        return false;
    pair_open(&pair, guard);
    client_acquires(&pair, CLAIM_HELD_MS);
    proxy_lose_request(pair.proxy, CLAIM_KEY, 1);
    lk_status status = lk_release(&pair.hold);
    assert_true(wait_until(is_lost_on_its_way, pair.proxy, CLAIM_LONG_MS));
    assert_true(status == LK_OK || status == LK_UNKNOWN || status == LK_UNAVAILABLE);
    other_acquires(&pair); /* long before the lease ends */
    assert_int_equal(lk_release(&pair.hold), LK_LOST);
    other_is_untouched(&pair, guard);
    pair_close(&pair);
    return true;
}

/* -- tries and holds that are over ----------------------------------------------------------------
 */

static bool is_alone(void *leftovers)
{
    return world->leftovers() == *(int64_t *)leftovers;
}

/* Tries that are refused leave nothing behind, and the next one on the same client is granted. */
bool incident_refused_try(const lk_provider_info *guard)
{
    static const int64_t waits_ms[] = {0, 1, 5, 20};
    lk_hold hold, second;
    lk_client *client = world_client(guard->name, &world_patient);
    lk_client *other = world_client(guard->name, &world_patient);
    assert_int_equal(world_acquire(client, CLAIM_KEY, CLAIM_HELD_MS, 0, &hold), LK_OK);
    int64_t alone = world->leftovers();
    for (size_t i = 0; i < sizeof waits_ms / sizeof waits_ms[0]; i++) {
        lk_status status = world_acquire(other, CLAIM_KEY, CLAIM_HELD_MS, waits_ms[i], &second);
        assert_int_equal(status, LK_TIMEOUT);
        assert_true(comes_within(is_alone, &alone, CLAIM_GRACE_MS));
    }
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(world_acquire(other, CLAIM_KEY, CLAIM_HELD_MS, 0, &second), LK_OK);
    assert_int_equal(lk_release(&second), LK_OK);
    assert_int_equal(world->leftovers(), 0);
    lk_close(client);
    lk_close(other);
    return true;
}

/* A hold that has ended is neither extended nor released, whether the lock is free or another's. */
bool incident_expired_hold(const lk_provider_info *guard)
{
    if (!has(guard, LK_CAP_OWNER) || !has(guard, LK_CAP_LEASE))
        return false;
    lk_client *client = world_client(guard->name, &world_patient);
    lk_client *other = world_client(guard->name, &world_patient);
    for (int taken = 0; taken <= 1; taken++) {
        lk_hold hold, next;
        assert_int_equal(world_acquire(client, CLAIM_KEY, CLAIM_HELD_MS, 0, &hold), LK_OK);
        assert_true(world->remove(CLAIM_KEY));
        if (taken)
            assert_int_equal(world_acquire(other, CLAIM_KEY, CLAIM_HELD_MS, 0, &next), LK_OK);
        if (has(guard, LK_CAP_RENEW))
            assert_int_equal(lk_extend(&hold, CLAIM_HELD_MS), LK_LOST);
        assert_int_equal(lk_release(&hold), LK_LOST);
        assert_int_equal(world->exists(CLAIM_KEY), taken);
        if (taken)
            assert_int_equal(lk_release(&next), LK_OK);
    }
    lk_close(client);
    lk_close(other);
    return true;
}

/* -- which hold is meant --------------------------------------------------------------------------
 */

/* One client has many locks. Each release frees its own, in whatever order. */
bool incident_many_holds(const lk_provider_info *guard)
{
    lk_hold holds[HOLDS];
    char keys[HOLDS][32];
    lk_client *client = world_client(guard->name, &world_patient);
    for (int i = 0; i < HOLDS; i++) {
        snprintf(keys[i], sizeof keys[i], "lock:item:%d", i + 1);
        assert_int_equal(world_acquire(client, keys[i], CLAIM_HELD_MS, 0, &holds[i]), LK_OK);
    }
    for (int n = 0; n < HOLDS; n++) {
        int released = (n * 5 + 3) % HOLDS; /* 5 and 8 have no common factor: each once */
        assert_int_equal(lk_release(&holds[released]), LK_OK);
        for (int later = n; later < HOLDS; later++) {
            int i = (later * 5 + 3) % HOLDS;
            assert_int_equal(world->exists(keys[i]), later > n);
        }
    }
    assert_int_equal(world->leftovers(), 0);
    lk_close(client);
    return true;
}

static bool is_lost(void *hold)
{
    return lk_confirm(hold) == LK_LOST;
}

/* A client is cut off until its lease or session has ended and another client has the lock. Then
 * it is heard again: the lock is not its own. */
bool incident_cut_off(const lk_provider_info *guard)
{
    struct pair pair;
    if (world->port() == 0 || world == &family_redlock || !has(guard, LK_CAP_OWNER))
        return false; /* redlock: one node of five is no loss */
    pair_open(&pair, guard);
    client_acquires(&pair, 0);
    bool ends =
        pair.hold.lease_ms > 0; /* else the lock stands while the server sees a connection */
    if (ends) {
        proxy_drop(pair.proxy, PROXY_TO_SERVER, true);
        proxy_drop(pair.proxy, PROXY_TO_CLIENT, true);
        other_acquires(&pair);
        proxy_drop(pair.proxy, PROXY_TO_SERVER, false);
        proxy_drop(pair.proxy, PROXY_TO_CLIENT, false);
        lk_hold again;
        assert_true(wait_until(is_lost, &pair.hold, CLAIM_LONG_MS));
        assert_int_not_equal(world_acquire(pair.client, CLAIM_KEY, 0, 0, &again), LK_OK);
        assert_int_equal(lk_release(&pair.hold), LK_LOST);
        other_is_untouched(&pair, guard);
        client_acquires(&pair, 0);
    }
    assert_int_equal(lk_release(&pair.hold), LK_OK);
    pair_close(&pair);
    return ends;
}
