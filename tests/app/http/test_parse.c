/* The rules for JSON bodies, field by field. */
#include "json_room.h"
#include "parse.h"
#include "resource.h"
#include "tests.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct route *route_of(enum op_kind kind)
{
    for (size_t i = 0; i < n_routes; i++)
        if (routes[i].kind == kind)
            return &routes[i];
    return NULL;
}

static bool parse_n(enum op_kind kind, const char *body, size_t n, struct op *op)
{
    static char answer[DB_BODY_MAX + 1]; /* large enough for any answer */
    memset(op, 0, sizeof(*op));
    op->answer.body = answer;
    op->answer.body_room = sizeof(answer);
    strcpy(op->id, "1");
    char *copy = malloc(n > 0 ? n : 1); /* exactly n bytes: AddressSanitizer sees an overread */
    memcpy(copy, body, n);
    bool good = parse_body(route_of(kind), copy, n, op);
    free(copy);
    if (!good)
        assert_int_equal(op->answer.problem, PROBLEM_BAD_REQUEST);
    return good;
}

static bool parse(enum op_kind kind, const char *body, struct op *op)
{
    return parse_n(kind, body, strlen(body), op);
}

TEST_THAT(fields_and_defaults_are_filled)
{
    struct op op;
    assert_true(parse(OP_PUT_ITEM, "{\"stock\":5}", &op));
    assert_int_equal(op.amount, 5);
    assert_int_equal(op.price, 0);
    assert_int_equal(op.per_user_limit, 0);
    assert_int_equal(op.reserve_s, 900);
    assert_int_equal(op.fence, -1);
    assert_string_equal(op.guard, "");
    assert_string_equal(op.request, "");
    assert_true(parse(OP_PUT_ITEM,
                      "{\"stock\":9223372036854775807,\"price\":1999,\"per_user_limit\":1,"
                      "\"guard\":\"redis-token\",\"reserve_s\":60,\"fence\":false}",
                      &op));
    assert_true(op.amount == INT64_MAX);
    assert_int_equal(op.price, 1999);
    assert_int_equal(op.per_user_limit, 1);
    assert_int_equal(op.reserve_s, 60);
    assert_int_equal(op.fence, 0);
    assert_string_equal(op.guard, "redis-token");
    assert_true(parse(OP_CHANGE_BALANCE, "{\"amount\":-200,\"reason\":\"payment\"}", &op));
    assert_int_equal(op.amount, -200);
}

TEST_THAT(a_number_that_is_too_large_is_not_called_bad_json)
{
    struct op op;
    assert_false(parse(OP_PUT_ITEM, "{\"stock\":9223372036854775808}", &op));
    assert_non_null(strstr(op.answer.body, "too large a number"));
    assert_false(parse(OP_PUT_ITEM, "{\"stock\":9223372036854775807", &op));
    assert_non_null(strstr(op.answer.body, "not valid JSON"));
}

TEST_THAT(retries_read_alike_and_other_requests_do_not)
{
    static const struct {
        enum op_kind kind;
        const char *body;
    } distinct[] = {{OP_PLACE_ORDER, "{\"user_id\":\"u1\"}"},
                    {OP_PLACE_ORDER, "{\"user_id\":\"u2\"}"},
                    {OP_PLACE_ORDER, "{\"user_id\":\"u1\",\"quantity\":2}"},
                    {OP_PAY_ORDER, "{}"},
                    {OP_CANCEL_ORDER, "{}"},
                    {OP_REFUND_ORDER, "{}"},
                    {OP_REFUND_ORDER, "{\"reason\":\"broken\"}"},
                    {OP_CHANGE_BALANCE, "{\"amount\":1}"},
                    {OP_CHANGE_BALANCE, "{\"amount\":1,\"reason\":\"a\"}"},
                    {OP_CHANGE_BALANCE, "{\"amount\":-1}"},
                    {OP_CHANGE_STOCK, "{\"delta\":1,\"reason\":\"delivery\"}"},
                    {OP_CHANGE_STOCK, "{\"delta\":2,\"reason\":\"delivery\"}"},
                    {OP_CHANGE_STOCK, "{\"delta\":1,\"reason\":\"found\"}"},
                    {OP_CHANGE_STOCK, "{\"delta\":1,\"reason\":\"found\",\"reference\":\"7\"}"},
                    {OP_TRANSFER, "{\"from\":\"a\",\"to\":\"b\",\"amount\":1}"},
                    {OP_TRANSFER, "{\"from\":\"b\",\"to\":\"a\",\"amount\":1}"}};
    enum { N = sizeof(distinct) / sizeof(distinct[0]) };
    static struct op ops[N];
    for (size_t i = 0; i < N; i++) {
        assert_true(parse(distinct[i].kind, distinct[i].body, &ops[i]));
        assert_true(ops[i].request[0] != '\0');
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(ops[i].request, ops[k].request);
    }
    struct op same;
    assert_true(parse(OP_PLACE_ORDER, " {\"quantity\": 1, \"user_id\":\"\\u00751\"}\n", &same));
    assert_string_equal(same.request, ops[0].request);
    assert_true(parse(OP_PAY_ORDER, "", &same));
    assert_string_equal(same.request, ops[3].request);
}

