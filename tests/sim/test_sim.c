/*
 * The whole service on a virtual clock, under settings, interleavings and faults that a seed draws.
 * See tests/sim/README.md. Variables: TEST_SEED=N runs one seed and prints its timeline;
 * TEST_LESS=...: with less of this and that; SIM_SHRINK_S: seconds to shrink a failing seed in;
 * SIM_SEEDS and SIM_FROM: how many, and the first; SIM_ONLY: runs only those of this store or guard
 * (sim_settings_are_of()); SIM_JSON: a file for the sum.
 */
#include "sim_rounds.h"
#include "tests.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SIM_SLOW
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SIM_SLOW
#endif

enum {
#ifdef SIM_SLOW
    SEEDS = 50,
#else
    SEEDS = 1000,
#endif
    SEEDS_FULL = 20000,
    SECONDS_MAX = 120, /* a late machine runs fewer seeds */
    SHRINK_S = 60,
    JOBS_MAX = 64,
    CANARY = 50,          /* a seed whose guard loses */
    ALL_HAPPENS_IN = 1000 /* seeds */
};

static struct sim_sum sum;

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static int run_seeds(void **state)
{
    (void)state;
    const char *json = getenv("SIM_JSON");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    sim_rounds(number("SIM_FROM", 1), number("SIM_SEEDS", getenv("TEST_FULL") ? SEEDS_FULL : SEEDS),
               cores < JOBS_MAX ? (int)cores : JOBS_MAX, (double)number("SIM_SECONDS", SECONDS_MAX),
               &sum);
    sim_sum_print(&sum, stdout);
    FILE *file = json && *json ? fopen(json, "w") : NULL;
    if (file) {
        sim_sum_print(&sum, file);
        fclose(file);
    }
    return 0;
}

GROUP_FIXTURE(run_seeds, NULL);

TEST_THAT(no_promise_is_broken)
{
    const struct sim_less as_drawn = {.run = 0};
    const double shrink_s = (double)number("SIM_SHRINK_S", SHRINK_S);
    if (sum.broken > 0 && shrink_s > 0)
        sim_tell_shrunk(sum.first_broken, &as_drawn, shrink_s);
    assert_int_equal(sum.broken, 0);
}

TEST_THAT(equal_seeds_leave_equal_hashes)
{
    assert_int_equal(sum.differing, 0);
}

TEST_THAT(without_a_guard_updates_are_lost)
{
    struct sim_shrunk as_it_is;
    struct sim_less claims;
    assert_int_equal(sum.canaries_caught, sum.canaries);
    assert_true(sim_less_parse("claims=1", &claims)); /* one at least, whatever seeds were run */
    assert_true(sim_shrink_seed(CANARY, &claims, 0, &as_it_is));
}

/* The canary, judged as if its guard claimed anything, is a failing seed. */
TEST_THAT(a_failing_seed_is_shrunk_and_fails_again)
{
    struct sim_shrunk shrunk, same;
    struct sim_less begin;
    assert_true(sim_less_parse("claims=1", &begin));
    assert_true(sim_shrink_seed(CANARY, &begin, SHRINK_S, &shrunk));
    struct sim_settings small = {.clients = 6, .deals = 8, .workers = 4};
    sim_less_apply(&shrunk.less, &small);
    assert_true(small.clients <= 3 && small.deals <= 2); /* two that overlap, once */
    char text[SIM_LESS_TEXT_MAX];
    sim_less_print(&shrunk.less, text);
    assert_true(sim_less_parse(text, &same.less));
    assert_memory_equal(&shrunk.less, &same.less, sizeof same.less);
    assert_true(sim_shrink_seed(CANARY, &same.less, 0, &same)); /* it fails again */
}

TEST_THAT(a_run_that_goes_round_in_circles_is_ended)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        sim_limit_cpu(1);
        for (volatile uint64_t rounds = 0;; rounds++)
            continue;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGXCPU);
}

/* tests/sim/plants.py seeks each of them. */
TEST_THAT(each_mistake_can_still_be_planted)
{
    assert_int_equal(system("tests/sim/plants.py --check"), 0);
}

TEST_THAT(each_fault_and_each_rare_state_happened)
{
    if (sum.seeds < ALL_HAPPENS_IN || getenv("SIM_ONLY")) {
        print_message("not checked: %" PRIu64 " of %d seeds%s\n", sum.seeds, ALL_HAPPENS_IN,
                      getenv("SIM_ONLY") ? ", of a part of the settings" : "");
        return;
    }
    for (int i = 0; i < SIM_EVENTS; i++)
        if (sum.events[i] == 0)
            fail_msg("never happened: %s", sim_event_texts[i]);
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *seed = getenv("TEST_SEED");
    sim_without_random_addresses(argv);
    if (seed && *seed) {
        struct sim_less less;
        if (!sim_less_parse(getenv("TEST_LESS"), &less))
            return 2;
        _exit(sim_replay(strtoull(seed, NULL, 10), &less, (double)number("SIM_SHRINK_S", 0)));
    }
    int failed = tests_run();
    if (sum.broken + sum.differing > 0)
        printf("%" PRIu64 " of %" PRIu64 " seeds failed in %.0f s; the first again: "
               "TEST_SEED=%" PRIu64 " make sim\n",
               sum.broken + sum.differing, sum.seeds, sum.seconds, sum.first_failed);
    else
        printf("%" PRIu64 " seeds, each run twice, in %.0f s: no promise broken\n", sum.seeds,
               sum.seconds);
    fflush(stdout);
    _exit(failed); /* the search for leaks at exit would stop threads by calls that are wrapped here
                    */
}
