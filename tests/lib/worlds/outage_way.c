/* Faults between client and server, made by a proxy. */
#include "outage_way.h"
#include "lateness.h"
#include "lock_claims.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMANDS_MIN = 2, /* of a pair */
    COMMANDS_MAX = 40,
    LATE_MAX = 10,
    STORM_THREADS = 8,
    STORM_MS = 500,
    CUT_EACH_MS = 15
};

/* Releases of a client that its server did not confirm. The client repeats them in the background,
 * on the connection of its calls. */
struct pending {
    _Atomic int started, ended;
};

static void on_pending(void *arg, const char *key, lk_pending what, int64_t pending_ms)
{
    struct pending *pending = arg;
    (void)key;
    (void)pending_ms;
    atomic_fetch_add(what == LK_PENDING_STARTED ? &pending->started : &pending->ended, 1);
}

/* For wait_until(). A guard without an owner only tells of ends. */
static bool none_is_pending(void *arg)
{
    struct pending *pending = arg;
    return atomic_load(&pending->started) <= atomic_load(&pending->ended);
}

/* A client that reaches its server through a proxy, and a judge that asks the servers directly. */
struct way {
    struct proxy *proxy;
    lk_client *client, *judge;
    struct pending *pending; /* of the client */
    bool has_session;        /* LK_CAP_SESSION */
    int n_late;              /* pairs whose command was not sent in time, although one was spoilt */
};

static struct way way_open(const lk_provider_info *guard)
{
    struct way way = {.proxy = proxy_open(world->port()),
                      .judge = world_client(guard->name, &world_patient),
                      .pending = calloc(1, sizeof *way.pending),
                      .has_session = (guard->caps & LK_CAP_SESSION) != 0};
    assert_non_null(way.proxy);
    assert_non_null(way.pending);
    lk_options options = outage_impatient;
    options.on_pending = on_pending;
    options.on_pending_arg = way.pending;
    way.client = world_client_at(guard->name, proxy_port(way.proxy), &options);
    /* On a busy machine connecting may take longer than the client's timeout. */
    assert_true(comes_within(outage_is_granted, way.client, OUTAGE_BACK_MS));
    return way;
}

static void way_close(struct way *way)
{
    lk_close(way->client);
    lk_close(way->judge);
    proxy_close(way->proxy);
    free(way->pending);
}

/* Acquires and releases once; checks that each reported result is true. */
static lk_status pair_told_truly(const struct way *way)
{
    lk_hold hold, other;
    lk_status status = world_acquire(way->client, CLAIM_KEY, 0, 0, &hold);
    if (status != LK_OK)
        return status;
    assert_int_equal(world_acquire(way->judge, CLAIM_KEY, 0, 0, &other), LK_TIMEOUT);
    status = lk_release(&hold);
    if (status == LK_OK || status == LK_LOST)
        assert_true(outage_is_granted(way->judge));
    return status;
}

static void lose_nth_request(struct proxy *proxy, int nth)
{
    proxy_lose_request(proxy, CLAIM_KEY, nth);
}

static void halve_nth_answer(struct proxy *proxy, int nth)
{
    proxy_lose_answer(proxy, CLAIM_KEY, nth, PROXY_HALF);
}

static void silence_nth_answer(struct proxy *proxy, int nth)
{
    proxy_lose_answer(proxy, CLAIM_KEY, nth, PROXY_SILENCE);
}

/* Spoils the nth command of a pair. False: there is no nth command. True without a change of
 * *ret_nth: none came along, or the machine was so slow that another command timed out or the
 * session ended. */
static bool spoil_one(struct way *way, void (*spoil)(struct proxy *proxy, int nth), int *ret_nth)
{
    int before = proxy_lost(way->proxy);
    spoil(way->proxy, *ret_nth);
    int64_t start_ms = test_now_ms();
    lk_status status = pair_told_truly(way);
    int64_t took_ms = test_now_ms() - start_ms;
    bool was_lost = proxy_lost(way->proxy) > before;
    spoil(way->proxy, 0);
    assert_true(took_at_most(took_ms, 2 * OUTAGE_CALL_MS + CLAIM_GRACE_MS));
    bool was_slow = took_ms >= OUTAGE_COMMAND_MS;
    if (!was_lost && (status == LK_UNAVAILABLE || (status != LK_OK && was_slow)))
        return true;
    /* A busy machine: a renewal, or a repetition in the background, was spoilt, and a command of
     * the pair was not even sent in time. A guard that says so falsely says it again. */
    if (status == LK_UNAVAILABLE && was_slow && !way->has_session && ++way->n_late <= LATE_MAX)
        return true;
    bool late = status == LK_LOST && took_ms >= OUTAGE_LEASE_MS;
    /* A session that has ended has taken its node along: certainly nothing was done. */
    bool ended = status == LK_UNAVAILABLE && way->has_session;
    if (status != LK_OK && !late && !(was_lost && (status == LK_UNKNOWN || ended)))
        fail_msg("command %d %s: %s after %d ms", *ret_nth, was_lost ? "spoilt" : "not spoilt",
                 lk_status_text(status), (int)took_ms);
    if (!was_lost && *ret_nth <= COMMANDS_MIN)
        return true; /* not one came along: redlock pauses before it asks a silent node again */
    ++*ret_nth;
    return was_lost;
}

