#include "lock_claims.h"
#include "lateness.h"
#include "lock_ends.h"
#include "lock_hooks.h"
#include "lock_series.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

enum {
    CONTEST_MS = 200,
    FENCES_FAST = 4000,
    FENCES_SLOW = 400,
    POLLS = 20,
    AHEAD_US = 1000000000 /* clocks may differ by a quarter of an hour */
};

static bool has(const lk_provider_info *guard, uint32_t bit)
{
    return (guard->caps & bit) != 0;
}

/* -- the claims ---------------------------------------------------------------------------------
 */

static bool exclusive(const lk_provider_info *guard)
{
    struct contest contest;
    contest_start(&contest, guard, CLAIM_KEY, CONTEST_MS);
    return contest_join(&contest);
}

static bool distributed(const lk_provider_info *guard)
{
    struct holder holder;
    char endpoints[WORLD_ENDPOINTS_MAX];
    world->endpoints(endpoints, sizeof endpoints, 0);
    struct holder_plan plan = lock_plan(guard, endpoints);
    lk_hold hold;
    plan.lease_ms = plan.default_lease_ms = 0;
    assert_true(holder_start(&holder, &plan));
    assert_true(holder_says(&holder, "held"));
    lk_client *client = world_client(guard->name, &world_patient);
    lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &hold);
    if (status == LK_OK)
        lk_release(&hold);
    holder_release(&holder);
    assert_true(holder_says(&holder, "released"));
    holder_kill(&holder);
    lk_close(client);
    return status == LK_TIMEOUT;
}

/* Ends A's lock while A still relies on it:
 *
 * - the server ends leases: waits for the end of the lease
 *
 * - the clients' clocks decide: B's clock is ahead, so the lease has ended for B
 *
 * - otherwise: frees the lock by hand
 */
static void end_lock(const lk_provider_info *guard, struct hooked *ahead)
{
    if (has(guard, LK_CAP_LEASE) && (world->left_ms(CLAIM_KEY) >= 0 || !world->exists(CLAIM_KEY)))
        assert_true(comes_within(world_is_free, (char[]){CLAIM_KEY},
                                 world->crash_bound_ms(guard, CLAIM_LEASE_MS) + CLAIM_GRACE_MS));
    else if (has(guard, LK_CAP_LEASE) && !has(guard, LK_CAP_SERVER_CLOCK))
        ahead->ahead_us = AHEAD_US;
    else
        assert_true(world->remove(CLAIM_KEY));
}

/* A's lock passes to B; then A releases. True if C is still refused. */
static bool owner(const lk_provider_info *guard)
{
    lk_hold a, b, c;
    struct hooked hooked;
    lk_client *client = world_client(guard->name, &world_patient);
    lk_client *ahead = world_client(
        guard->name, &(lk_options){.command_timeout_ms = WORLD_COMMAND_MS, .env = hook(&hooked)});
    if (has(guard, LK_CAP_SERVER_CLOCK))
        lock_acquire_briefly(client, &a);
    else
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, CLAIM_LONG_MS, &a), LK_OK);
    end_lock(guard, &hooked);
    assert_int_equal(world_acquire(ahead, CLAIM_KEY, 0, CLAIM_LONG_MS, &b), LK_OK);
    lk_release(&a);
    lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &c);
    if (status == LK_OK)
        lk_release(&c);
    lk_release(&b);
    lk_close(client);
    lk_close(ahead);
    return status == LK_TIMEOUT;
}

static bool renew(const lk_provider_info *guard)
{
    lk_hold hold;
    lk_client *client = world_client(guard->name, &world_patient);
    assert_int_equal(world_acquire(client, CLAIM_KEY, CLAIM_HELD_MS, 0, &hold), LK_OK);
    lk_status status = lk_extend(&hold, 2 * CLAIM_HELD_MS);
    if (status == LK_OK) {
        assert_true(world->left_ms(CLAIM_KEY) > CLAIM_HELD_MS);
        assert_true(world->remove(CLAIM_KEY));
        assert_int_equal(lk_extend(&hold, CLAIM_HELD_MS), LK_LOST);
    }
    lk_release(&hold);
    lk_close(client);
    return status == LK_OK;
}

