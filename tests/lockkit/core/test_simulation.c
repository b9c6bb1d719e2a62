/* The simulation of lock_simulation.h with many seeds. A failure prints its seed; TEST_SEED=n
 * replays it. */
#include "lk_fake.h"
#include "lock_simulation.h"
#include "tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 1000, SEEDS_FULL = 20000 };

TEST_THAT(no_seed_breaks_an_invariant)
{
    const char *one = getenv("TEST_SEED");
    uint64_t seed = one ? strtoull(one, NULL, 10) : 0;
    uint64_t end = one ? seed + 1 : getenv("TEST_FULL") ? SEEDS_FULL : SEEDS;
    static const lk_provider *const providers[] = {&fake_provider, &fake_waiting_provider,
                                                   &fake_each_provider};
    lk_stats sum = {0};
    for (; seed < end; seed++) {
        simulate(seed, providers[seed % 3], &sum);
        if (simulation_broken()[0] != '\0')
            fail_msg("seed %" PRIu64 ": %s", seed, simulation_broken());
    }
    printf("%" PRIu64 " grants, %" PRIu64 " renewals, %" PRIu64 " lost, %" PRIu64
           " timeouts, %" PRIu64 " clean-ups, %" PRIu64 " hand-overs, %" PRIu64
           " settled late of %" PRIu64 "\n",
           sum.grants, sum.renewals, sum.lost, sum.timeouts, sum.cleanups, sum.handovers,
           sum.pending_done, sum.pending);
    if (!one) { /* every event that the invariants mention has occurred */
        assert_true(sum.grants > end && sum.renewals > end && sum.timeouts > end / 4);
        assert_true(sum.lost > end / 16 && sum.cleanups > end / 4);
        assert_true(sum.handovers > end / 4 && sum.pending_done > end / 16);
    }
}

TEST_THAT(a_seed_replays_exactly)
{
    lk_stats sum = {0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t trace = simulate(seed, &fake_provider, &sum);
        assert_true(simulate(seed, &fake_provider, &sum) == trace);
    }
    assert_true(simulate(1, &fake_provider, &sum) != simulate(2, &fake_provider, &sum));
}

/* -- tests of the checker: planted faults are found -----------------------------------------------
 */

static uint64_t first_broken_seed(const lk_provider *provider)
{
    lk_stats sum = {0};
    uint64_t seed = 0;
    do
        simulate(seed, provider, &sum);
    while (simulation_broken()[0] == '\0' && ++seed < SEEDS);
    return seed;
}

/* A bare DEL: frees the lock of any holder. */
static lk_status release_anyone(void *self, lk_hold *hold)
{
    struct fake *fake = self;
    fake_free(fake, hold->key);
    fake_sleep_us(fake, fake->latency_us);
    return LK_OK;
}

/* Ignores that the lock is lost. */
static lk_status renew_blindly(void *self, lk_hold *hold, int64_t lease_ms)
{
    lk_status status = fake_provider.renew(self, hold, lease_ms);
    return status == LK_LOST ? LK_OK : status;
}

/* Checks first and sets later, like EXISTS and SET. */
static lk_status try_in_two_steps(void *self, lk_attempt *attempt)
{
    struct fake *fake = self;
    if (fake_held(fake, attempt->hold->key, NULL))
        return LK_BUSY;
    fake_sleep_us(fake, fake->latency_us);
    fake_free(fake, attempt->hold->key);
    return fake_provider.try_acquire(self, attempt);
}

/* Ignores the answer, so a lock that was not freed stays. */
static lk_status release_once(void *self, lk_hold *hold)
{
    fake_provider.release(self, hold);
    return LK_OK;
}

TEST_THAT(planted_faults_are_found)
{
    lk_provider planted = fake_provider;
    planted.release = release_anyone;
    assert_true(first_broken_seed(&planted) < SEEDS);
    planted = fake_provider;
    planted.renew = renew_blindly;
    assert_true(first_broken_seed(&planted) < SEEDS);
    planted = fake_provider;
    planted.try_acquire = try_in_two_steps;
    assert_true(first_broken_seed(&planted) < SEEDS);
    planted = fake_provider;
    planted.release = release_once;
    assert_true(first_broken_seed(&planted) < SEEDS);
    assert_non_null(strstr(simulation_broken(), "stands for nobody"));
}

static int free_stacks(void **state)
{
    (void)state;
    simulation_end();
    return 0;
}

GROUP_FIXTURE(NULL, free_stacks);
