/* The client's own record: duplicates, retries, decisions. */
#include "tally.h"
#include "tests.h"

enum { N = 20000, PATIENCE_MS = 1000 };

static struct tally tally;

static int open_tally(void **state)
{
    (void)state;
    return tally_init(&tally, N, 42, 30, PATIENCE_MS);
}

static int close_tally(void **state)
{
    (void)state;
    tally_free(&tally);
    return 0;
}

static struct load_answer answer(int status, const char *body, int64_t sent_us)
{
    return (struct load_answer){.end = LOAD_ANSWERED,
                                .status = status,
                                .body = body,
                                .retry_after_ms = -1,
                                .sent_us = sent_us};
}

#define PROBLEM(name) "{\"type\":\"/problems/" name "\",\"title\":\"x\"}"

TEST_FIXTURE(open_tally, close_tally);

TEST_THAT(wanted_share_are_duplicates_of_earlier_originals)
{
    int duplicates = 0;
    for (uint64_t seq = 0; seq < N; seq++) {
        uint64_t origin = tally_origin(&tally, seq);
        assert_true(origin <= seq);
        assert_int_equal(tally_origin(&tally, origin), origin);
        duplicates += origin != seq;
    }
    assert_in_range(duplicates, N * 28 / 100, N * 32 / 100);
}

TEST_THAT(other_seed_gives_other_duplicates)
{
    struct tally other = tally;
    int same = 0;
    other.seed = 43;
    for (uint64_t seq = 0; seq < 1000; seq++)
        same += tally_origin(&tally, seq) == tally_origin(&other, seq);
    assert_true(same < 900);
}

TEST_THAT(decided_answers_are_final)
{
    static const struct {
        int status;
        const char *body;
        enum tally_state wanted;
    } cases[] = {
        {201, "{\"order_id\":\"o1\"}", TALLY_ACCEPTED},
        {409, PROBLEM("sold-out"), TALLY_REFUSED},
        {409, PROBLEM("insufficient-funds"), TALLY_REFUSED},
        {422, PROBLEM("key-reused"), TALLY_FAILED},
        {404, "not a problem document", TALLY_FAILED},
    };
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct load_answer given = answer(cases[i].status, cases[i].body, 1);
        assert_int_equal(tally_outcome(&tally, i, &given), -1);
        assert_int_equal(tally.entries[i].state, cases[i].wanted);
    }
}

TEST_THAT(answers_for_now_are_retried)
{
    static const struct {
        int status;
        const char *body;
    } cases[] = {
        {409, PROBLEM("in-flight")},  {503, PROBLEM("lock-timeout")}, {503, PROBLEM("unavailable")},
        {503, PROBLEM("overloaded")}, {503, PROBLEM("lock-lost")},    {500, PROBLEM("internal")},
        {429, "slow down"},
    };
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct load_answer given = answer(cases[i].status, cases[i].body, 1);
        assert_true(tally_outcome(&tally, i, &given) > 0);
        assert_int_equal(tally.entries[i].state, TALLY_UNKNOWN);
    }
    assert_int_equal(tally.n_problems, 6);
}

/* Why everything stands still: not a request that is still under way, nor what was decided. */
TEST_THAT(the_first_refusal_for_now_is_kept_by_its_detail)
{
    static const struct {
        int status;
        const char *body, *kept;
    } cases[] = {
        {409, PROBLEM("in-flight"), ""},
        {409, PROBLEM("sold-out"), ""},
        {503, "{\"type\":\"/problems/unavailable\",\"detail\":\"Redis is away\"}",
         "503 Redis is away"},
        {429, "slow down", "503 Redis is away"},
    };
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct load_answer given = answer(cases[i].status, cases[i].body, 1);
        tally_outcome(&tally, i, &given);
        assert_string_equal(tally.refused_for_now, cases[i].kept);
    }
    assert_string_equal(tally.failure, "");
}

TEST_THAT(retry_after_is_obeyed_and_spread)
{
    struct load_answer given = answer(503, PROBLEM("overloaded"), 1);
    int64_t first = 0;
    bool spread = false;
    given.retry_after_ms = 500;
    for (uint64_t seq = 0; seq < 100; seq++) {
        int64_t delay_ms = tally_outcome(&tally, seq, &given);
        assert_true(delay_ms >= 500 && delay_ms < 1000);
        first = seq == 0 ? delay_ms : first;
        spread = spread || delay_ms != first;
    }
    assert_true(spread);
}

