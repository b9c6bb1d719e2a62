/* Each kind of loss is planted and must be found; what is right must pass. */
#include "verdict.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

/* A sale that went well: 100 in stock, 150 wanted, 100 sold. */
static const struct audit_row good_item = {
    .resource = "item:1", .initial = 100, .current = 0, .ledger_sum = -100, .sold = 100};
static const struct client_count good_buyers = {.accepted = 100, .demand = 150};

static struct verdict judge_item(const struct audit_row *audit, const struct client_count *client)
{
    struct verdict verdict;
    verdict_of_item(audit, client, &verdict);
    return verdict;
}

TEST_THAT(exact_sale_is_safe)
{
    struct verdict verdict = judge_item(&good_item, &good_buyers);
    char text[64];
    assert_true(verdict_is_safe(&verdict));
    assert_string_equal(verdict_text(&verdict, text, sizeof text), "OK");
}

TEST_THAT(sale_below_stock_is_safe_when_fewer_wanted)
{
    struct audit_row audit = good_item;
    audit.sold = 40, audit.current = 60, audit.ledger_sum = -40;
    struct client_count client = {.accepted = 40, .demand = 40};
    struct verdict verdict = judge_item(&audit, &client);
    assert_true(verdict_is_safe(&verdict));
}

TEST_THAT(unsold_pieces_are_undersold_when_buyers_were_turned_away)
{
    struct audit_row audit = good_item;
    audit.sold = 97, audit.current = 3, audit.ledger_sum = -97;
    struct client_count client = {.accepted = 97, .demand = 150};
    struct verdict verdict = judge_item(&audit, &client);
    char text[64];
    assert_int_equal(verdict.undersold, 3);
    assert_true(verdict_is_broken(&verdict));
    assert_string_equal(verdict_text(&verdict, text, sizeof text), "UNDERSOLD 3");
}

/* 100, and 20 that came while buyers were there: 120 could have been sold. */
TEST_THAT(pieces_that_came_may_be_undersold)
{
    struct audit_row audit = good_item;
    audit.restocked = 20, audit.current = 20, audit.ledger_sum = -80;
    assert_int_equal(judge_item(&audit, &good_buyers).undersold, 20);
    audit.sold = 120, audit.current = 0, audit.ledger_sum = -100;
    const struct client_count client = {.accepted = 120, .demand = 150};
    const struct verdict verdict = judge_item(&audit, &client);
    assert_true(verdict_is_safe(&verdict));
}

TEST_THAT(oversale_is_named_first)
{
    struct audit_row audit = good_item;
    audit.sold = 1173, audit.oversold = 1073, audit.lost_updates = 61, audit.lost_amount = 61;
    struct client_count client = {.accepted = 1173, .demand = 2000};
    struct verdict verdict = judge_item(&audit, &client);
    char text[64];
    assert_string_equal(verdict_text(&verdict, text, sizeof text), "OVERSOLD 1,073");
    assert_int_equal(verdict.mismatch, 0);
    assert_int_equal(verdict.undersold, 0);
}

TEST_THAT(sale_beyond_a_users_limit_is_broken)
{
    json_t *json = json_pack("{ss sI sI sI sI sI sI sI sI sI s[]}", "resource", "item:1", "initial",
                             (json_int_t)100, "current", (json_int_t)0, "ledger_sum",
                             (json_int_t)-100, "sold", (json_int_t)100, "oversold", (json_int_t)0,
                             "over_limit", (json_int_t)2, "lost_updates", (json_int_t)0,
                             "lost_amount", (json_int_t)0, "duplicates", (json_int_t)0, "forks");
    struct audit_row audit;
    assert_non_null(json);
    assert_int_equal(audit_row_parse(json, &audit), 0);
    json_decref(json);
    struct verdict verdict = judge_item(&audit, &good_buyers);
    char text[64];
    assert_string_equal(verdict_text(&verdict, text, sizeof text), "OVER LIMIT 2");
    assert_true(verdict_is_broken(&verdict));
}

TEST_THAT(order_answered_but_not_stored_is_a_mismatch)
{
    struct client_count client = good_buyers;
    client.accepted = 101;
    struct verdict verdict = judge_item(&good_item, &client);
    assert_int_equal(verdict.mismatch, 1);
    assert_true(verdict_is_broken(&verdict));
}

TEST_THAT(order_stored_but_refused_to_the_buyer_is_a_mismatch)
{
    struct client_count client = good_buyers;
    client.accepted = 99;
    struct verdict verdict = judge_item(&good_item, &client);
    assert_int_equal(verdict.mismatch, 1);
}

