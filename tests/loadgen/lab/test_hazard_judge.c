/* A run is safe only if nothing was lost and everybody was served whom its row serves. */
#include "hazard_run.h"
#include "tests.h"

static struct hazard_run run;

/* A run of this hazard in which A and B had these answers; the ledger agrees with them. */
static enum hazard_outcome outcome_of(const struct hazard *hazard, enum hazard_answer a,
                                      enum hazard_answer b)
{
    run = (struct hazard_run){.hazard = hazard};
    run.actors[A] = (struct actor){.times = 1, .answer = a};
    run.actors[B] = (struct actor){.times = 1, .answer = b};
    return run_classify(&run, &(struct audit_row){0});
}

TEST_THAT(each_answer_has_its_meaning)
{
    static const struct {
        int status;
        const char *problem;
        enum hazard_answer answer;
    } rows[] = {
        {201, "", ANSWER_SERVED},
        {409, "sold-out", ANSWER_SOLD_OUT},
        {409, "order-closed", ANSWER_REFUSED},
        {503, "lock-lost", ANSWER_REFUSED},
        {503, "unavailable", ANSWER_REFUSED},
        {503, "lock-timeout", ANSWER_STUCK},
        {-1, "", ANSWER_NONE},
        {400, "bad-request", ANSWER_FAILED},
        {404, "not-found", ANSWER_FAILED},
        {409, "insufficient-funds", ANSWER_FAILED},
        {500, "", ANSWER_FAILED},
        {503, "", ANSWER_FAILED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(actor_answer_of(rows[i].status, rows[i].problem), rows[i].answer);
}

TEST_THAT(who_is_not_served_is_not_safe)
{
    static const struct hazard usual = {.id = "usual"};
    static const struct hazard patient = {.id = "patient", .gives_up = true};
    assert_int_equal(outcome_of(&usual, ANSWER_SERVED, ANSWER_SERVED), HAZARD_SAFE);
    assert_int_equal(outcome_of(&usual, ANSWER_SERVED, ANSWER_FAILED), HAZARD_REFUSED);
    assert_int_equal(outcome_of(&usual, ANSWER_NONE, ANSWER_SERVED), HAZARD_REFUSED);
    assert_int_equal(outcome_of(&usual, ANSWER_SERVED, ANSWER_SOLD_OUT), HAZARD_REFUSED);
    assert_int_equal(outcome_of(&usual, ANSWER_REFUSED, ANSWER_SERVED), HAZARD_REFUSED);
    assert_int_equal(outcome_of(&usual, ANSWER_REFUSED, ANSWER_STUCK), HAZARD_STUCK);
    assert_int_equal(outcome_of(&patient, ANSWER_SERVED, ANSWER_STUCK), HAZARD_REFUSED);
}

/* The killed holder need not be served, and whoever comes after it must be. */
TEST_THAT(row_says_who_is_not_served)
{
    const struct hazard *crash = hazard_find("row-crash"), *last_piece = hazard_find("off-by-one");
    assert_int_equal(outcome_of(crash, ANSWER_NONE, ANSWER_SERVED), HAZARD_SAFE);
    assert_int_equal(outcome_of(crash, ANSWER_NONE, ANSWER_FAILED), HAZARD_REFUSED);
    assert_int_equal(outcome_of(last_piece, ANSWER_SERVED, ANSWER_SOLD_OUT), HAZARD_SAFE);
    assert_int_equal(outcome_of(last_piece, ANSWER_SOLD_OUT, ANSWER_SOLD_OUT), HAZARD_REFUSED);
}

/* As many as there are pieces, and no request that failed. */
TEST_THAT(crowd_buys_exactly_what_there_is)
{
    static const struct {
        long crowd, accepted, refused, failed;
        enum hazard_outcome outcome;
    } rows[] = {
        {2000, 100, 1900, 0, HAZARD_SAFE},   {2000, 68, 0, 1932, HAZARD_REFUSED},
        {2000, 99, 1901, 0, HAZARD_REFUSED}, {2000, 100, 1899, 1, HAZARD_REFUSED},
        {50, 50, 0, 0, HAZARD_SAFE},         {50, 49, 1, 0, HAZARD_REFUSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hazard hazard = {.subject = ITEM, .initial = 100, .crowd = rows[i].crowd};
        run = (struct hazard_run){.hazard = &hazard};
        atomic_store(&run.crowd.accepted, rows[i].accepted);
        atomic_store(&run.crowd.refused, rows[i].refused);
        atomic_store(&run.crowd.failed, rows[i].failed);
        run.outcome.final = run.outcome.expected_final = rows[i].accepted;
        assert_int_equal(run_classify(&run, &(struct audit_row){0}), rows[i].outcome);
    }
}

TEST_THAT(loss_is_unsafe_whoever_was_served)
{
    static const struct hazard hazard = {.id = "usual"};
    run = (struct hazard_run){.hazard = &hazard};
    assert_int_equal(run_classify(&run, &(struct audit_row){.duplicates = 1}), HAZARD_UNSAFE);
    run.actors[A] = (struct actor){.times = 1, .answer = ANSWER_STUCK};
    assert_int_equal(run_classify(&run, &(struct audit_row){.lost_updates = 1}), HAZARD_UNSAFE);
    run.outcome.final = 1;
    assert_int_equal(run_classify(&run, &(struct audit_row){0}), HAZARD_UNSAFE);
}

/* An order whose time is over is given back, unless it was paid for. */
TEST_THAT(order_that_nobody_closes_is_not_safe)
{
    static const struct hazard hazard = {.subject = ITEM, .initial = 10, .reserve_s = 3};
    run = (struct hazard_run){.hazard = &hazard};
    assert_int_equal(run_classify(&run, &(struct audit_row){0}), HAZARD_REFUSED);
    run.tasks.closed = true;
    assert_int_equal(run_classify(&run, &(struct audit_row){0}), HAZARD_SAFE);
    run.tasks.closed = false;
    run.actors[A] = (struct actor){.times = 2, .pays = true, .answer = ANSWER_SERVED};
    assert_int_equal(run_classify(&run, &(struct audit_row){0}), HAZARD_SAFE);
}
