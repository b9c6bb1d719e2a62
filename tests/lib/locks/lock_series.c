#include "lock_series.h"
#include "lock_claims.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>

enum { SERIES = 16, HANDOVERS = 5, LEAK_BYTES = 16 * 1024 };

/* A long timeout: hundreds of threads run on a few cores. */
static const lk_options patient = {.command_timeout_ms = 20000};

/* -- contenders ---------------------------------------------------------------------------------
 */

/* The protected data is plain memory on purpose: only the lock orders the accesses of two clients.
 * ThreadSanitizer cannot see that. */
__attribute__((no_sanitize("thread"))) static void enter(struct contest *contest,
                                                         const lk_hold *hold)
{
    int64_t read = contest->value;
    bool handed_on = hold->private_.handovers > 0; /* with the fence of its predecessor */
    contest->fence_fell = contest->fence_fell || hold->fence < contest->fence + !handed_on;
    contest->fence = hold->fence;
    lk_env_system()->sleep_us(NULL, 1);
    contest->value = read + 1;
}

static void *contend(void *arg)
{
    struct contest *contest = arg;
    lk_client *client = contest->clients[atomic_fetch_add(&contest->turn, 1) % 2];
    int64_t grants = 0;
    do {
        lk_hold hold;
        lk_status status = world_acquire(client, contest->key, CLAIM_HELD_MS, CLAIM_HELD_MS, &hold);
        if (status == LK_OK) {
            enter(contest, &hold);
            grants++;
            status = lk_release(&hold);
        }
        bool unlucky = status == LK_TIMEOUT && (contest->guard->caps & LK_CAP_FAIR) == 0;
        if (status != LK_OK && !unlucky)
            atomic_store(&contest->refused, (int)status);
    } while (atomic_load(&contest->refused) == 0 && test_now_ms() < contest->until_ms);
    atomic_fetch_add(&contest->sum, grants);
    return NULL;
}

static void start_contest(struct contest *contest, const lk_provider_info *guard, const char *key,
                          int64_t for_ms, const lk_options *options)
{
    *contest = (struct contest){
        .guard = guard,
        .key = key,
        .clients = {world_client(guard->name, options), world_client(guard->name, options)},
        .until_ms = test_now_ms() + for_ms};
    for (int i = 0; i < CONTENDERS; i++)
        assert_int_equal(pthread_create(&contest->threads[i], NULL, contend, contest), 0);
}

void contest_start(struct contest *contest, const lk_provider_info *guard, const char *key,
                   int64_t for_ms)
{
    start_contest(contest, guard, key, for_ms, &patient);
}

void contest_start_in_line(struct contest *contest, const lk_provider_info *guard, const char *key,
                           int64_t for_ms)
{
    lk_options options = patient;
    options.local_queue = true;
    options.local_handovers = HANDOVERS;
    start_contest(contest, guard, key, for_ms, &options);
}

bool contest_join(struct contest *contest)
{
    for (int i = 0; i < CONTENDERS; i++)
        pthread_join(contest->threads[i], NULL);
    lk_close(contest->clients[0]);
    lk_close(contest->clients[1]);
    if (atomic_load(&contest->refused) != 0)
        fail_msg("%s: a contender was told \"%s\"", contest->guard->name,
                 lk_status_text((lk_status)atomic_load(&contest->refused)));
    assert_true(atomic_load(&contest->sum) >= CONTENDERS);
    if ((contest->guard->caps & LK_CAP_FENCE) != 0 && contest->fence_fell)
        fail_msg("%s: a fence did not rise", contest->guard->name);
    return contest->value == atomic_load(&contest->sum);
}

/* -- in turns -----------------------------------------------------------------------------------
 */

struct series {
    pthread_t thread;
    lk_client *clients[2];
    char key[32];
    int64_t grants;
    bool rises;
};

static void *take_turns(void *arg)
{
    struct series *series = arg;
    uint64_t last = 0;
    series->rises = true;
    for (int64_t i = 0; i < series->grants && series->rises; i++) {
        lk_hold hold;
        series->rises = false;
        if (world_acquire(series->clients[i % 2], series->key, 0, CLAIM_LONG_MS, &hold) != LK_OK)
            break;
        series->rises = lk_release(&hold) == LK_OK && hold.fence > last;
        last = hold.fence;
    }
    return NULL;
}

bool series_fences_rise(const lk_provider_info *guard, int64_t grants)
{
    struct series series[SERIES];
    lk_client *clients[2] = {world_client(guard->name, &patient),
                             world_client(guard->name, &patient)};
    bool rises = true;
    for (int i = 0; i < SERIES; i++) {
        series[i] = (struct series){.clients = {clients[0], clients[1]}, .grants = grants / SERIES};
        snprintf(series[i].key, sizeof series[i].key, "lock:item:%d", i);
        assert_int_equal(pthread_create(&series[i].thread, NULL, take_turns, &series[i]), 0);
    }
    for (int i = 0; i < SERIES; i++) {
        pthread_join(series[i].thread, NULL);
        rises = rises && series[i].rises;
    }
    lk_close(clients[0]);
    lk_close(clients[1]);
    return rises;
}

/* -- one client ---------------------------------------------------------------------------------
 */

void series_leaves_nothing(const lk_provider_info *guard, int64_t pairs)
{
    lk_client *client = world_client(guard->name, &patient);
    lk_hold hold;
    size_t bytes = 0;
    int fds = 0;
    for (int64_t i = 0; i < pairs; i++) {
        if (i == pairs / 2) {
            bytes = mallinfo2().uordblks;
            fds = process_count_fds();
        }
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    assert_int_equal(process_count_fds(), fds);
    assert_true(mallinfo2().uordblks <= bytes + LEAK_BYTES);
    assert_int_equal(world->leftovers(), 0);
    lk_close(client);
}
