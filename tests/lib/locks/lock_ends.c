#include "lock_ends.h"
#include "lateness.h"
#include "lock_claims.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <poll.h>

static bool has(const lk_provider_info *guard, uint32_t bit)
{
    return (guard->caps & bit) != 0;
}

struct holder_plan lock_plan(const lk_provider_info *guard, const char *endpoints)
{
    return (struct holder_plan){.guard = guard->name,
                                .endpoints = endpoints,
                                .key = CLAIM_KEY,
                                .lease_ms = has(guard, LK_CAP_LEASE) ? CLAIM_LEASE_MS : 0,
                                .default_lease_ms = CLAIM_LEASE_MS,
                                .wait_ms = CLAIM_LONG_MS}; /* connecting may outlast the lease */
}

void lock_acquire_briefly(lk_client *client, lk_hold *hold)
{
    int64_t until_ms = test_now_ms() + CLAIM_HELD_MS;
    lk_status status;
    do
        status = world_acquire(client, CLAIM_KEY, CLAIM_LEASE_MS, CLAIM_LONG_MS, hold);
    while (status == LK_UNAVAILABLE && test_now_ms() < until_ms);
    assert_int_equal(status, LK_OK);
}

/* Asks until the lock is granted, or had to come free within bound_ms and the machine's lateness.
 */
static lk_status acquire_within(lk_client *client, int64_t bound_ms, lk_hold *hold)
{
    int64_t start_ms = test_now_ms();
    lk_status status;
    do
        status = world_acquire(client, CLAIM_KEY, 0, bound_ms, hold);
    while (status != LK_OK && ended_within(start_ms, bound_ms));
    assert_true(status != LK_OK || ended_within(start_ms, bound_ms));
    return status;
}

/* True if the lock can be acquired within a lease or session after its holder's death. */
static bool comes_back(const lk_provider_info *guard)
{
    lk_hold hold;
    lk_client *client = world_client(guard->name, &world_patient);
    int64_t start_ms = test_now_ms();
    /* Without lease or session the lock may never come free, so there is no grace. */
    int64_t bound_ms = world->crash_bound_ms(guard, CLAIM_LEASE_MS);
    bool ends = has(guard, LK_CAP_LEASE) || has(guard, LK_CAP_SESSION);
    lk_status status = ends ? acquire_within(client, bound_ms + CLAIM_GRACE_MS, &hold)
                            : world_acquire(client, CLAIM_KEY, 0, bound_ms, &hold);
    if (status == LK_OK) {
        assert_true(ended_within(start_ms, bound_ms + CLAIM_GRACE_MS));
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    lk_close(client);
    return status == LK_OK;
}

static bool ends_with_its_holder(const lk_provider_info *guard)
{
    struct holder holder;
    char endpoints[WORLD_ENDPOINTS_MAX];
    world->endpoints(endpoints, sizeof endpoints, 0);
    struct holder_plan plan = lock_plan(guard, endpoints);
    assert_true(holder_start(&holder, &plan));
    assert_true(holder_says(&holder, "held"));
    holder_kill(&holder);
    return comes_back(guard);
}

/* True if a lock with a lease comes free while its holder lives and does nothing. */
static bool ends_in_time(const lk_provider_info *guard)
{
    lk_hold hold, next;
    lk_client *client = world_client(guard->name, &world_patient),
              *other = world_client(guard->name, &world_patient);
    int64_t bound_ms = world->crash_bound_ms(guard, CLAIM_LEASE_MS);
    lock_acquire_briefly(client, &hold);
    lk_status status = has(guard, LK_CAP_LEASE)
                           ? acquire_within(other, bound_ms + CLAIM_GRACE_MS, &next)
                           : world_acquire(other, CLAIM_KEY, 0, bound_ms + CLAIM_LEASE_MS, &next);
    if (status == LK_OK)
        lk_release(&next);
    lk_release(&hold);
    lk_close(client);
    lk_close(other);
    return status == LK_OK;
}

bool lock_lease_ends(const lk_provider_info *guard)
{
    return ends_with_its_holder(guard) && ends_in_time(guard);
}

bool lock_session_ends(const lk_provider_info *guard)
{
    return !ends_in_time(guard) && ends_with_its_holder(guard);
}

static bool held_before_loss(struct holder *holder, struct proxy *proxy)
{
    struct pollfd said = {.fd = holder->out, .events = POLLIN};
    while (proxy_lost(proxy) == 0)
        if (poll(&said, 1, 1) == 1)
            return holder_says(holder, "held");
    return false;
}

/* Kills the holder after the nth command of its acquisition, before the answer arrives. False: the
 * acquisition has fewer commands. */
static bool killed_after_command(const lk_provider_info *guard, int nth)
{
    struct holder holder;
    char endpoints[WORLD_ENDPOINTS_MAX];
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    world->endpoints(endpoints, sizeof endpoints, proxy_port(proxy));
    struct holder_plan plan = lock_plan(guard, endpoints);
    proxy_lose_answer(proxy, CLAIM_KEY, nth, PROXY_SILENCE);
    assert_true(holder_start(&holder, &plan));
    bool held = held_before_loss(&holder, proxy);
    holder_kill(&holder);
    proxy_close(proxy);
    return !held;
}

/* Without a server there are no commands to intercept: kills the holder at the nth named point. */
static bool killed_at_point(const lk_provider_info *guard, int nth)
{
    static const char *const points[] = {LK_POINT_TRY, LK_POINT_ACQUIRED};
    if ((size_t)nth > sizeof points / sizeof points[0])
        return false;
    struct holder holder;
    char endpoints[WORLD_ENDPOINTS_MAX];
    world->endpoints(endpoints, sizeof endpoints, 0);
    struct holder_plan plan = lock_plan(guard, endpoints);
    plan.die_at = points[nth - 1];
    assert_true(holder_start(&holder, &plan));
    holder_wait(&holder);
    return true;
}

bool lock_lease_is_atomic(const lk_provider_info *guard)
{
    bool (*kill_one)(const lk_provider_info *guard, int nth) =
        world->port() != 0 ? killed_after_command : killed_at_point;
    bool kept = true;
    for (int nth = 1; kept && kill_one(guard, nth); nth++) {
        kept = comes_back(guard);
        world->wipe();
    }
    return kept;
}