static bool fence(const lk_provider_info *guard)
{
    return series_fences_rise(guard, world->fast ? FENCES_FAST : FENCES_SLOW);
}

static bool reentrant(const lk_provider_info *guard)
{
    lk_hold outer, inner;
    lk_client *client = world_client(guard->name, &world_patient);
    lk_request request = {.key = CLAIM_KEY, .owner = "worker-1"};
    assert_int_equal(lk_acquire(client, &request, &outer), LK_OK);
    lk_status status = lk_acquire(client, &request, &inner);
    if (status == LK_OK) {
        assert_int_equal(inner.fence, outer.fence);
        assert_int_equal(lk_release(&inner), LK_OK);
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &inner), LK_TIMEOUT);
    }
    assert_int_equal(lk_release(&outer), LK_OK);
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &outer), LK_OK);
    assert_int_equal(lk_release(&outer), LK_OK);
    lk_close(client);
    return status == LK_OK;
}

/* A waits; the lock comes free while A is stopped before its next try. True if B is refused. */
static bool fair(const lk_provider_info *guard)
{
    lk_hold first, late;
    struct hooked hooked;
    lk_client *client = world_client(guard->name, &world_patient);
    lk_options options = {.command_timeout_ms = WORLD_COMMAND_MS, .env = hook(&hooked)};
    struct asker waiter = {
        .key = CLAIM_KEY, .wait_ms = CLAIM_LONG_MS, .client = world_client(guard->name, &options)};
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &first), LK_OK);
    asker_start(&waiter);
    bool waits = wait_until(refused_twice, &hooked, CLAIM_LONG_MS);
    bool kept = shut_gate(&hooked, CLAIM_LONG_MS);
    bool freed = lk_release(&first) == LK_OK;
    lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &late);
    kept = wait_until(is_set, &hooked.at_gate, CLAIM_LONG_MS) && kept;
    freed = (status != LK_OK || lk_release(&late) == LK_OK) && freed;
    atomic_store(&hooked.shut, false);
    lk_status served = asker_end(&waiter);
    lk_close(client);
    assert_true(waits && kept);
    assert_true(freed);
    assert_int_equal(served, LK_OK);
    return status == LK_TIMEOUT;
}

static bool polled_often(void *count)
{
    return atomic_load((_Atomic int *)count) > POLLS;
}

/* True if a waiter that may poll every 1 to 2 ms does not poll. */
static bool wakes(const lk_provider_info *guard)
{
    lk_hold first;
    struct hooked hooked;
    lk_options options = {.command_timeout_ms = WORLD_COMMAND_MS,
                          .env = hook(&hooked),
                          .retry_min_ms = 1,
                          .retry_max_ms = 2};
    lk_client *client = world_client(guard->name, &world_patient);
    struct asker waiter = {
        .key = CLAIM_KEY, .wait_ms = CLAIM_LONG_MS, .client = world_client(guard->name, &options)};
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &first), LK_OK);
    asker_start(&waiter);
    bool waits = wait_until(refused_twice, &hooked, CLAIM_LONG_MS);
    bool polls =
        wait_until(polled_often, &hooked.refusals, has(guard, LK_CAP_WAKES) ? 300 : CLAIM_LONG_MS);
    int64_t start_ms = test_now_ms();
    lk_status freed = lk_release(&first), served = asker_end(&waiter);
    int64_t took_ms = test_now_ms() - start_ms;
    lk_close(client);
    assert_true(waits && freed == LK_OK);
    assert_int_equal(served, LK_OK);
    assert_true(took_at_most(took_ms, CLAIM_GRACE_MS));
    return !polls;
}