TEST_THAT(the_longest_request_fits)
{
    struct op op;
    char body[512], id[65], reason[DB_REASON_MAX + 2];
    memset(id, 'i', 64);
    id[64] = '\0';
    snprintf(body, sizeof(body),
             "{\"from\":\"%s\",\"to\":\"%.63sx\",\"amount\":9223372036854775807}", id, id);
    assert_true(parse(OP_TRANSFER, body, &op));
    memset(reason, 'r', sizeof(reason));
    reason[DB_REASON_MAX] = '\0';
    memset(&op, 0, sizeof(op));
    strcpy(op.id, id);
    snprintf(body, sizeof(body), "{\"amount\":-9223372036854775807,\"reason\":\"%s\"}", reason);
    assert_true(parse_body(route_of(OP_CHANGE_BALANCE), body, strlen(body), &op));
    reason[DB_REASON_MAX] = 'r';
    reason[DB_REASON_MAX + 1] = '\0';
    snprintf(body, sizeof(body), "{\"amount\":1,\"reason\":\"%s\"}", reason);
    assert_false(parse(OP_CHANGE_BALANCE, body, &op));
    memset(&op, 0, sizeof(op));
    strcpy(op.id, id);
    static const char change[] =
        "{\"delta\":-9223372036854775807,\"reason\":\"%.24s\",\"reference\":\"%.*s\"}";
    snprintf(body, sizeof(body), change, reason, DB_REFERENCE_MAX, reason);
    assert_true(parse_body(route_of(OP_CHANGE_STOCK), body, strlen(body), &op));
    snprintf(body, sizeof(body), change, reason, DB_REFERENCE_MAX + 1, reason);
    assert_false(parse(OP_CHANGE_STOCK, body, &op));
}

TEST_THAT(malformed_bodies_are_refused)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "[]",
                                      "null",
                                      "1",
                                      "\"x\"",
                                      "{\"user_id\":\"u1\"} x",
                                      "{\"user_id\":\"u1\"}{}",
                                      "{\"user_id\":\"u1\",}",
                                      "{user_id:\"u1\"}",
                                      "{'user_id':'u1'}",
                                      "{\"user_id\":\"u\xff\"}",
                                      "{\"user_id\":\"\xc0\xaf\"}",
                                      "{\"user_id\":\"\xed\xa0\x80\"}",
                                      "{\"user_id\":\"u\\u0000\"}",
                                      "{\"user_id\":\"u\\ud800\"}",
                                      "\xef\xbb\xbf{\"user_id\":\"u1\"}",
                                      "{\"user_id\":\"u1\",\"user_id\":\"u1\"}",
                                      "{\"user_id\":\"u1\",\"quantity\":1,\"quantity\":2}",
                                      "{\"user_id\":\"u1\",\"x\":1}",
                                      "{\"user_id\":\"u1\",\"\":1}",
                                      "{\"user_id\":\"u1\",\"User_id\":\"u1\"}"};
    struct op op;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (parse(OP_PLACE_ORDER, bad[i], &op))
            fail_msg("taken: %s", bad[i]);
    assert_false(parse_n(OP_PLACE_ORDER, "{\"user_id\":\"u1\"}\0", 17, &op));
    assert_false(parse_n(OP_PLACE_ORDER, "{\"user_id\0\":\"u1\"}", 17, &op));
    static char deep[16384];
    memset(deep, '[', sizeof(deep));
    assert_false(parse_n(OP_PLACE_ORDER, deep, sizeof(deep), &op));
    assert_false(parse(OP_PAY_ORDER, "[]", &op));
    assert_false(parse(OP_PAY_ORDER, "{\"x\":1}", &op));
}