TEST_THAT(unknown_order_explains_one_piece_but_is_not_safe)
{
    struct client_count client = {.accepted = 99, .demand = 150, .unknown = 1, .unknown_amount = 1};
    struct verdict verdict = judge_item(&good_item, &client);
    assert_int_equal(verdict.mismatch, 0);
    assert_int_equal(verdict.unknown, 1);
    assert_false(verdict_is_safe(&verdict));
    assert_false(verdict_is_broken(&verdict));
    client.accepted = 97;
    verdict = judge_item(&good_item, &client);
    assert_int_equal(verdict.mismatch, 2);
}

TEST_THAT(acknowledged_change_missing_in_the_ledger_is_a_mismatch)
{
    struct audit_row audit = {.initial = 1000, .current = 800, .ledger_sum = -200};
    struct client_count client = {.accepted = -500};
    struct verdict verdict;
    verdict_of_account(&audit, &client, &verdict);
    assert_int_equal(verdict.mismatch, 300);
    client.unknown = 1, client.unknown_amount = 300;
    verdict_of_account(&audit, &client, &verdict);
    assert_int_equal(verdict.mismatch, 0);
}

TEST_THAT(every_defect_alone_is_broken){
#define PLANT(name, text)                                                                          \
    {                                                                                              \
        struct verdict verdict = {.name = 1};                                                      \
        bool is_unknown = strcmp(#name, "unknown") == 0;                                           \
        assert_false(verdict_is_safe(&verdict));                                                   \
        assert_int_equal(verdict_is_broken(&verdict), !is_unknown);                                \
        char words[64];                                                                            \
        assert_string_not_equal(verdict_text(&verdict, words, sizeof words), "OK");                \
    }
    VERDICT_MAP(PLANT)
#undef PLANT
}

TEST_THAT(unguarded_run_must_lose_to_be_as_claimed)
{
    struct verdict safe = {0}, lost = {.lost_updates = 1}, unknown = {.unknown = 1};
    assert_true(verdict_as_claimed(&safe, true));
    assert_false(verdict_as_claimed(&safe, false));
    assert_true(verdict_as_claimed(&lost, false));
    assert_false(verdict_as_claimed(&lost, true));
    assert_false(verdict_as_claimed(&unknown, true));
    assert_false(verdict_as_claimed(&unknown, false));
}

static json_t *audit_json(const char *forks)
{
    char text[2000];
    snprintf(text, sizeof text,
             "{\"resource\":\"item:1\",\"initial\":100,\"current\":3,\"ledger_sum\":-98,"
             "\"sold\":98,\"oversold\":0,\"lost_updates\":1,\"lost_amount\":1,\"duplicates\":0,"
             "\"negative\":0,\"broken\":2,\"forks\":[%s]}",
             forks);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

#define ROW(txn, before, after)                                                                    \
    "{\"txn_id\":\"" txn "\",\"instance\":\"shop-1\",\"before\":" before ",\"after\":" after       \
    ",\"version_before\":63,\"at_us\":5}"

TEST_THAT(audit_is_read_with_its_plainest_fork)
{
    json_t *json = audit_json("[" ROW("a", "40", "39") "," ROW(
        "b", "41", "40") "],"
                         "[" ROW("c", "37", "36") "," ROW("d", "37", "35") "]");
    struct audit_row row;
    assert_int_equal(audit_row_parse(json, &row), 0);
    json_decref(json);
    assert_int_equal(row.current, 3);
    assert_int_equal(row.broken, 2);
    assert_true(row.has_fork);
    assert_string_equal(row.fork[0].txn_id, "c");
    assert_string_equal(row.fork[1].txn_id, "d");
    assert_int_equal(row.fork[1].delta, -2);
    assert_string_equal(row.fork[1].resource, "item:1");
}

TEST_THAT(audit_without_a_needed_field_is_refused)
{
    static const char *const needed[] = {"resource",     "initial",     "current",
                                         "ledger_sum",   "sold",        "oversold",
                                         "lost_updates", "lost_amount", "duplicates"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        json_t *json = audit_json("");
        struct audit_row row;
        json_object_del(json, needed[i]);
        assert_int_equal(audit_row_parse(json, &row), -1);
        json_decref(json);
    }
    struct audit_row row;
    json_t *half = audit_json("[" ROW("a", "40", "39") "]");
    assert_int_equal(audit_row_parse(half, &row), -1);
    json_decref(half);
    assert_int_equal(audit_row_parse(NULL, &row), -1);
}
