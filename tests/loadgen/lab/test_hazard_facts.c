/* A fact is told if the record shows it, and only then: planted records, each with its opposite. */
#include "hazard_facts.h"
#include "tests.h"

#include <string.h>

static const struct hazard account = {.id = "account"},
                           item = {.id = "item", .subject = ITEM, .initial = 10},
                           transfer = {.id = "transfer", .subject = TRANSFER};
static struct run_event events[16];
static struct lab_result result;

static void record(const struct hazard *hazard, struct run_outcome outcome)
{
    result =
        (struct lab_result){.hazard = hazard, .fence = true, .outcome = outcome, .events = events};
}

static void event(const char *actor, const char *point, int64_t value, int64_t fence)
{
    struct run_event *one = &events[result.n_events++];
    *one = (struct run_event){.value = value, .has_value = value != 0, .fence = fence};
    strcpy(one->actor, actor);
    strcpy(one->point, point);
}

/* The words of this fact; NULL: it is not told. */
static const char *told(const char *id)
{
    static struct lab_fact facts[LAB_FACTS_MAX];
    const int n = lab_facts(&result, facts);
    for (int i = 0; i < n; i++)
        if (strcmp(facts[i].id, id) == 0)
            return facts[i].text[EN];
    return NULL;
}

TEST_THAT(one_withdrawal_is_named_only_if_one_of_this_amount_was_accepted)
{
    const struct run_outcome outcome = {
        .initial = 1000, .expected_final = 500, .final = 700, .lost_updates = 1};
    record(&account, outcome);
    event("A", "sends", 0, 0);
    event("A", "answer 201", 0, 0);
    assert_string_equal(told("not-deducted"), "The balance is 700 and should be 500: one "
                                              "withdrawal of 200 was not deducted.");
    assert_null(told("balance-right"));
    strcpy(events[1].point, "answer 503 lock-lost");
    assert_null(told("not-deducted"));
    assert_non_null(told("too-little"));
    record(&account, (struct run_outcome){.initial = 1000, .expected_final = 800, .final = 600});
    assert_string_equal(told("too-much"),
                        "The balance is 600 and should be 800: 200 too much was deducted.");
    record(&transfer, outcome);
    assert_non_null(told("balance-wrong"));
}

TEST_THAT(pieces_sold_are_not_called_stock)
{
    record(&item,
           (struct run_outcome){.initial = 1, .expected_final = 1, .final = 2, .oversold = 1});
    assert_string_equal(told("oversold"), "Sold: 2 of 1. Oversold by 1.");
    record(&item, (struct run_outcome){.initial = 10, .expected_final = 0, .final = 1});
    assert_string_equal(told("sold-wrong"), "Sold: 1 of 10. It should be 0.");
    record(&item, (struct run_outcome){.initial = 10, .duplicates = 1, .lost_updates = 1});
    assert_string_equal(told("sold-right"), "Sold: 0 of 10, as the orders say.");
    assert_string_equal(told("twice"), "Effects that happened a second time: 1.");
}

TEST_THAT(a_lock_released_before_the_commit_is_told)
{
    static const char *const early[] = {"sends",        "lock.acquired", "read",
                                        "lock.release", "lock.released", "committed"},
                             *const late[] = {"sends",     "lock.acquired", "read",
                                              "committed", "lock.release",  "lock.released"};
    for (int i = 0; i < 2; i++) {
        record(&account, (struct run_outcome){0});
        for (int k = 0; k < 6; k++) {
            const char *point = i == 0 ? early[k] : late[k];
            event("A", point,
                  strcmp(point, "read") == 0        ? 1000
                  : strcmp(point, "committed") == 0 ? 800
                                                    : 0,
                  0);
        }
        assert_true((told("released-early") != NULL) == (i == 0));
    }
}

TEST_THAT(two_are_inside_only_until_the_first_leaves)
{
    record(&account, (struct run_outcome){0});
    event("A", "lock.acquired", 0, 0);
    event("B", "lock.acquired", 0, 0);
    assert_string_equal(told("two-holders"), "B went in while A was still inside.");
    event("A", "lock.acquired", 0, 0); /* again: it has been inside all the time */
    struct lab_fact facts[LAB_FACTS_MAX];
    int n_told = 0;
    for (int i = lab_facts(&result, facts) - 1; i >= 0; i--)
        n_told += strcmp(facts[i].id, "two-holders") == 0;
    assert_int_equal(n_told, 1);
    static const char *const ends[] = {"lock.release", "killed", "rejected", "lost"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        record(&account, (struct run_outcome){0});
        event("A", "lock.acquired", 0, 0);
        event("A", ends[i], 0, 0);
        event("B", "lock.acquired", 0, 0);
        assert_null(told("two-holders"));
    }
}

/* Of A's own: the fence, or its look at the lock. */
TEST_THAT(a_late_write_is_refused_by_a_fence_only_after_its_check)
{
    static const char *const before[] = {"checked", "decided"};
    for (int i = 0; i < 2; i++) {
        record(&account, (struct run_outcome){0});
        event("A", "sends", 0, 0);
        event("A", before[i], 0, 33);
        event("B", "committed", 700, 34);
        event("A", "lost", 0, 33);
        event("A", "rejected", 0, 33);
        event("A", "answer 503 lock-lost", 0, 0);
        assert_true((told("fence-refused") != NULL) == (i == 0));
        assert_string_equal(told("refused"),
                            "A was refused (503 lock-lost), and its request changed nothing.");
    }
    strcpy(events[1].point, "checked");
    assert_string_equal(told("fence-refused"), "The store refused A's late write: fence 33 < 34.");
    result.fence = false;
    assert_null(told("fence-refused"));
}

/* "Refused" is not said of who has written: its last request has. */
TEST_THAT(an_answer_is_told_as_it_was)
{
    record(&account, (struct run_outcome){0});
    event("B", "sends", 0, 0);
    event("B", "read", 1000, 0);
    event("B", "committed", 700, 0);
    event("B", "rejected", 0, 0);
    event("B", "answer 503 unavailable", 0, 0);
    assert_null(told("refused"));
    strcpy(events[4].point, "answer 503 lock-timeout");
    assert_string_equal(told("timed-out"),
                        "B did not get the lock in its time (503 lock-timeout).");
    strcpy(events[4].point, "no answer");
    assert_string_equal(told("no-answer"), "B got no answer.");
    strcpy(events[4].point, "answer 201");
    assert_null(told("no-answer"));
    assert_null(told("timed-out"));
}

TEST_THAT(a_contradiction_is_two_rows_from_one_version)
{
    struct run_outcome outcome = {
        .has_fork = true,
        .fork = {{.txn_id = "h1-A1", .version_before = 1, .before = 1000, .after = 800},
                 {.txn_id = "h1-B1", .version_before = 1, .before = 1000, .after = 700}}};
    record(&account, outcome);
    assert_string_equal(told("fork"), "A and B started from one version of the row, and from one "
                                      "value (1,000). A wrote 800, and B 700.");
    outcome.fork[1].version_before = 2;
    record(&account, outcome);
    assert_null(told("fork"));
}

TEST_THAT(a_payment_after_the_closing_is_told)
{
    record(&item, (struct run_outcome){.initial = 10, .final = 1});
    event("tasks", "A's order is closed", 0, 0);
    event("A", "answer 201", 0, 0);
    assert_non_null(told("paid-and-closed"));
    strcpy(events[1].point, "answer 409 order-closed");
    assert_null(told("paid-and-closed"));
}
