/* The catalogue: every row tells its story in both languages, has its fix beside it, and stands in
 * README.md as it is. */
#include "hazard_queue.h"
#include "hazard_report.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { README_MAX = 1 << 20 };

TEST_THAT(each_row_is_complete)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++) {
        const struct hazard *hazard = hazard_list[i];
        assert_ptr_equal(hazard_find(hazard->id), hazard); /* no id twice */
        for (int language = EN; language <= ZH; language++) {
            const hazard_text *texts[] = {&hazard->title, &hazard->story, &hazard->warning,
                                          &hazard->fix};
            for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
                if ((*texts[t])[language] == NULL)
                    fail_msg("%s lacks text %zu in language %d", hazard->id, t, language);
        }
        for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++)
            assert_true((one->as[EN] == NULL) == (one->as[ZH] == NULL));
    }
}

/* Steps end, and never wait for what nothing was sent for. */
static void check_steps(const struct hazard *hazard, const struct hazard_step *steps)
{
    bool sent[HAZARD_WHOS] = {false};
    int n = 0;
    assert_non_null(steps);
    for (; steps[n].verb != HAZARD_VERBS; n++) {
        const struct hazard_step *step = &steps[n];
        assert_true(n < HAZARD_STEPS_MAX);
        assert_true(step->who < HAZARD_WHOS);
        bool asks = step->verb == SEND || step->verb == RUN || step->verb == PAY;
        bool waits = step->verb == UNTIL || step->verb == AS_FAR_AS || step->verb == PASSED;
        sent[step->who] |= asks;
        bool faults = step->verb == EVICT || step->verb == REBOOT;
        bool states = step->what != NULL &&
                      (strcmp(step->what, "gone") == 0 || strcmp(step->what, "stays") == 0);
        if ((waits && (!sent[step->who] || step->what == NULL)) || (asks && step->who == LOCKS) ||
            (faults && !states))
            fail_msg("%s: step %d makes no sense", hazard->id, n + 1);
    }
    assert_true(n > 0);
}

TEST_THAT(steps_make_sense)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        for (const struct hazard_case *one = hazard_list[i]->cases; one->guard != NULL; one++)
            check_steps(hazard_list[i], one->steps ? one->steps : hazard_list[i]->steps);
}

/* What is tried can strike. Where a claim is said to hold, the case that differs in nothing from
 * the row's own setting says so, too. */
TEST_THAT(why_a_cell_is_empty_agrees_with_the_cases)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        for (const struct hazard_case *one = hazard_list[i]->cases; one->guard != NULL; one++) {
            const enum hazard_blank blank = hazard_blank(hazard_list[i], one->guard);
            if (blank == BLANK_NEVER)
                fail_msg("%s is tried on %s, which it never strikes", hazard_list[i]->id,
                         one->guard);
            if (blank == BLANK_CLAIMED && one->as[EN] == NULL &&
                (one->expected == HAZARD_UNSAFE || one->expected == HAZARD_STUCK))
                fail_msg("%s: %s claims to hold, and is expected to fail", hazard_list[i]->id,
                         one->guard);
        }
}

TEST_THAT(an_empty_cell_goes_by_names_and_claims)
{
    const struct hazard *wrong = hazard_find("wrong-delete"), *herd = hazard_find("zk-herd"),
                        *lost = hazard_find("zk-lost-create"), *slip = hazard_find("off-by-one");
    assert_int_equal(hazard_blank(wrong, "redlock"), BLANK_CLAIMED);     /* owner */
    assert_int_equal(hazard_blank(wrong, "redis-setnx"), BLANK_UNTRIED); /* a bare DEL */
    assert_int_equal(hazard_blank(wrong, "sql-row"), BLANK_NEVER);       /* no key to delete */
    assert_int_equal(hazard_blank(herd, "redis-token"), BLANK_NEVER);    /* polls */
    assert_int_equal(hazard_blank(herd, "pg-advisory"), BLANK_UNTRIED);  /* wakes */
    assert_int_equal(hazard_blank(lost, "zk-readwrite"), BLANK_UNTRIED); /* by its name */
    assert_int_equal(hazard_blank(lost, "redis-token"), BLANK_NEVER);
    assert_int_equal(hazard_blank(hazard_find("memcached-restart"), "memcached"), BLANK_UNTRIED);
    assert_int_equal(hazard_blank(hazard_find("two-processes"), "redlock"), BLANK_CLAIMED);
    assert_int_equal(hazard_blank(slip, "none"), BLANK_UNTRIED); /* of the business */
}

