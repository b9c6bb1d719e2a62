#include "outage.h"
#include "lock_claims.h"
#include "lock_hooks.h"
#include "process.h"
#include "../../loadgen/sandbox_proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    GUARDS_MAX = 16,
    TEST_NAME_MAX = 80,
    LEASE_MS = 500,
    COMMAND_MS = 200,
    /* lk_acquire() and lk_release(): a command and its undoing, each of which may have to connect
     */
    CALL_MS = 4 * COMMAND_MS,
    BACK_MS = 5000, /* after which a client has found its server again */
    COMMANDS_MAX = 30,
    STORM_THREADS = 8,
    STORM_MS = 500,
    CUT_EACH_MS = 15
};

static bool has(const lk_provider_info *guard, uint32_t bits)
{
    return (guard->caps & bits) != 0;
}

/* What a guard may leave after a doubt goes by itself. */
static bool ends_by_itself(const lk_provider_info *guard)
{
    return has(guard, LK_CAP_ATOMIC_LEASE | LK_CAP_SESSION);
}

static const lk_options impatient = {.lease_ms = LEASE_MS, .command_timeout_ms = COMMAND_MS};

static bool is_granted(void *client)
{
    lk_hold hold;
    if (world_acquire(client, CLAIM_KEY, LEASE_MS, 0, &hold) != LK_OK)
        return false;
    lk_release(&hold);
    return true;
}

/* Somebody else gets the lock that may have been left, within a lease or session. */
static bool comes_free(const lk_provider_info *guard)
{
    lk_client *other = world_client(guard->name, NULL);
    bool is = wait_until(is_granted, other,
                         world->crash_bound_ms(guard, LEASE_MS) + CALL_MS + CLAIM_GRACE_MS);
    lk_close(other);
    return is;
}

/* -- on the way ---------------------------------------------------------------------------------
 */

struct way {
    struct proxy *proxy;
    lk_client *client;
};

