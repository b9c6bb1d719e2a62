/* Right histories by the thousand: none is accused, and none is too much to decide. The same with
 * one mistake in it: every one is found. */
#include "history_sim.h"
#include "history_text.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The full run's are as many as the claim names. */
static int histories(void)
{
    return (int)test_size(250, 1000);
}

static struct sim sim;
static struct check_result results[HISTORY_CHECKERS_MAX];

static void explain(uint64_t seed, enum check_verdict verdict)
{
    for (size_t i = 0; i < n_checkers; i++)
        if (results[i].breaches + results[i].undecided > 0)
            print_error("%s: %s\n", checkers[i].name, results[i].example);
    fail_msg("seed %llu: %s\n%s%s", (unsigned long long)seed, check_verdict_text(verdict),
             sim_text(&sim), sim_audit(&sim));
}

/* With an audit every second time. */
static void expect_holds(uint64_t seed, const struct sim_options *options)
{
    sim_run(&sim, seed, options);
    enum check_verdict verdict =
        history_text_check(sim_text(&sim), seed % 2 == 0 ? sim_audit(&sim) : NULL, results);
    if (verdict != CHECK_HOLDS)
        explain(seed, verdict);
}

TEST_THAT(right_history_is_not_accused)
{
    int lost = 0, refused = 0;
    for (uint64_t seed = 0; seed < (uint64_t)histories(); seed++) {
        struct sim_options options = {.n = 20 + (int)(seed * 7 % 300),
                                      .clients = 1 + (int)(seed % 12),
                                      .lost_pct = (int)(seed % 4) * 5,
                                      .versions = true};
        expect_holds(seed, &options);
        for (int i = 0; i < sim.n; i++) {
            lost += sim.ops[i].end != SIM_ANSWERED;
            refused += sim.ops[i].refused != NULL;
        }
    }
    print_message("%d right histories, %d requests of unknown outcome, %d refusals\n", histories(),
                  lost, refused);
    assert_true(lost > histories() && refused > histories());
}

/* Then the places of all changes are to be searched for. */
TEST_THAT(right_history_without_versions_is_not_accused)
{
    for (uint64_t seed = 0; seed < (uint64_t)histories(); seed++) {
        struct sim_options options = {.n = 10 + (int)(seed % 30),
                                      .clients = 1 + (int)(seed % 5),
                                      .lost_pct = (int)(seed % 3) * 5};
        expect_holds(seed, &options);
    }
}

TEST_THAT(right_history_with_one_mistake_is_found)
{
    int planted = 0;
    for (uint64_t seed = 0; planted < histories(); seed++) {
        struct sim_options options = {
            .n = 20 + (int)(seed * 7 % 150), .clients = 1 + (int)(seed % 12), .versions = true};
        sim_run(&sim, seed, &options);
        const char *mistake = sim_spoil(&sim, seed);
        if (mistake == NULL)
            continue;
        planted++;
        enum check_verdict verdict = history_text_check(sim_text(&sim), sim_audit(&sim), results);
        if (verdict != CHECK_BROKEN)
            print_error("missed: %s\n", mistake), explain(seed, verdict);
    }
}
