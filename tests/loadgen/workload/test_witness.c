/* The judge believes no figure that the service tells: each lie is found, and who tells it named.
 */
#include "run_rig.h"
#include "rows.h"

static struct run run_of_liar(const struct workload *workload, const char *lie)
{
    options.requests = workload == &workload_sale ? 0 : 60;
    options.accounts = 2;
    struct run run = perform_with(workload, (struct fake_defects){.lie = lie, .lie_nth = 5});
    stop_fakes(NULL);
    options.n_targets = 0;
    return run;
}

TEST_THAT_WITH(whoever_tells_the_truth_is_believed, reset, stop_fakes)
{
    static const struct workload *const judged[] = {&workload_sale, &workload_accounts,
                                                    &workload_transfers};
    for (size_t i = 0; i < 3; i++) {
        struct run run = run_of_liar(judged[i], "nothing.at-all");
        assert_true(verdict_is_safe(&run.verdict));
        assert_true(run_as_claimed(&run));
        assert_int_equal(run.n_disagreements, 0);
    }
}

/* The store is sound; one figure of all that is told is not. */
TEST_THAT_WITH(lie_in_any_one_figure_is_broken, reset, stop_fakes)
{
    static const char *const lies[] = {
        "audit.initial",    "audit.current",  "audit.ledger_sum",   "audit.sold",
        "audit.restocked",  "audit.oversold", "audit.lost_updates", "audit.lost_amount",
        "audit.duplicates", "audit.negative", "audit.broken",       "shown.stock",
        "shown.balance",    "shown.version",  "shown.sold",         "row.before",
        "row.after",        "row.delta",      "row.version_before", "row.txn_id",
        "row.missing",      "row.twice",      "row.added"};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        for (int sale = 0; sale < 2; sale++) {
            bool of_accounts = strcmp(lies[i], "shown.balance") == 0;
            bool of_items =
                strcmp(lies[i], "shown.stock") == 0 || strcmp(lies[i], "shown.sold") == 0;
            if (sale ? of_accounts : of_items)
                continue; /* not told of these */
            struct run run = run_of_liar(sale ? &workload_sale : &workload_accounts, lies[i]);
            assert_true(run.judged);
            if (!verdict_is_broken(&run.verdict) || run_as_claimed(&run))
                fail_msg("%s of %s is believed", lies[i], run.workload->name);
            bool one_sided = strncmp(lies[i], "row.txn_id", 10) != 0;
            if (one_sided && run.n_disagreements == 0)
                fail_msg("%s of %s: nobody is named", lies[i], run.workload->name);
        }
}

TEST_THAT_WITH(disagreement_says_who_tells_what, reset, stop_fakes)
{
    struct run run = run_of_liar(&workload_sale, "audit.sold");
    char text[60];
    assert_int_equal(run.verdict.disagreements, 1);
    assert_int_equal(run.n_disagreements, 1);
    assert_string_equal(run.disagreements[0].figure, "sold");
    assert_int_equal(run.disagreements[0].service, STOCK + 1);
    assert_int_equal(run.disagreements[0].own, STOCK);
    assert_int_equal(strncmp(run.disagreements[0].resource, "item:sale-", 10), 0);
    assert_string_equal(run_verdict_text(&run, text, sizeof text), "MISMATCH 1");
}

/* Each of these is in the ledger, and the audit says that all is well. */
TEST_THAT_WITH(audit_that_finds_nothing_hides_nothing, reset, stop_fakes)
{
    struct run run =
        perform_with(&workload_sale, (struct fake_defects){.oversell = 4, .clean_audit = true});
    assert_int_equal(run.verdict.oversold, 4);
    assert_true(run.verdict.disagreements > 0);
    stop_fakes(NULL);
    options.n_targets = 0;
    options.requests = 100;
    options.accounts = 1;
    run = perform_with(&workload_accounts,
                       (struct fake_defects){.lose_nth = 50, .clean_audit = true});
    assert_int_equal(run.verdict.lost_updates, 1);
    assert_true(run.verdict.lost_amount > 0);
    assert_true(run.has_counterexample); /* from the rows */
    assert_int_equal(run.counterexample[0].version_before, run.counterexample[1].version_before);
    stop_fakes(NULL);
    options.n_targets = 0;
    run = perform_with(&workload_accounts,
                       (struct fake_defects){.double_nth = 50, .clean_audit = true});
    assert_int_equal(run.verdict.duplicates, 1);
}