TEST_THAT(patience_ends)
{
    struct load_answer first = answer(503, PROBLEM("overloaded"), 1);
    struct load_answer late = answer(503, PROBLEM("overloaded"), 2 + PATIENCE_MS * 1000);
    assert_true(tally_outcome(&tally, 0, &first) >= 0);
    assert_int_equal(tally_outcome(&tally, 0, &late), -1);
    assert_int_equal(tally.entries[0].state, TALLY_UNKNOWN);
}

TEST_THAT(retry_after_beyond_patience_does_not_stretch_the_run)
{
    struct load_answer given = answer(503, PROBLEM("overloaded"), 1);
    given.retry_after_ms = 3600000;
    int64_t delay_ms = tally_outcome(&tally, 0, &given);
    assert_in_range(delay_ms, 1, PATIENCE_MS + 1);
    given.sent_us += delay_ms * 1000;
    assert_int_equal(tally_outcome(&tally, 0, &given), -1);
}

TEST_THAT(nothing_is_retried_once_stopped)
{
    atomic_bool stop = true;
    struct load_answer given = answer(503, PROBLEM("overloaded"), 1);
    tally.stop = &stop;
    assert_int_equal(tally_outcome(&tally, 0, &given), -1);
}

TEST_THAT(lost_answers_are_unknown_and_unsent_ones_are_not)
{
    static const enum load_end unknown[] = {LOAD_ABANDONED, LOAD_BROKEN, LOAD_TIMED_OUT,
                                            LOAD_BAD_ANSWER};
    for (uint64_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct load_answer given = {.end = unknown[i], .body = "", .sent_us = 1};
        assert_int_equal(tally_outcome(&tally, i, &given), -1);
        assert_int_equal(tally.entries[i].state, TALLY_UNKNOWN);
    }
    struct load_answer unsent = {.end = LOAD_NOT_SENT, .body = "", .sent_us = 1};
    assert_true(tally_outcome(&tally, 100, &unsent) > 0);
    assert_int_equal(tally.entries[100].state, TALLY_UNSENT);
}

/* Some request that is a duplicate, with its origin. */
static uint64_t some_duplicate(uint64_t *ret_origin)
{
    uint64_t seq = 1;
    while (tally_origin(&tally, seq) == seq)
        seq++;
    *ret_origin = tally_origin(&tally, seq);
    return seq;
}

TEST_THAT(duplicate_that_was_answered_decides_its_origin)
{
    uint64_t origin, duplicate = some_duplicate(&origin);
    struct load_answer lost = {.end = LOAD_BROKEN, .body = "", .sent_us = 1};
    struct load_answer accepted = answer(201, "{}", 1);
    tally_outcome(&tally, origin, &lost);
    tally_outcome(&tally, duplicate, &accepted);
    tally_settle(&tally);
    assert_int_equal(tally.entries[origin].state, TALLY_ACCEPTED);
    assert_int_equal(tally_count(&tally, TALLY_ACCEPTED), 1);
    assert_int_equal(tally_differing(&tally), 0);
}

TEST_THAT(unknown_duplicate_of_an_unsent_origin_is_to_be_found_out)
{
    uint64_t origin, duplicate = some_duplicate(&origin);
    struct load_answer lost = {.end = LOAD_BROKEN, .body = "", .sent_us = 1};
    tally_outcome(&tally, duplicate, &lost);
    tally_settle(&tally);
    assert_int_equal(tally.entries[origin].state, TALLY_UNKNOWN);
    assert_int_equal(tally_count(&tally, TALLY_UNKNOWN), 1);
}

TEST_THAT(replay_differing_in_body_or_status_is_counted)
{
    uint64_t origin, duplicate = some_duplicate(&origin);
    tally_decide(&tally, origin, 201, "{\"order_id\":\"o1\"}");
    tally_decide(&tally, duplicate, 201, "{\"order_id\":\"o1\"}");
    assert_int_equal(tally_differing(&tally), 0);
    tally_decide(&tally, duplicate, 201, "{\"order_id\":\"o2\"}");
    assert_int_equal(tally_differing(&tally), 1);
    tally_decide(&tally, duplicate, 409, "{\"order_id\":\"o1\"}");
    assert_int_equal(tally_differing(&tally), 1);
}