TEST_THAT(each_failure_has_its_fix_beside_it)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++) {
        bool fails = false, holds = false;
        for (const struct hazard_case *one = hazard_list[i]->cases; one->guard != NULL; one++) {
            bool good = one->expected == HAZARD_SAFE || one->expected == HAZARD_REFUSED;
            holds |= good;
            fails |= !good;
        }
        if (fails && !holds)
            fail_msg("%s has no case that holds", hazard_list[i]->id);
    }
}

TEST_THAT(readme_shows_the_matrix)
{
    char *readme = malloc(README_MAX);
    assert_non_null(readme);
    FILE *file = fopen("loadgen/README.md", "re"); /* tests run at the top of the checkout */
    assert_non_null(file);
    readme[fread(readme, 1, README_MAX - 1, file)] = '\0';
    fclose(file);
    int missing = 0;
    for (size_t i = 0; hazard_list[i] != NULL; i++) {
        char *row;
        size_t size;
        FILE *out = open_memstream(&row, &size);
        assert_non_null(out);
        lab_row_to_markdown(hazard_list[i], &(struct hazard_options){0}, out);
        assert_int_equal(fclose(out), 0);
        if (strstr(readme, row) == NULL) {
            print_message("loadgen/README.md lacks the row (hazards list --markdown)\n%s", row);
            missing++;
        }
        free(row);
    }
    free(readme);
    assert_int_equal(missing, 0);
}

/* A run that disagrees, or whose fault did not take effect, is kept and counted, whatever the runs
 * before and after it were. */
TEST_THAT(one_bad_run_among_good_ones_is_a_mismatch)
{
    static struct lab_report report;
    static struct hazard_run good, bad, idle;
    const struct hazard_case one = {.guard = "none", .expected = HAZARD_UNSAFE};
    struct lab_result *result = &report.results[0];
    *result = (struct lab_result){.hazard = hazard_list[0], .one = &one};
    report.n_results = 1;
    good = (struct hazard_run){.one = &one, .took_effect = true, .observed = HAZARD_UNSAFE};
    bad = (struct hazard_run){.one = &one, .took_effect = true, .observed = HAZARD_SAFE};
    idle = (struct hazard_run){.one = &one, .observed = HAZARD_UNSAFE, .message = "nobody came"};

    assert_int_equal(lab_result_add(result, &good), 0);
    assert_int_equal(lab_mismatches(&report), 0);
    assert_int_equal(lab_result_add(result, &bad), 0);
    assert_int_equal(lab_result_add(result, &good), 0);
    assert_int_equal(lab_mismatches(&report), 1);
    assert_int_equal(result->observed, HAZARD_SAFE);
    assert_int_equal(result->runs, 3);
    assert_int_equal(result->agreeing, 2);
    lab_report_free(&report);

    *result = (struct lab_result){.hazard = hazard_list[0], .one = &one};
    assert_int_equal(lab_result_add(result, &idle), 0);
    assert_int_equal(lab_mismatches(&report), 1);
    assert_int_equal(result->took_effect, 0);
    assert_string_equal(result->message, "nobody came");
    lab_report_free(&report);
}

/* Came in this order; the second and the third were served before the first. */
TEST_THAT(later_ones_that_were_served_first_are_counted)
{
    static struct hazard_run run;
    static const struct hazard hazard = {.queue = 4};
    static const int64_t came_us[] = {1000, 2000, 3000, 4000},
                         served_us[] = {30000, 20000, 10000, 40000};
    run = (struct hazard_run){.hazard = &hazard};
    for (int i = 0; i < 4; i++) {
        run.queue.waiters[i].came_us = came_us[i];
        run.queue.waiters[i].served_us = served_us[i];
    }
    queue_measure(&run);
    assert_int_equal(run.outcome.overtakings, 2);
    assert_int_equal(run.outcome.measure_ms, 36);
    assert_int_equal(run.outcome.mean_wait_ms, 22);
    run.queue.waiters[0].served_us = 5000;
    run.queue.waiters[1].served_us = 6000;
    run.outcome = (struct run_outcome){0};
    queue_measure(&run);
    assert_int_equal(run.outcome.overtakings, 0);
}
