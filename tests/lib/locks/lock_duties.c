#include "lock_duties.h"
#include "lateness.h"
#include "lock_claims.h"
#include "lock_hooks.h"
#include "lock_incidents.h"
#include "lock_series.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <stdatomic.h>
#include <string.h>

enum {
    CONTEST_MS = 200,
    LEASE_MS = 200,
    RENEWED_MS =
        1500, /* a watchdog asks within a third of it, and in time on a busy machine, too */
    PAIRS_FAST = 500,
    PAIRS_SLOW = 100,
    RECONNECT_MS = 10000
};

static bool waits_bounded(const lk_provider_info *guard)
{
    lk_hold hold, second;
    lk_client *client = world_client(guard->name, &world_patient);
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    static const int64_t waits_ms[] = {0, 1, 50, 300};
    for (size_t i = 0; i < sizeof waits_ms / sizeof waits_ms[0]; i++) {
        int64_t start_ms = test_now_ms();
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, waits_ms[i], &second), LK_TIMEOUT);
        int64_t took_ms = test_now_ms() - start_ms;
        if (took_ms < waits_ms[i] || !took_at_most(took_ms, waits_ms[i] + CLAIM_GRACE_MS))
            fail_msg("asked to wait %d ms, waited %d", (int)waits_ms[i], (int)took_ms);
    }
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
    return true;
}

/* A client that has not connected again sends nothing, and says that the server is away. So does a
 * client whose session has ended: its nodes are gone. All others cannot know after a lost answer.
 */
static bool is_true_of_loss(const lk_provider_info *guard, lk_status status, bool was_lost)
{
    if (status == LK_UNAVAILABLE)
        return !was_lost || (guard->caps & LK_CAP_SESSION) != 0;
    return was_lost && status == LK_UNKNOWN;
}

/* Loses the answer to the nth command about the key, for each n. Reported results must be true, and
 * no lock may remain. Leases are long, so no lock expires during the test. */
static bool no_orphan(const lk_provider_info *guard)
{
    if (world->port() == 0)
        return false;
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    lk_client *client = world_client_at(guard->name, proxy_port(proxy), &world_patient);
    lk_hold hold;
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    int64_t away_since_ms = test_now_ms();
    for (int nth = 1, lost = 0;;) {
        proxy_lose_answer(proxy, CLAIM_KEY, nth, PROXY_CUT);
        lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &hold);
        if (status == LK_OK) {
            assert_true(world->exists(CLAIM_KEY));
            status = lk_release(&hold);
            assert_true(status == LK_UNKNOWN || !world->exists(CLAIM_KEY));
        }
        bool was_lost = proxy_lost(proxy) > lost;
        if (status != LK_OK && !is_true_of_loss(guard, status, was_lost))
            fail_msg("answer %d lost: %s", nth, lk_status_text(status));
        if (!comes_within(world_is_free, (char[]){CLAIM_KEY}, CLAIM_GRACE_MS))
            fail_msg("the lock stands after answer %d was lost", nth);
        if (was_lost) {
            lost++, nth++;
            away_since_ms = test_now_ms();
        } else if (status == LK_OK) {
            break;
        } else if (!ended_within(away_since_ms, RECONNECT_MS)) {
            fail_msg("no connection in %d ms after answer %d was lost", RECONNECT_MS, nth - 1);
        }
    }
    assert_true(proxy_lost(proxy) >= 2);
    lk_close(client);
    proxy_close(proxy);
    return true;
}

/* A refusal is lost: undoing the attempt must not free the holder's lock. */
static bool no_theft(const lk_provider_info *guard)
{
    if (world->port() == 0)
        return false;
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    lk_client *holder = world_client(guard->name, &world_patient);
    lk_client *client = world_client_at(guard->name, proxy_port(proxy), &world_patient);
    lk_hold hold, second;
    assert_int_equal(world_acquire(holder, CLAIM_KEY, 0, 0, &hold), LK_OK);
    proxy_lose_answer(proxy, CLAIM_KEY, 1, PROXY_CUT);
    lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &second);
    assert_true(status == LK_UNKNOWN || status == LK_TIMEOUT);
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
    lk_close(holder);
    proxy_close(proxy);
    return true;
}