TEST_THAT(wrong_types_and_ranges_are_refused)
{
    static const struct {
        enum op_kind kind;
        const char *body, *named;
    } bad[] = {
        {OP_PLACE_ORDER, "{}", "user_id"},
        {OP_PLACE_ORDER, "{\"user_id\":null}", "user_id"},
        {OP_PLACE_ORDER, "{\"user_id\":1}", "user_id"},
        {OP_PLACE_ORDER, "{\"user_id\":\"\"}", "user_id"},
        {OP_PLACE_ORDER, "{\"user_id\":\"a b\"}", "user_id"},
        {OP_PLACE_ORDER, "{\"user_id\":\"a\\nb\"}", "user_id"},
        {OP_PLACE_ORDER,
         "{\"user_id\":\"01234567890123456789012345678901234567890123456789012345678901234\"}",
         "user_id"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":0}", "quantity"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":-1}", "quantity"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":1.0}", "quantity"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":1e0}", "quantity"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":\"1\"}", "quantity"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":true}", "quantity"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":null}", "quantity"},
        {OP_PLACE_ORDER, "{\"user_id\":\"u\",\"quantity\":1000000001}", "quantity"},
        {OP_PUT_ITEM, "{\"stock\":-1}", "stock"},
        {OP_PUT_ITEM, "{\"stock\":1,\"reserve_s\":0}", "reserve_s"},
        {OP_PUT_ITEM, "{\"stock\":1,\"fence\":1}", "fence"},
        {OP_PUT_ITEM, "{\"stock\":1,\"fence\":null}", "fence"},
        {OP_PUT_ITEM, "{\"stock\":1,\"guard\":\"\"}", "guard"},
        {OP_PUT_ITEM, "{\"stock\":1,\"guard\":\"0123456789012345678901234\"}", "guard"},
        {OP_PUT_ACCOUNT, "{}", "balance"},
        {OP_CHANGE_BALANCE, "{\"amount\":1,\"reason\":\"a\\u0007\"}", "reason"},
        {OP_CHANGE_BALANCE, "{\"amount\":-9223372036854775808}", "amount"},
        {OP_TRANSFER, "{\"from\":\"a\",\"to\":\"b\",\"amount\":0}", "amount"},
    };
    struct op op;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (parse(bad[i].kind, bad[i].body, &op))
            fail_msg("taken: %s", bad[i].body);
        assert_non_null(strstr(op.answer.body, bad[i].named));
    }
    assert_false(parse(OP_CHANGE_BALANCE, "{\"amount\":9223372036854775808}", &op));
    assert_false(parse(OP_CHANGE_BALANCE, "{\"amount\":99999999999999999999999}", &op));
}

/* -- memory for it ---------------------------------------------------------------------------- */

TEST_THAT(an_order_is_read_without_an_allocation)
{
    struct json_room room;
    json_room_enter(&room);
    json_t *order = json_loads("{\"user_id\":\"0123456789012345678901234567890123456789012345678901"
                               "234567890123\",\"quantity\":1000000000}",
                               JSON_REJECT_DUPLICATES, NULL);
    const bool inside =
        (char *)order >= room.bytes && (char *)order < room.bytes + sizeof room.bytes;
    const int pieces = room.live;
    json_decref(order);
    json_room_leave();
    assert_true(inside);
    assert_true(pieces >= 6); /* the object, its table, two names with their values */
    assert_true(room.used <= 1024);
}

TEST_THAT(a_document_beyond_its_room_is_whole)
{
    enum { NUMBERS = 2000 };
    static char text[NUMBERS * 5 + 3] = "[";
    for (int i = 0; i < NUMBERS; i++)
        snprintf(text + strlen(text), 6, "%d,", 1000 + i);
    text[strlen(text) - 1] = ']';
    struct json_room room;
    json_room_enter(&room);
    json_t *numbers = json_loads(text, 0, NULL);
    int64_t sum = 0;
    for (size_t i = 0; i < NUMBERS; i++)
        sum += json_integer_value(json_array_get(numbers, i));
    json_decref(numbers);
    json_room_leave();
    assert_true(sum == NUMBERS * INT64_C(1000) + (int64_t)NUMBERS * (NUMBERS - 1) / 2);
}

TEST_THAT(documents_of_others_are_malloced)
{
    json_t *before = json_pack("[i]", 1);
    struct json_room room;
    json_room_enter(&room);
    json_decref(before); /* not allocated from the room */
    assert_int_equal(room.live, 0);
    json_room_leave();
    json_t *list = json_pack("[i]", 2);
    char *text = json_dumps(list, JSON_COMPACT);
    assert_string_equal(text, "[2]");
    free(text);
    json_decref(list);
}

TEST_THAT(percent_encoding_is_strict)
{
    char text[8];
    assert_int_equal(percent_decode("a%2db", 5, text, sizeof(text)), 3);
    assert_string_equal(text, "a-b");
    assert_int_equal(percent_decode("1234567", 7, text, sizeof(text)), 7);
    assert_int_equal(percent_decode("12345678", 8, text, sizeof(text)), -1);
    static const char *const bad[] = {"%", "%4", "a%", "%g1", "%1g", "%00", "%%41"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(percent_decode(bad[i], strlen(bad[i]), text, sizeof(text)), -1);
    assert_int_equal(percent_decode("%41", 2, text, sizeof(text)), -1);
}

int main(void)
{
    json_room_set_up(); /* as the service does */
    return tests_run();
}
