/* Whole runs against a service in miniature whose defects are planted: the verdict names each. */
#include "run_rig.h"

TEST_FIXTURE(reset, stop_fakes);

TEST_THAT(sound_sale_is_exact)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_true(verdict_is_safe(&run.verdict));
    assert_true(run_as_claimed(&run));
    assert_int_equal(run.accepted, STOCK);
    assert_int_equal(run.refused, BUYERS - STOCK);
    assert_int_equal(run.actual, STOCK);
}

TEST_THAT(oversale_is_counted)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.oversell = 4});
    assert_int_equal(run.verdict.oversold, 4);
    assert_int_equal(run.verdict.mismatch, 0);
    assert_false(run_as_claimed(&run));
}

TEST_THAT(undersale_is_counted)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.undersell = 2});
    assert_int_equal(run.verdict.undersold, 2);
}

TEST_THAT(answered_but_forgotten_order_is_a_mismatch)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.forget_nth = 5});
    assert_int_equal(run.verdict.mismatch, 1);
}

TEST_THAT(burst_with_a_duration_is_still_the_buyers)
{
    options.duration_ms = 60000;
    struct run run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_int_equal(run.load.completed, BUYERS);
    assert_int_equal(run.load.dropped, 0);
}

TEST_THAT(lost_update_is_shown_by_its_two_writes)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.lose_nth = 9});
    assert_int_equal(run.verdict.lost_updates, 1);
    assert_int_equal(run.verdict.lost_amount, 1);
    assert_true(run.has_counterexample);
    assert_int_equal(run.counterexample[0].before, run.counterexample[1].before);
    assert_int_equal(run.counterexample[0].version_before, run.counterexample[1].version_before);
    assert_string_not_equal(run.counterexample[0].txn_id, run.counterexample[1].txn_id);
}

TEST_THAT(refusals_for_now_are_retried_with_the_same_key)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.busy_first = true});
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(run.load.retries, BUYERS);
    assert_int_equal(fake_posts(fakes[0]), 2 * BUYERS);
    assert_int_equal(run.actual, STOCK);
}

TEST_THAT(request_still_running_is_asked_again)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.in_flight_first = true});
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(run.refused, BUYERS - STOCK);
}

TEST_THAT(effect_behind_a_cut_connection_is_found_by_its_key)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.cut_nth = 3});
    assert_int_equal(run.load.ends[LOAD_BROKEN], 1);
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(run.accepted, STOCK);
    assert_int_equal(fake_posts(fakes[0]), BUYERS); /* looked up, not sent again */
}

TEST_THAT(request_that_never_arrived_is_sent_again)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.lose_request_nth = 3});
    assert_int_equal(run.load.ends[LOAD_BROKEN], 1);
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(run.accepted + run.refused, BUYERS);
    assert_int_equal(fake_posts(fakes[0]), BUYERS + 1);
}

TEST_THAT(outcome_that_stays_unknown_is_not_called_safe)
{
    options.patience_ms = SHORT_PATIENCE_MS;
    struct run run = perform_with(&workload_sale, (struct fake_defects){.never_nth = 2});
    assert_int_equal(run.verdict.unknown, 1);
    assert_false(verdict_is_safe(&run.verdict));
    assert_false(run_as_claimed(&run));
}

TEST_THAT(refused_request_fails_the_run)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.refuse_nth = 2});
    assert_int_equal(run.failed, 1);
    assert_false(run_as_claimed(&run));
    assert_non_null(strstr(run.tally.failure, "400"));
    char verdict[60];
    assert_string_equal(run_verdict_text(&run, verdict, sizeof verdict), "FAILED 1");
    assert_false(run_is_well(&run));
}

TEST_THAT(duplicates_have_one_effect_and_one_answer)
{
    options.duplicates_pct = 40;
    struct run run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(fake_posts(fakes[0]), BUYERS);
    assert_in_range(run.accepted + run.refused, BUYERS * 4 / 10, BUYERS * 8 / 10);
}

TEST_THAT(differing_replay_is_counted)
{
    options.duplicates_pct = 40;
    struct run run = perform_with(&workload_sale, (struct fake_defects){.replay_differs = true});
    assert_true(run.verdict.replay_mismatch > 0);
    assert_true(verdict_is_broken(&run.verdict));
}

TEST_THAT(abandoned_requests_are_all_found_out)
{
    options.abandon_pct = 30;
    struct run run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_true(run.load.ends[LOAD_ABANDONED] > 0);
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(run.accepted, STOCK);
}

TEST_THAT(same_seed_asks_the_same)
{
    options.duplicates_pct = 40;
    struct run first = perform_with(&workload_accounts, (struct fake_defects){0});
    struct run again = perform(&workload_accounts, "redis-token");
    assert_int_equal(first.expected, again.expected);
    assert_int_equal(first.accepted, again.accepted);
    options.seed = 8;
    struct run other = perform(&workload_accounts, "redis-token");
    assert_int_not_equal(first.expected, other.expected);
}

TEST_THAT(lost_money_is_counted)
{
    options.requests = 100;
    options.accounts = 1;
    struct run run = perform_with(&workload_accounts, (struct fake_defects){.lose_nth = 50});
    assert_int_equal(run.verdict.lost_updates, 1);
    assert_true(run.verdict.lost_amount > 0);
    assert_int_equal(llabs(run.expected - run.actual), run.verdict.lost_amount);
    assert_int_equal(run.verdict.mismatch, 0);
}

TEST_THAT(double_charge_is_counted)
{
    options.requests = 100;
    struct run run = perform_with(&workload_accounts, (struct fake_defects){.double_nth = 50});
    assert_int_equal(run.verdict.duplicates, 1);
    assert_true(run.verdict.mismatch > 0);
}