/* True if a client whose clock is ahead is refused a lock that is held. */
static bool server_clock(const lk_provider_info *guard)
{
    lk_hold hold, second;
    struct hooked hooked;
    lk_client *client = world_client(guard->name, &world_patient);
    lk_client *ahead = world_client(
        guard->name, &(lk_options){.command_timeout_ms = WORLD_COMMAND_MS, .env = hook(&hooked)});
    hooked.ahead_us = AHEAD_US;
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    lk_status status = world_acquire(ahead, CLAIM_KEY, 0, 0, &second);
    if (status == LK_OK)
        lk_release(&second);
    lk_release(&hold);
    lk_close(client);
    lk_close(ahead);
    return status == LK_TIMEOUT;
}

static lk_status ask_mode(lk_client *client, lk_mode mode, lk_hold *hold)
{
    return lk_acquire(client, &(lk_request){.key = CLAIM_KEY, .mode = mode}, hold);
}

/* Two clients hold the lock as readers and exclude a writer; a writer excludes a reader. */
static bool shared(const lk_provider_info *guard)
{
    lk_hold a, b, other;
    lk_client *client = world_client(guard->name, &world_patient),
              *second = world_client(guard->name, &world_patient);
    lk_status status = ask_mode(client, LK_SHARED, &a);
    if (status == LK_OK) {
        assert_int_equal(ask_mode(second, LK_SHARED, &b), LK_OK);
        assert_int_equal(ask_mode(client, LK_EXCLUSIVE, &other), LK_TIMEOUT);
        assert_int_equal(lk_release(&a), LK_OK);
        assert_int_equal(ask_mode(client, LK_EXCLUSIVE, &other), LK_TIMEOUT);
        assert_int_equal(lk_release(&b), LK_OK);
        assert_int_equal(ask_mode(client, LK_EXCLUSIVE, &other), LK_OK);
        assert_int_equal(ask_mode(second, LK_SHARED, &b), LK_TIMEOUT);
        assert_int_equal(lk_release(&other), LK_OK);
        assert_int_equal(world->leftovers(), 0);
    } else {
        assert_int_equal(status, LK_UNSUPPORTED);
    }
    lk_close(client);
    lk_close(second);
    return status == LK_OK;
}

/* Two clients get the two permits; a third request is refused until one permit is released. */
static bool permits(const lk_provider_info *guard)
{
    lk_hold a, b, other;
    lk_client *client = world_client(guard->name, &world_patient),
              *second = world_client(guard->name, &world_patient);
    lk_request request = {.key = CLAIM_KEY, .permits = 2};
    lk_status status = lk_acquire(client, &request, &a);
    if (status == LK_OK) {
        assert_int_equal(lk_acquire(second, &request, &b), LK_OK);
        assert_int_equal(lk_acquire(client, &request, &other), LK_TIMEOUT);
        assert_int_equal(lk_release(&a), LK_OK);
        assert_int_equal(lk_acquire(client, &request, &other), LK_OK);
        assert_int_equal(lk_release(&b), LK_OK);
        assert_int_equal(lk_release(&other), LK_OK);
        assert_int_equal(world->leftovers(), 0);
    } else {
        assert_int_equal(status, LK_UNSUPPORTED);
    }
    lk_close(client);
    lk_close(second);
    return status == LK_OK;
}

/* -- all of them --------------------------------------------------------------------------------
 */

const struct claim lock_claims[LK_CAP_COUNT] = {
    {LK_CAP_EXCLUSIVE, 0, exclusive},
    {LK_CAP_DISTRIBUTED, 0, distributed},
    {LK_CAP_LEASE, 0, lock_lease_ends},
    {LK_CAP_ATOMIC_LEASE, LK_CAP_LEASE, lock_lease_is_atomic},
    {LK_CAP_OWNER, 0, owner},
    {LK_CAP_RENEW, LK_CAP_LEASE, renew},
    {LK_CAP_FENCE, 0, fence},
    {LK_CAP_REENTRANT, 0, reentrant},
    {LK_CAP_FAIR, 0, fair},
    {LK_CAP_WAKES, 0, wakes},
    {LK_CAP_SERVER_CLOCK, LK_CAP_LEASE, server_clock},
    {LK_CAP_SHARED, 0, shared},
    {LK_CAP_PERMITS, 0, permits},
    {LK_CAP_SESSION, 0, lock_session_ends},
};
