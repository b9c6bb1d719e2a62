#include "outage.h"
#include "outage_way.h"
#include "lateness.h"
#include "lock_claims.h"
#include "process.h"
#include "tests.h"

#include <stdatomic.h>
#include <stdio.h>

enum { GUARDS_MAX = 16, TEST_NAME_MAX = 80 };

bool outage_ends_by_itself(const lk_provider_info *guard)
{
    return (guard->caps & (LK_CAP_ATOMIC_LEASE | LK_CAP_SESSION)) != 0;
}

const lk_options outage_impatient = {.lease_ms = OUTAGE_LEASE_MS,
                                     .command_timeout_ms = OUTAGE_COMMAND_MS};

bool outage_is_granted(void *client)
{
    lk_hold hold;
    if (world_acquire(client, CLAIM_KEY, OUTAGE_LEASE_MS, 0, &hold) != LK_OK)
        return false;
    lk_release(&hold);
    return true;
}

void outage_acquire(lk_client *client, const lk_request *request, lk_hold *hold)
{
    int64_t start_ms = test_now_ms();
    lk_status status;
    while ((status = lk_acquire(client, request, hold)) != LK_OK &&
           ended_within(start_ms, OUTAGE_BACK_MS))
        continue;
    assert_int_equal(status, LK_OK);
}

/* Opens a client and connects it. On a busy machine this may take longer than its timeout. */
static lk_client *open_impatient(const lk_provider_info *guard)
{
    lk_client *client = world_client(guard->name, &outage_impatient);
    assert_true(comes_within(outage_is_granted, client, OUTAGE_BACK_MS));
    return client;
}

bool outage_comes_free(const lk_provider_info *guard)
{
    lk_client *other = world_client(guard->name, &world_patient);
    bool is = comes_within(outage_is_granted, other,
                           world->crash_bound_ms(guard, OUTAGE_LEASE_MS) + OUTAGE_CALL_MS +
                               CLAIM_GRACE_MS);
    lk_close(other);
    return is;
}

/* -- the servers themselves ---------------------------------------------------------------------
 */

static void must_end_by(int64_t start_ms, const char *what)
{
    if (!ended_within(start_ms, OUTAGE_CALL_MS + CLAIM_GRACE_MS))
        fail_msg("%s came too late", what);
}

static void expect_unknown_or_away(lk_status status)
{
    if (status != LK_UNKNOWN && status != LK_UNAVAILABLE)
        fail_msg("said of a server that does not answer: %s", lk_status_text(status));
}

/* The servers are stopped while one client holds a lock and another asks for one; then they
 * continue. */
static void stopped_servers_cost_bounded_time(const lk_provider_info *guard)
{
    lk_hold hold, other;
    lk_client *holder = open_impatient(guard);
    lk_client *client = open_impatient(guard);
    outage_acquire(holder, &(lk_request){.key = "lock:held", .lease_ms = CLAIM_LONG_MS}, &hold);
    world_freeze(true);
    int64_t start_ms = test_now_ms();
    lk_status status = world_acquire(client, CLAIM_KEY, OUTAGE_LEASE_MS, 0, &other);
    int64_t between_ms = test_now_ms();
    lk_status released = lk_release(&hold);
    int64_t end_ms = test_now_ms();
    world_freeze(false);
    expect_unknown_or_away(status);
    assert_true(released == LK_LOST || released == LK_UNKNOWN || released == LK_UNAVAILABLE);
    assert_true(took_at_most(between_ms - start_ms, OUTAGE_CALL_MS + CLAIM_GRACE_MS));
    assert_true(took_at_most(end_ms - between_ms, OUTAGE_CALL_MS + CLAIM_GRACE_MS));
    if (outage_ends_by_itself(guard))
        assert_true(outage_comes_free(guard));
    else
        world->wipe();
    assert_true(comes_within(outage_is_granted, client, OUTAGE_BACK_MS));
    assert_true(comes_within(outage_is_granted, holder, OUTAGE_BACK_MS));
    lk_close(client);
    lk_close(holder);
}

/* The servers are killed while a client holds a lock. A new client finds them dead. After the
 * restart both clients work again without being reopened. */
static void dead_servers_are_told_and_found_again(const lk_provider_info *guard)
{
    lk_hold hold, other;
    lk_client *holder = open_impatient(guard);
    lk_client *client = world_client(guard->name, &outage_impatient);
    outage_acquire(holder, &(lk_request){.key = CLAIM_KEY}, &hold);
    world_kill();
    int64_t start_ms = test_now_ms();
    assert_int_equal(world_acquire(client, "lock:other", 0, 0, &other), LK_UNAVAILABLE);
    must_end_by(start_ms, "acquiring from dead servers");
    start_ms = test_now_ms();
    lk_status status = lk_release(&hold);
    must_end_by(start_ms, "releasing to dead servers");
    if (status != LK_LOST)
        expect_unknown_or_away(status);
    start_ms = test_now_ms();
    if (lk_ping(client) == LK_OK)
        fail_msg("dead servers answer ping");
    must_end_by(start_ms, "ping");
    world_restart();
    world->wipe();
    assert_true(comes_within(outage_is_granted, client, OUTAGE_BACK_MS));
    assert_true(comes_within(outage_is_granted, holder, OUTAGE_BACK_MS));
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

/* A lock on dead servers is reported lost once its lease has ended. */
static void lock_on_dead_servers_is_told_lost(const lk_provider_info *guard)
{
    if (!outage_ends_by_itself(guard))
        return;
    struct news news = {0};
    lk_hold hold;
    lk_client *client = open_impatient(guard);
    lk_request request = {.key = CLAIM_KEY, .on_lost = on_lost, .on_lost_arg = &news};
    outage_acquire(client, &request, &hold);
    int64_t held_ms = test_now_ms();
    world_kill();
    assert_true(comes_within(is_told, &news, OUTAGE_BACK_MS));
    assert_int_equal(lk_check(&hold, NULL), LK_LOST);
    assert_true(took_at_most(news.at_ms - held_ms, OUTAGE_LEASE_MS + CLAIM_GRACE_MS / 2));
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
    {"lost_requests_are_told_truly", outage_lost_requests_are_told_truly},
    {"halved_answers_are_told_truly", outage_halved_answers_are_told_truly},
    {"missing_answers_are_told_truly", outage_missing_answers_are_told_truly},
    {"late_requests_leave_no_lasting_orphan", outage_late_requests_leave_no_lasting_orphan},
    {"late_undoing_frees_nothing_else", outage_late_undoing_frees_nothing_else},
    {"cut_waiter_is_served_or_told", outage_cut_waiter_is_served_or_told},
    {"storm_lets_no_two_in", outage_storm_lets_no_two_in},
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