/* Audit, ledger and item tell one story, of 30 sold; 34 buyers have an order. */
TEST_THAT_WITH(liars_who_agree_are_found_by_the_answers, reset, stop_fakes)
{
    struct run run =
        perform_with(&workload_sale, (struct fake_defects){.oversell = 4, .hides_excess = true});
    assert_int_equal(run.verdict.disagreements, 0);
    assert_int_equal(run.verdict.oversold, 0);
    assert_int_equal(run.accepted, STOCK + 4);
    assert_int_equal(run.verdict.mismatch, 4);
    assert_true(verdict_is_broken(&run.verdict));
}

/* Rows that the service does not show yet are not missing: a service that is right is not accused.
 */
TEST_THAT_WITH(feed_that_is_held_up_is_not_judged, reset, stop_fakes)
{
    static const struct workload *const judged[] = {&workload_sale, &workload_accounts};
    char text[60];
    options.patience_ms = SHORT_PATIENCE_MS;
    for (size_t i = 0; i < 2; i++) {
        struct run run = perform_with(judged[i], (struct fake_defects){.held_row = 10});
        assert_int_equal(run.failed, 0);
        assert_false(run.judged);
        assert_false(run_broke_claim(&run));
        assert_string_equal(run_verdict_text(&run, text, sizeof text), "NOT JUDGED");
        assert_non_null(strstr(run.message, "an open transaction on the database server"));
        stop_fakes(NULL);
        options.n_targets = 0;
    }
}

TEST_THAT(the_worse_of_two_witnesses_counts)
{
    struct verdict verdict = {.oversold = 2, .broken = 7};
    verdict_worse(&verdict, &(struct verdict){.oversold = 3, .broken = 1, .unknown = 1});
    assert_int_equal(verdict.oversold, 3);
    assert_int_equal(verdict.broken, 7);
    assert_int_equal(verdict.unknown, 1);
}

/* -- the chain, row by row --------------------------------------------------------------------- */

struct step {
    int64_t version_before, before, delta, after;
    const char *txn_id;
};

/* The account starts at 100, version 1 after its creation. */
static struct audit_row audit_of(const struct step *steps, size_t n, int64_t current,
                                 int64_t version)
{
    struct rows rows = {0};
    struct audit_row audit;
    const char *missing;
    const struct rows_resource resource = {
        .name = "account:a", .initial = 100, .current = current, .version = version};
    for (size_t i = 0; i <= n; i++) {
        static const struct step creation = {0, 100, 0, 100, "reset\taccount:a:1"};
        const struct step *step = i == 0 ? &creation : &steps[i - 1];
        json_t *row =
            json_pack("{sI sI sI sI sI sI ss ss}", "id", (json_int_t)i + 1, "version_before",
                      step->version_before, "before", step->before, "after", step->after, "delta",
                      step->delta, "at_us", (json_int_t)0, "txn_id", step->txn_id, "instance", "x");
        assert_int_equal(rows_add(&rows, row, &missing), 0);
        json_decref(row);
    }
    rows_audit(&rows, &resource, &audit);
    rows_free(&rows);
    return audit;
}