static struct way way_open(const lk_provider_info *guard)
{
    struct way way = {.proxy = proxy_open(world->port())};
    lk_hold hold;
    assert_non_null(way.proxy);
    way.client = world_client_at(guard->name, proxy_port(way.proxy), &impatient);
    assert_int_equal(world_acquire(way.client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    return way;
}

static void way_close(struct way *way)
{
    lk_close(way->client);
    proxy_close(way->proxy);
}

/* Acquires and releases once. Whatever is said to be done is done. */
static lk_status pair_told_truly(lk_client *client)
{
    lk_hold hold;
    lk_status status = world_acquire(client, CLAIM_KEY, 0, 0, &hold);
    if (status != LK_OK)
        return status;
    assert_true(world->exists(CLAIM_KEY));
    status = lk_release(&hold);
    if (status == LK_OK || status == LK_LOST)
        assert_false(world->exists(CLAIM_KEY));
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

/* The nth command of a pair is spoilt, for each n until there is none. */
static void spoil_each(const lk_provider_info *guard, void (*spoil)(struct proxy *proxy, int nth))
{
    struct way way = way_open(guard);
    int nth = 1;
    for (bool was_lost = true; was_lost && nth < COMMANDS_MAX; nth++) {
        int before = proxy_lost(way.proxy);
        spoil(way.proxy, nth);
        int64_t start_ms = test_now_ms();
        lk_status status = pair_told_truly(way.client);
        assert_true(test_now_ms() - start_ms <= 2 * CALL_MS + CLAIM_GRACE_MS);
        was_lost = proxy_lost(way.proxy) > before;
        if (status != LK_OK && !(was_lost && status == LK_UNKNOWN))
            fail_msg("command %d spoilt: %s", nth, lk_status_text(status));
        bool quick = !was_lost || status == LK_OK;
        if ((quick || ends_by_itself(guard)) && !comes_free(guard))
            fail_msg("the lock stands after command %d was spoilt", nth);
        world->wipe(); /* what has no end */
    }
    assert_in_range(nth, 3, COMMANDS_MAX - 1);
    way_close(&way);
}

static void lost_requests_are_told_truly(const lk_provider_info *guard)
{
    spoil_each(guard, lose_nth_request);
}

static void halved_answers_are_told_truly(const lk_provider_info *guard)
{
    spoil_each(guard, halve_nth_answer);
}

static void missing_answers_are_told_truly(const lk_provider_info *guard)
{
    spoil_each(guard, silence_nth_answer);
}

static bool none_is_held(void *proxy)
{
    return proxy_held(proxy) == 0;
}

/* The nth command of a pair arrives when its caller has long given up. */
static void late_requests_leave_no_lasting_orphan(const lk_provider_info *guard)
{
    bool was_late = ends_by_itself(guard);
    for (int nth = 1; was_late && nth < COMMANDS_MAX; nth++) {
        struct way way = way_open(guard);
        proxy_hold(way.proxy, CLAIM_KEY, nth);
        lk_status status = pair_told_truly(way.client);
        was_late = !none_is_held(way.proxy);
        assert_true(status == LK_OK || was_late);
        proxy_let_go(way.proxy);
        assert_true(wait_until(none_is_held, way.proxy, CLAIM_GRACE_MS));
        world->exists(CLAIM_KEY); /* a round trip: what came late has been done */
        if (!comes_free(guard))
            fail_msg("command %d came late and left a lock", nth);
        way_close(&way);
    }
}

/* A waiter's connection is cut while it waits; then the lock is freed. */
static void cut_waiter_is_served_or_told(const lk_provider_info *guard)
{
    lk_hold hold;
    struct hooked hooked;
    struct proxy *proxy = proxy_open(world->port());
    lk_options options = impatient;
    options.env = hook(&hooked);
    lk_client *holder = world_client(guard->name, NULL);
    struct asker waiter = {.key = CLAIM_KEY,
                           .wait_ms = BACK_MS,
                           .client = world_client_at(guard->name, proxy_port(proxy), &options)};
    assert_int_equal(world_acquire(holder, CLAIM_KEY, 0, 0, &hold), LK_OK);
    asker_start(&waiter);
    assert_true(wait_until(refused_twice, &hooked, BACK_MS));
    proxy_cut(proxy);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_status status = asker_join(&waiter);
    assert_true(waiter.took_ms <= BACK_MS + CALL_MS + CLAIM_GRACE_MS);
    if (status == LK_OK)
        assert_int_equal(lk_release(&waiter.hold), LK_OK);
    else
        assert_int_equal(status, LK_UNKNOWN);
    assert_true(comes_free(guard));
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
};

static void *weather(void *arg)
{
    struct storm *storm = arg;
    while (test_now_ms() < storm->until_ms) {
        lk_hold hold;
        if (world_acquire(storm->client, CLAIM_KEY, CLAIM_LONG_MS, COMMAND_MS, &hold) != LK_OK)
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

/* Connections are cut again and again under eight threads. Not for guards whose undoing may free
 * another's lock, nor for those whose lock goes with the connection: they lose it, rightly. */
static void storm_lets_no_two_in(const lk_provider_info *guard)
{
    if (!has(guard, LK_CAP_OWNER) || has(guard, LK_CAP_SESSION))
        return;
    struct way way = way_open(guard);
    struct storm storm = {.client = way.client, .until_ms = test_now_ms() + STORM_MS};
    pthread_t threads[STORM_THREADS];
    for (int i = 0; i < STORM_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, weather, &storm), 0);
    while (test_now_ms() < storm.until_ms) {
        lk_env_system()->sleep_us(NULL, CUT_EACH_MS * 1000);
        proxy_cut(way.proxy);
    }
    for (int i = 0; i < STORM_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&storm.met), 0);
    assert_true(atomic_load(&storm.grants) > 0);
    world->wipe(); /* what a long lease keeps after a doubt */
    assert_true(wait_until(is_granted, way.client, BACK_MS));
    way_close(&way);
}

/* -- the servers themselves ---------------------------------------------------------------------
 */

static void must_end_by(int64_t start_ms, const char *what)
{
    int64_t took_ms = test_now_ms() - start_ms;
    if (took_ms > CALL_MS + CLAIM_GRACE_MS)
        fail_msg("%s took %d ms", what, (int)took_ms);
}

static void expect_in_doubt_or_away(lk_status status)
{
    if (status != LK_UNKNOWN && status != LK_UNAVAILABLE)
        fail_msg("said of a server that does not answer: %s", lk_status_text(status));
}

/* One client holds, another is new, while the servers are stopped; then they go on. */
static void stopped_servers_cost_bounded_time(const lk_provider_info *guard)
{
    lk_hold hold, other;
    lk_client *holder = world_client(guard->name, &impatient);
    lk_client *client = world_client(guard->name, &impatient);
    assert_int_equal(world_acquire(holder, "lock:held", CLAIM_LONG_MS, 0, &hold), LK_OK);
    assert_true(is_granted(client));
    world_signal(SIGSTOP);
    int64_t start_ms = test_now_ms();
    lk_status status = world_acquire(client, CLAIM_KEY, LEASE_MS, 0, &other);
    int64_t between_ms = test_now_ms();
    lk_status released = lk_release(&hold);
    int64_t end_ms = test_now_ms();
    world_signal(SIGCONT);
    expect_in_doubt_or_away(status);
    assert_true(released == LK_LOST || released == LK_UNKNOWN || released == LK_UNAVAILABLE);
    assert_true(between_ms - start_ms <= CALL_MS + CLAIM_GRACE_MS);
    assert_true(end_ms - between_ms <= CALL_MS + CLAIM_GRACE_MS);
    if (ends_by_itself(guard))
        assert_true(comes_free(guard));
    else
        world->wipe();
    assert_true(wait_until(is_granted, client, BACK_MS));
    assert_true(wait_until(is_granted, holder, BACK_MS));
    lk_close(client);
    lk_close(holder);
}

/* Killed under a holder, found dead by a newcomer, and found again without opening anew. */
static void dead_servers_are_told_and_found_again(const lk_provider_info *guard)
{
    lk_hold hold, other;
    lk_client *holder = world_client(guard->name, &impatient);
    lk_client *client = world_client(guard->name, &impatient);
    assert_int_equal(world_acquire(holder, CLAIM_KEY, 0, 0, &hold), LK_OK);
    world_signal(SIGKILL);
    int64_t start_ms = test_now_ms();
    assert_int_equal(world_acquire(client, "lock:other", 0, 0, &other), LK_UNAVAILABLE);
    must_end_by(start_ms, "acquiring from dead servers");
    start_ms = test_now_ms();
    lk_status status = lk_release(&hold);
    must_end_by(start_ms, "releasing to dead servers");
    if (status != LK_LOST)
        expect_in_doubt_or_away(status);
    start_ms = test_now_ms();
    if (lk_ping(client) == LK_OK)
        fail_msg("dead servers answer ping");
    must_end_by(start_ms, "ping");
    world_restart();
    world->wipe();
    assert_true(wait_until(is_granted, client, BACK_MS));
    assert_true(wait_until(is_granted, holder, BACK_MS));
    assert_int_equal(lk_ping(client), LK_OK);
    lk_close(client);
    lk_close(holder);
}

struct news {
    _Atomic int told;
    int64_t at_ms;
};

static void on_lost(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct news *news = arg;
    (void)hold;
    (void)cause;
    news->at_ms = test_now_ms();
    atomic_fetch_add(&news->told, 1);
}

static bool is_told(void *arg)
{
    return atomic_load(&((struct news *)arg)->told) > 0;
}

/* Not sooner than has to be, and not after another could have it. */
static void lock_on_dead_servers_is_told_lost(const lk_provider_info *guard)
{
    if (!ends_by_itself(guard))
        return;
    struct news news = {0};
    lk_hold hold;
    lk_client *client = world_client(guard->name, &impatient);
    lk_request request = {.key = CLAIM_KEY, .on_lost = on_lost, .on_lost_arg = &news};
    assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
    int64_t held_ms = test_now_ms();
    world_signal(SIGKILL);
    assert_true(wait_until(is_told, &news, LEASE_MS + CLAIM_GRACE_MS));
    assert_int_equal(lk_check(&hold, NULL), LK_LOST);
    assert_true(news.at_ms - held_ms <= LEASE_MS + CLAIM_GRACE_MS / 2);
    int64_t start_ms = test_now_ms();
    assert_int_not_equal(lk_release(&hold), LK_OK);
    must_end_by(start_ms, "releasing a lost lock");
    assert_int_equal(atomic_load(&news.told), 1);
    lk_close(client);
    world_restart();
}

/* -- all of them --------------------------------------------------------------------------------
 */

static const struct experiment {
    const char *name;
    void (*run)(const lk_provider_info *guard);
} experiments[] = {
    {"lost_requests_are_told_truly", lost_requests_are_told_truly},
    {"halved_answers_are_told_truly", halved_answers_are_told_truly},
    {"missing_answers_are_told_truly", missing_answers_are_told_truly},
    {"late_requests_leave_no_lasting_orphan", late_requests_leave_no_lasting_orphan},
    {"cut_waiter_is_served_or_told", cut_waiter_is_served_or_told},
    {"storm_lets_no_two_in", storm_lets_no_two_in},
    {"stopped_servers_cost_bounded_time", stopped_servers_cost_bounded_time},
    {"dead_servers_are_told_and_found_again", dead_servers_are_told_and_found_again},
    {"lock_on_dead_servers_is_told_lost", lock_on_dead_servers_is_told_lost},
};

enum { EXPERIMENTS = sizeof experiments / sizeof experiments[0] };

struct trial {
    const lk_provider_info *guard;
    const struct experiment *experiment;
    char name[TEST_NAME_MAX];
};

static void run_trial(void **state)
{
    const struct trial *trial = *state;
    world->wipe();
    trial->experiment->run(trial->guard);
}

int outage_main(const struct lock_family *family)
{
    static struct trial trials[GUARDS_MAX * EXPERIMENTS];
    static struct CMUnitTest tests[GUARDS_MAX * EXPERIMENTS];
    size_t n = 0;
    world = family;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t g = 0; g < GUARDS_MAX && family->guards[g] != NULL; g++)
        for (size_t e = 0; e < EXPERIMENTS; e++, n++) {
            struct trial *trial = &trials[n];
            trial->guard = lk_provider_find(family->guards[g]);
            trial->experiment = &experiments[e];
            snprintf(trial->name, sizeof trial->name, "%s__%s", family->guards[g],
                     experiments[e].name);
            for (char *c = trial->name; *c != '\0'; c++)
                *c = *c == '-' ? '_' : *c;
            tests[n] = (struct CMUnitTest){trial->name, run_trial, NULL, NULL, trial};
        }
    return _cmocka_run_group_tests(family->name, tests, n, world_open, world_close);
}