TEST_THAT(textbook_pair_that_loses_is_shown)
{
    options.pairs = 20;
    options.requests = 8;
    struct run run = perform_with(&workload_accounts, (struct fake_defects){.lose_nth = 6});
    assert_int_equal(run.textbook.lost, 1);
    assert_int_equal(run.textbook.pairs, 10); /* the batch in which it was seen */
    assert_true(run.textbook.final == 700 || run.textbook.final == 800);
    assert_int_equal(run.counterexample[0].before, 1000);
    /* The pair's money is not among the load's, and yet it counts against the guard. */
    assert_int_equal(run.textbook.verdict.lost_updates, 1);
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(run.expected, run.actual);
    assert_false(run_is_safe(&run));
    assert_true(run_broke_claim(&run));
    assert_false(run_as_claimed(&run));
    char verdict[60];
    assert_int_equal(strncmp(run_verdict_text(&run, verdict, sizeof verdict), "LOST ", 5), 0);
}

TEST_THAT(refused_textbook_request_fails_the_run)
{
    options.pairs = 4;
    options.requests = 8;
    struct run run = perform_with(&workload_accounts, (struct fake_defects){.refuse_nth = 2});
    assert_int_equal(run.failed, 1);
    assert_false(run_as_claimed(&run));
    assert_non_null(strstr(run.tally.failure, "400"));
}

TEST_THAT(textbook_pairs_of_a_sound_guard_end_at_500)
{
    options.pairs = 12;
    options.requests = 8;
    struct run run = perform_with(&workload_accounts, (struct fake_defects){0});
    assert_int_equal(run.textbook.pairs, 12);
    assert_int_equal(run.textbook.lost, 0);
    assert_int_equal(run.textbook.final, 500);
    assert_true(verdict_is_safe(&run.verdict));
}

TEST_THAT(transfers_conserve_the_sum)
{
    options.requests = 400;
    struct run run = perform_with(&workload_transfers, (struct fake_defects){0});
    assert_true(verdict_is_safe(&run.verdict));
    assert_int_equal(run.initial, run.actual);
    assert_true(run.refused > 0); /* some had not enough money: decided, not lost */
}

TEST_THAT(transfer_that_lost_a_side_is_found)
{
    options.requests = 400;
    struct run run = perform_with(&workload_transfers, (struct fake_defects){.lose_nth = 100});
    assert_true(run.verdict.lost_updates > 0);
    assert_int_not_equal(run.initial, run.actual);
}

TEST_THAT(mutex_claims_nothing_for_two_instances)
{
    add_fake(&(struct fake_options){.instance = "one"});
    struct run alone = perform(&workload_sale, "mutex");
    assert_true(alone.claims_safe);
    add_fake(&(struct fake_options){.instance = "two"});
    struct remote_service service;
    char message[REMOTE_MESSAGE_MAX];
    bool safe;
    assert_int_equal(remote_describe(&options, &service, message), 0);
    assert_int_equal(service.instances, 2);
    assert_int_equal(remote_claims_safe(&service, "mutex", &safe, message), 0);
    assert_false(safe);
    assert_int_equal(remote_claims_safe(&service, "redis-token", &safe, message), 0);
    assert_true(safe);
    remote_forget(&service);
}

TEST_THAT(expectation_overrides_the_claim)
{
    options.expectations[0] = (struct expectation){.guard = "redis-token", .safe = false};
    options.n_expectations = 1;
    struct run run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_true(verdict_is_safe(&run.verdict));
    assert_false(run_as_claimed(&run));
}

TEST_THAT(unknown_guard_is_told)
{
    static struct run run;
    add_fake(&(struct fake_options){0});
    assert_int_equal(attempt(&workload_sale, "no-such", &run), -1);
    assert_non_null(strstr(run.message, "no-such"));
}

TEST_THAT(run_without_an_audit_keeps_its_load_and_has_no_verdict)
{
    struct run run = perform_with(&workload_sale, (struct fake_defects){.bad_audit = true});
    char verdict[60];
    assert_false(run.judged);
    assert_false(run_is_safe(&run));
    assert_false(run_as_claimed(&run));
    assert_string_equal(run_verdict_text(&run, verdict, sizeof verdict), "NOT JUDGED");
    assert_non_null(strstr(run.message, "audit"));
    assert_int_equal(run.load.completed, BUYERS);
    assert_int_equal(run.accepted, STOCK);
}

TEST_THAT(stopped_run_keeps_what_is_known)
{
    atomic_bool stop = true;
    options.stop = &stop;
    struct run run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_true(run.interrupted);
    assert_int_equal(run.accepted, 0);
    assert_false(run_as_claimed(&run));
    /* without its accounts there is nothing to judge */
    assert_int_equal(attempt(&workload_accounts, "redis-token", &run), -1);
    assert_string_equal(run.message, "stopped before its load began");
}

/* A minute was asked for; a run remembers only so many requests. */
TEST_THAT(closed_load_that_ends_before_its_duration_says_so)
{
    char text[REMOTE_MESSAGE_MAX];
    options.mode_given = true;
    options.mode = LOAD_CLOSED;
    options.duration_ms = 60000;
    options.requests_max = 40;
    struct run run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_int_equal(run.load.completed, 40);
    assert_true(run.judged);
    assert_true(run_cut_short(&run, text, sizeof text));
    assert_non_null(strstr(text, "ended before its duration, after 40 requests"));
    stop_fakes(NULL);
    options.n_targets = 0;
    options.requests = 40; /* as asked for */
    run = perform_with(&workload_sale, (struct fake_defects){0});
    assert_int_equal(run.load.completed, 40);
    assert_false(run_cut_short(&run, NULL, 0));
}