static bool leaves_nothing(const lk_provider_info *guard)
{
    series_leaves_nothing(guard, world->fast ? PAIRS_FAST : PAIRS_SLOW);
    return true;
}

/* -- a lost lock is reported --------------------------------------------------------------------
 */

struct news {
    _Atomic int told;
    _Atomic int cause;
};

static void on_lost(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct news *news = arg;
    (void)hold;
    atomic_store(&news->cause, (int)cause);
    atomic_fetch_add(&news->told, 1);
}

static bool is_told(void *arg)
{
    return atomic_load(&((struct news *)arg)->told) > 0;
}

/* A lock with renewal or a session is removed by hand. A lock with a lease but no renewal is held
 * beyond its lease. */
static bool tells_loss(const lk_provider_info *guard)
{
    if ((guard->caps & (LK_CAP_LEASE | LK_CAP_SESSION)) == 0)
        return false;
    bool taken = (guard->caps & (LK_CAP_RENEW | LK_CAP_SESSION)) != 0;
    struct news news = {0};
    lk_hold hold;
    const int64_t lease_ms = taken ? RENEWED_MS : LEASE_MS;
    lk_client *client = world_client(
        guard->name, &(lk_options){.lease_ms = lease_ms, .command_timeout_ms = WORLD_COMMAND_MS});
    lk_request request = {.key = CLAIM_KEY, .on_lost = on_lost, .on_lost_arg = &news};
    assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
    if (taken)
        assert_true(world->remove(CLAIM_KEY));
    assert_true(comes_within(is_told, &news, lease_ms + CLAIM_GRACE_MS));
    lk_loss cause = (lk_loss)atomic_load(&news.cause);
    bool by_session = (guard->caps & LK_CAP_SESSION) != 0 && cause == LK_LOSS_SESSION;
    assert_true(by_session || cause == (taken ? LK_LOSS_DELETED : LK_LOSS_EXPIRED));
    assert_int_equal(lk_check(&hold, NULL), LK_LOST);
    lk_status status = lk_release(&hold);
    assert_true(status == LK_LOST || (guard->caps & LK_CAP_OWNER) == 0);
    assert_int_equal(atomic_load(&news.told), 1);
    lk_close(client);
    return true;
}

/* -- inspection and forced release --------------------------------------------------------------
 */

struct found {
    int keys;
    bool held; /* every listed key has a holder */
};

static int count_key(void *arg, const lk_lock_info *info)
{
    struct found *found = arg;
    found->keys += strcmp(info->key, CLAIM_KEY) == 0;
    found->held = found->held && info->holders > 0;
    return 0;
}

/* Some servers cannot list their keys. */
static void expect_listed(lk_client *client, const char *prefix, int keys)
{
    struct found found = {.held = true};
    lk_status status = lk_list(client, prefix, count_key, &found);
    if (status == LK_UNSUPPORTED)
        return;
    assert_int_equal(status, LK_OK);
    assert_true(found.held);
    assert_int_equal(found.keys, keys);
}

static void expect_free(lk_client *client)
{
    lk_lock_info info;
    assert_int_equal(lk_inspect(client, CLAIM_KEY, &info), LK_OK);
    assert_string_equal(info.key, CLAIM_KEY);
    assert_int_equal(info.holders, 0);
    assert_string_equal(info.token, "");
    expect_listed(client, "", 0);
}

static void expect_held(lk_client *client, const lk_hold *hold)
{
    lk_lock_info info;
    assert_int_equal(lk_inspect(client, CLAIM_KEY, &info), LK_OK);
    assert_int_equal(info.holders, 1);
    assert_int_equal(info.mode, LK_EXCLUSIVE);
    if (info.token[0] != '\0')
        assert_string_equal(info.token, hold->token);
    if (info.fence != 0)
        assert_int_equal(info.fence, hold->fence);
    if (info.left_ms != INT64_MAX)
        assert_in_range(info.left_ms, 1, hold->lease_ms + CLAIM_GRACE_MS);
    expect_listed(client, "lock:it", 1);
    expect_listed(client, "", 1);
    expect_listed(client, "lock:other", 0);
}

