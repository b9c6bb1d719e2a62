/* What a seed draws is what it drew before, and what a guard claims follows from the draw. */
#include "torture_options.h"
#include "tests.h"
#include "torture_plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2000 };

static const struct torture_limits all = {0};

static void text_of(uint64_t seed, char *ret, size_t size)
{
    static struct torture_plan plan;
    torture_plan_draw(&plan, seed, &all);
    FILE *out = fmemopen(ret, size, "w");
    assert_non_null(out);
    torture_plan_print(&plan, out);
    fclose(out);
}

TEST_THAT(equal_seeds_draw_equal_plans)
{
    static char one[60000], two[60000], last[60000];
    int changes = 0;
    for (uint64_t seed = 1; seed < 50; seed++) {
        text_of(seed, one, sizeof one);
        text_of(seed, two, sizeof two);
        assert_string_equal(one, two);
        changes += strcmp(one + strlen("seed 1"), last + strlen("seed 1")) != 0;
        memcpy(last, one, sizeof last);
    }
    assert_int_equal(changes, 49);
}

TEST_THAT(every_fault_and_every_guard_is_drawn)
{
    static struct torture_plan plan;
    int faults[TORTURE_FAULTS] = {0}, guards[64] = {0}, topologies[THREE + 1] = {0}, calm = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        torture_plan_draw(&plan, seed, &all);
        guards[plan.is.guard - torture_guards]++;
        topologies[plan.is.topology]++;
        calm += plan.n_strikes == 0;
        for (int i = 0; i < plan.n_strikes; i++) {
            faults[plan.strikes[i].fault]++;
            assert_true(plan.is.faults[plan.strikes[i].fault]);
            assert_true(plan.strikes[i].at_ms < plan.is.faults_ms);
            assert_true(i == 0 || plan.strikes[i - 1].at_ms <= plan.strikes[i].at_ms);
        }
    }
    for (int i = 0; i < TORTURE_FAULTS; i++)
        if (faults[i] == 0)
            fail_msg("%s never strikes", torture_faults[i].name);
    for (int i = 0; i < n_torture_guards; i++)
        if (guards[i] == 0)
            fail_msg("%s is never drawn", torture_guards[i].name);
    for (int i = 0; i <= THREE; i++)
        assert_true(topologies[i] > 0);
    assert_true(calm > 0 && calm < SEEDS / 2);
}

TEST_THAT(faults_strike_as_often_as_their_table_says)
{
    static struct torture_plan plan;
    double expected = 0, struck = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        torture_plan_draw(&plan, seed, &all);
        if (!plan.is.faults[TORTURE_KILL])
            continue;
        expected +=
            torture_faults[TORTURE_KILL].per_two_minutes * (plan.is.faults_ms - 100) / 120e3;
        for (int i = 0; i < plan.n_strikes; i++)
            struck += plan.strikes[i].fault == TORTURE_KILL;
    }
    assert_true(struck > 0.9 * expected && struck < 1.1 * expected);
}

/* A limit names faults that exist wherever they can strike. */
TEST_THAT(a_named_fault_exists_in_each_round_where_it_can_strike)
{
    static struct torture_plan plan;
    const struct torture_limits limits = {.fault = "archive", .guard = "sql-row"};
    for (uint64_t seed = 1; seed <= 100; seed++) {
        torture_plan_draw(&plan, seed, &limits);
        assert_int_equal(plan.is.postgres, plan.is.faults[TORTURE_ARCHIVE]);
        assert_int_equal(!plan.is.postgres, plan.is.faults[TORTURE_ARCHIVE_OFFLINE]);
    }
}

TEST_THAT(some_rounds_trust_the_lock_alone)
{
    static struct torture_plan plan;
    int trusting = 0, fenced = 0, weak = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        torture_plan_draw(&plan, seed, &all);
        weak += !plan.is.claims_safe;
        fenced += torture_is_fenced(&plan.is);
        trusting += plan.is.claims_safe && plan.is.guard->a_lock && !torture_is_fenced(&plan.is) &&
                    plan.n_strikes > 0;
    }
    assert_true(trusting > SEEDS / 8 && fenced > SEEDS / 4);
    assert_true(weak > SEEDS / 20 && weak < SEEDS / 2);
}

static struct torture_settings settings(const char *guard)
{
    return (struct torture_settings){.guard = torture_guard_named(guard),
                                     .instances = 2,
                                     .lease_ms = 30000,
                                     .fence = true,
                                     .postgres = true};
}

static bool claims(struct torture_settings is)
{
    torture_claim(&is);
    return is.claims_safe;
}

TEST_THAT(a_claim_is_that_of_guard_settings_and_faults)
{
    struct torture_settings is = settings("none");
    assert_false(claims(is));
    is = settings("mutex");
    assert_false(claims(is));
    is.instances = 1;
    assert_true(claims(is));
    is.faults[TORTURE_KILL] = true; /* a commit of the dead process may land */
    assert_false(claims(is));
    is.postgres = false;
    assert_true(claims(is));
    is = settings("redis-set");
    assert_true(claims(is));
    is.faults[TORTURE_FLUSH] = true;
    assert_false(claims(is));
    is.fence_database = true;
    assert_true(claims(is));
    is = settings("redis-token");
    is.faults[TORTURE_FLUSH] = true;
    assert_true(claims(is));
    is.fence = false;
    assert_false(claims(is));
    is = settings("redlock");
    is.lease_ms = 300;
    assert_false(claims(is));
    is = settings("sql-row");
    is.fence = false;
    is.faults[TORTURE_STORE_KILL] = true;
    assert_true(claims(is));
}

TEST_THAT(a_lock_without_a_lease_may_be_stuck_after_a_fault)
{
    struct torture_settings is = settings("redis-setnx");
    torture_claim(&is);
    assert_true(is.claims_progress);
    is.faults[TORTURE_KILL] = true;
    torture_claim(&is);
    assert_false(is.claims_progress);
    is.guard = torture_guard_named("redis-token");
    torture_claim(&is);
    assert_true(is.claims_progress);
}

TEST_THAT(the_line_that_runs_it_again_has_all_limits)
{
    char line[400];
    const struct torture_options options = {.limits = {.guard = "mutex",
                                                       .store = "sqlite",
                                                       .instances = 2,
                                                       .small = true,
                                                       .fault = "archive"},
                                            .slip = "number-only"};
    torture_options_replay(&options, "build/torture", 17, line, sizeof line);
    assert_string_equal(line, "build/torture --seed 17 --rounds 1 --guard mutex --store sqlite"
                              " --instances 2 --fault archive --small --slip number-only");
}