/* Spoils each command of a pair in turn. */
static void spoil_each(const lk_provider_info *guard, void (*spoil)(struct proxy *proxy, int nth))
{
    struct way way = way_open(guard);
    int64_t until_ms = test_now_ms() + (int64_t)COMMANDS_MAX * OUTAGE_BACK_MS;
    int nth = 1;
    for (bool more = true; more; assert_true(nth < COMMANDS_MAX && test_now_ms() < until_ms)) {
        /* Only the pair's own commands may be spoilt, and fail. */
        assert_true(comes_within(none_is_pending, way.pending, OUTAGE_BACK_MS));
        more = spoil_one(&way, spoil, &nth);
        if (outage_ends_by_itself(guard) && !outage_comes_free(guard))
            fail_msg("the lock stands after command %d was spoilt", nth - 1);
        world->wipe(); /* for locks that do not expire */
        /* ZooKeeper's client gives up a silent server after two thirds of its session timeout. */
        if ((guard->caps & LK_CAP_SESSION) != 0)
            assert_true(comes_within(outage_is_granted, way.client, OUTAGE_BACK_MS));
    }
    assert_true(nth > COMMANDS_MIN);
    way_close(&way);
}

void outage_lost_requests_are_told_truly(const lk_provider_info *guard)
{
    spoil_each(guard, lose_nth_request);
}

void outage_halved_answers_are_told_truly(const lk_provider_info *guard)
{
    spoil_each(guard, halve_nth_answer);
}

void outage_missing_answers_are_told_truly(const lk_provider_info *guard)
{
    spoil_each(guard, silence_nth_answer);
}

static bool none_is_held(void *proxy)
{
    return proxy_held(proxy) == 0;
}

/* The nth command of a pair arrives long after its caller gave up. */
void outage_late_requests_leave_no_lasting_orphan(const lk_provider_info *guard)
{
    bool was_late = outage_ends_by_itself(guard);
    for (int nth = 1; was_late && nth < COMMANDS_MAX; nth++) {
        struct way way = way_open(guard);
        proxy_hold(way.proxy, CLAIM_KEY, nth);
        lk_status status = pair_told_truly(&way);
        /* A session's client may have closed the connection; sql-unique has the server end it.
         * Then the held command never arrives. */
        bool given_up = status != LK_OK && ((guard->caps & LK_CAP_SESSION) != 0 ||
                                            strncmp(guard->name, "sql-unique", 10) == 0);
        was_late = !none_is_held(way.proxy) || given_up;
        assert_true(status == LK_OK || was_late);
        proxy_let_go(way.proxy);
        assert_true(wait_until(none_is_held, way.proxy, CLAIM_LONG_MS));
        world->exists(CLAIM_KEY); /* a round trip: the late command has been executed */
        if (!outage_comes_free(guard))
            fail_msg("command %d came late and left a lock", nth);
        way_close(&way);
    }
}

/* A try's answer is lost. The nth command, a part of its undoing, arrives long after the same call
 * was granted the lock. */
void outage_late_undoing_frees_nothing_else(const lk_provider_info *guard)
{
    bool was_late = (guard->caps & LK_CAP_OWNER) != 0 && (guard->caps & LK_CAP_SESSION) == 0;
    for (int nth = 2; was_late && nth < COMMANDS_MAX; nth++) {
        struct way way = way_open(guard);
        lk_hold hold, other;
        proxy_hold(way.proxy, CLAIM_KEY, nth);
        proxy_lose_answer(way.proxy, CLAIM_KEY, 1, PROXY_CUT);
        lk_status status =
            world_acquire(way.client, CLAIM_KEY, CLAIM_LONG_MS, OUTAGE_BACK_MS, &hold);
        was_late = !none_is_held(way.proxy);
        proxy_let_go(way.proxy);
        bool arrived = wait_until(none_is_held, way.proxy, CLAIM_LONG_MS);
        world->exists(CLAIM_KEY); /* a round trip: the late command has been executed */
        lk_status second = world_acquire(way.judge, CLAIM_KEY, 0, 0, &other);
        lk_release(&other);
        lk_release(&hold);
        assert_true(arrived);
        assert_int_equal(status, LK_OK);
        assert_int_equal(second, LK_TIMEOUT);
        way_close(&way);
    }
}