TEST_THAT(every_way_in_which_rows_do_not_fit_is_counted)
{
    static const struct {
        const char *name;
        struct step steps[3];
        size_t n;
        int64_t current, version, broken, lost_updates, lost_amount;
    } cases[] = {
        {"sound", {{1, 100, -1, 99, "a"}, {2, 99, -1, 98, "b"}}, 2, 98, 3, 0, 0, 0},
        {"gap", {{1, 100, -1, 99, "a"}, {3, 99, -1, 98, "b"}}, 2, 98, 4, 1, 0, 0},
        {"fork", {{1, 100, -1, 99, "a"}, {1, 100, -2, 98, "b"}}, 2, 98, 2, 0, 1, 1},
        {"goes on from either side of a fork",
         {{1, 100, -1, 99, "a"}, {1, 100, -2, 98, "b"}, {2, 99, -1, 98, "c"}},
         3,
         98,
         3,
         0,
         1,
         2},
        {"another value than was left",
         {{1, 100, -1, 99, "a"}, {2, 100, -1, 99, "b"}},
         2,
         99,
         3,
         1,
         0,
         1},
        {"does not add up", {{1, 100, -1, 98, "a"}}, 1, 98, 2, 1, 0, 1},
        {"version ahead of the rows", {{1, 100, -1, 99, "a"}}, 1, 99, 3, 1, 0, 0},
        {"value without a row", {{1, 100, -1, 99, "a"}}, 1, 98, 2, 0, 0, 1},
        {"created twice", {{1, 100, 0, 100, "reset\taccount:a:2"}}, 1, 100, 2, 1, 0, 0},
        {"change in disguise", {{1, 100, -1, 99, "reset\taccount:a:2"}}, 1, 99, 2, 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct audit_row audit =
            audit_of(cases[i].steps, cases[i].n, cases[i].current, cases[i].version);
        if (audit.broken != cases[i].broken || audit.lost_updates != cases[i].lost_updates ||
            audit.lost_amount != cases[i].lost_amount)
            fail_msg("%s: broken %lld, lost updates %lld, lost amount %lld", cases[i].name,
                     (long long)audit.broken, (long long)audit.lost_updates,
                     (long long)audit.lost_amount);
    }
}

/* Some pieces, five more, and orders of 12. The rows of a stock change are told from others. */
TEST_THAT(pieces_that_came_are_no_sale)
{
    static const struct {
        int64_t initial;
        const char *kind;
        int64_t sold, restocked, oversold, broken;
    } cases[] = {{10, "restock", 12, 5, 0, 0},
                 {6, "restock", 12, 5, 1, 0},
                 {10, "cancellation", 7, 0, 0, 1}}; /* the item says 12 */
    static const int64_t deltas[] = {0, -4, 5, -8};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct rows rows = {0};
        struct audit_row audit;
        const char *missing;
        const int64_t initial = cases[c].initial;
        const struct rows_resource resource = {.name = "item:1",
                                               .initial = initial,
                                               .current = initial - 7,
                                               .version = 4,
                                               .sold = 12,
                                               .is_item = true};
        int64_t value = initial;
        for (int i = 0; i < 4; i++) {
            json_t *row = json_pack("{sI sI sI sI sI sI ss ss ss}", "id", (json_int_t)i + 1,
                                    "version_before", (json_int_t)i, "before", value, "after",
                                    value + deltas[i], "delta", deltas[i], "at_us", (json_int_t)0,
                                    "txn_id", i == 0 ? "reset\titem:1:1" : "k", "instance", "x",
                                    "kind", i == 2 ? cases[c].kind : "order");
            assert_int_equal(rows_add(&rows, row, &missing), 0);
            json_decref(row);
            value += deltas[i];
        }
        rows_audit(&rows, &resource, &audit);
        rows_free(&rows);
        assert_int_equal(audit.sold, cases[c].sold);
        assert_int_equal(audit.restocked, cases[c].restocked);
        assert_int_equal(audit.oversold, cases[c].oversold);
        assert_int_equal(audit.broken, cases[c].broken);
        assert_int_equal(audit.lost_amount, 0);
    }
}

TEST_THAT(ledger_without_a_row_is_broken)
{
    struct rows none = {0};
    struct audit_row audit;
    const struct rows_resource resource = {.name = "account:a", .initial = 100, .current = 100};
    rows_audit(&none, &resource, &audit);
    assert_int_equal(audit.broken, 1);
    assert_int_equal(audit.lost_amount, 0);
}

TEST_THAT(row_without_a_field_is_refused_by_its_name)
{
    static const char *const names[] = {"id",    "version_before", "before", "after",
                                        "delta", "at_us",          "txn_id", "instance"};
    json_t *row = json_pack("{sI sI sI sI sI sI ss ss}", "id", (json_int_t)1, "version_before",
                            (json_int_t)0, "before", (json_int_t)0, "after", (json_int_t)0, "delta",
                            (json_int_t)0, "at_us", (json_int_t)0, "txn_id", "t", "instance", "x");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rows rows = {0};
        const char *missing = NULL;
        json_t *less = json_copy(row);
        json_object_del(less, names[i]);
        assert_int_equal(rows_add(&rows, less, &missing), -1);
        assert_string_equal(missing, names[i]);
        json_decref(less);
        rows_free(&rows);
    }
    json_decref(row);
}