/* A session that PostgreSQL ends frees its locks before its client hears of the end: then the
 * answer is unknown for a while. */
static void expect_lost(lk_hold *hold)
{
    const int64_t start_ms = test_now_ms();
    lk_status status;
    do
        status = lk_confirm(hold);
    while (status == LK_UNKNOWN && ended_within(start_ms, CLAIM_GRACE_MS));
    assert_int_equal(status, LK_LOST);
}

/* An operator frees a lock: a waiter gets it, and the former holder learns the loss. */
static bool obeys_operators(const lk_provider_info *guard)
{
    lk_hold hold;
    lk_lock_info info;
    struct hooked hooked;
    lk_client *client = world_client(guard->name, &world_patient),
              *tool = world_client(guard->name, &world_patient);
    struct asker waiter = {
        .key = CLAIM_KEY,
        .wait_ms = CLAIM_LONG_MS,
        .client = world_client(guard->name, &(lk_options){.command_timeout_ms = WORLD_COMMAND_MS,
                                                          .env = hook(&hooked)})};
    bool offered = lk_inspect(tool, CLAIM_KEY, &info) != LK_UNSUPPORTED;
    if (offered) {
        expect_free(tool);
        assert_int_equal(lk_force_release(tool, CLAIM_KEY), LK_LOST);
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
        expect_held(tool, &hold);
        assert_int_equal(lk_confirm(&hold), LK_OK);
        asker_start(&waiter);
        bool waits = wait_until(refused_twice, &hooked, CLAIM_LONG_MS);
        int64_t start_ms = test_now_ms();
        lk_status freed = lk_force_release(tool, CLAIM_KEY);
        assert_int_equal(asker_join(&waiter), LK_OK); /* before an assertion can leave the frame */
        assert_true(waits);
        assert_true(freed == LK_OK ||
                    freed == LK_UNKNOWN); /* the waiter's grant shows that it was freed */
        assert_true(ended_within(start_ms, CLAIM_GRACE_MS));
        if ((guard->caps & LK_CAP_OWNER) != 0) {
            expect_lost(&hold);
            assert_int_equal(lk_confirm(&waiter.hold), LK_OK);
            assert_int_equal(lk_release(&hold), LK_LOST);
            assert_int_equal(lk_release(&waiter.hold), LK_OK);
        } else {
            lk_release(&hold);
            lk_release(&waiter.hold);
        }
        expect_free(tool);
        assert_int_equal(world->leftovers(), 0);
    }
    lk_close(waiter.client);
    lk_close(tool);
    lk_close(client);
    return offered;
}

/* -- local queue --------------------------------------------------------------------------------
 */

/* With a local queue the lock excludes as it does without one. */
static bool excludes_in_line(const lk_provider_info *guard)
{
    struct contest contest;
    if ((guard->caps & LK_CAP_OWNER) == 0 || (guard->caps & LK_CAP_FAIR) != 0)
        return false;
    contest_start_in_line(&contest, guard, CLAIM_KEY, CONTEST_MS);
    assert_true(contest_join(&contest));
    assert_int_equal(world->leftovers(), 0);
    return true;
}

const struct duty lock_duties[LOCK_DUTIES] = {
    {"bounded-wait", waits_bounded},
    {"no-orphan", no_orphan},
    {"no-theft", no_theft},
    {"no-leak", leaves_nothing},
    {"on-lost", tells_loss},
    {"operators", obeys_operators},
    {"local-queue", excludes_in_line},
    {"late-renewal", incident_late_renewal},
    {"refused-try", incident_refused_try},
    {"late-release", incident_late_release},
    {"lost-release", incident_lost_release},
    {"expired-hold", incident_expired_hold},
    {"many-holds", incident_many_holds},
    {"cut-off", incident_cut_off},
};