/* A waiter's connection is cut while it waits; then the lock is freed. */
void outage_cut_waiter_is_served_or_told(const lk_provider_info *guard)
{
    lk_hold hold;
    struct hooked hooked;
    struct proxy *proxy = proxy_open(world->port());
    lk_options options = outage_impatient;
    options.env = hook(&hooked);
    lk_client *holder = world_client(guard->name, &world_patient);
    struct asker waiter = {.key = CLAIM_KEY,
                           .wait_ms = OUTAGE_BACK_MS,
                           .client = world_client_at(guard->name, proxy_port(proxy), &options)};
    assert_true(comes_within(outage_is_granted, waiter.client, OUTAGE_BACK_MS));
    outage_acquire(holder, &(lk_request){.key = CLAIM_KEY}, &hold);
    asker_start(&waiter);
    bool waits = comes_within(refused_twice, &hooked, OUTAGE_BACK_MS);
    proxy_cut(proxy);
    lk_status freed = lk_release(&hold), status = asker_join(&waiter);
    assert_true(waits); /* joined first: an assertion may leave this function */
    assert_int_equal(freed, LK_OK);
    assert_true(took_at_most(waiter.took_ms, OUTAGE_BACK_MS + OUTAGE_CALL_MS + CLAIM_GRACE_MS));
    if (status == LK_OK)
        assert_int_equal(lk_release(&waiter.hold), LK_OK);
    else
        assert_int_equal(status, LK_UNKNOWN);
    assert_true(outage_comes_free(guard));
    lk_close(waiter.client);
    lk_close(holder);
    proxy_close(proxy);
}

/* -- a storm ------------------------------------------------------------------------------------
 */

struct storm {
    lk_client *client;
    _Atomic int64_t grants;
    _Atomic int inside, met; /* met: two were inside at once */
    int64_t until_ms;
    atomic_bool over;
};

static void *weather(void *arg)
{
    struct storm *storm = arg;
    while (!atomic_load(&storm->over)) {
        lk_hold hold;
        if (world_acquire(storm->client, CLAIM_KEY, CLAIM_LONG_MS, OUTAGE_COMMAND_MS, &hold) !=
            LK_OK)
            continue;
        if (atomic_fetch_add(&storm->inside, 1) != 0 && lk_check(&hold, NULL) == LK_OK)
            atomic_fetch_add(&storm->met, 1);
        atomic_fetch_add(&storm->grants, 1);
        lk_env_system()->sleep_us(NULL, 50);
        atomic_fetch_sub(&storm->inside, 1);
        lk_release(&hold);
    }
    return NULL;
}

/* Connections are cut repeatedly while eight threads use them. Two kinds of guard are excluded:
 * those whose undoing may free another holder's lock, and those whose lock ends with the
 * connection. */
void outage_storm_lets_no_two_in(const lk_provider_info *guard)
{
    if ((guard->caps & LK_CAP_OWNER) == 0 || (guard->caps & LK_CAP_SESSION) != 0)
        return;
    struct way way = way_open(guard);
    struct storm storm = {.client = way.client, .until_ms = test_now_ms() + STORM_MS};
    pthread_t threads[STORM_THREADS];
    for (int i = 0; i < STORM_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, weather, &storm), 0);
    int64_t calm_ms = CUT_EACH_MS; /* between two cuts: a slow machine has its chance */
    for (int64_t now_ms = test_now_ms();
         now_ms < storm.until_ms ||
         (atomic_load(&storm.grants) == 0 && now_ms < storm.until_ms + OUTAGE_BACK_MS);
         now_ms = test_now_ms()) {
        lk_env_system()->sleep_us(NULL, calm_ms * 1000);
        proxy_cut(way.proxy);
        calm_ms += now_ms < storm.until_ms ? 1 : calm_ms;
    }
    atomic_store(&storm.over, true);
    for (int i = 0; i < STORM_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&storm.grants) > 0); /* joined first: the storm is this function's */
    assert_int_equal(atomic_load(&storm.met), 0);
    world->wipe(); /* for a lock with a long lease after an unknown outcome */
    assert_true(comes_within(outage_is_granted, way.client, OUTAGE_BACK_MS));
    way_close(&way);
}
