/* Unit tests of the service's small parts. */
#include "answer.h"
#include "format.h"
#include "guard.h"
#include "inflight.h"
#include "metric.h"
#include "order_id.h"
#include "service.h"
#include "tests.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- running keys ----------------------------------------------------------------------------- */

TEST_THAT(running_key_is_refused_until_it_is_removed)
{
    struct inflight *table = inflight_open();
    struct op first = {.key = "k"}, second = {.key = "k"}, other = {.key = "l"};
    assert_true(inflight_add(table, &first));
    assert_false(inflight_add(table, &second));
    assert_true(inflight_add(table, &other));
    assert_true(inflight_has(table, "k"));
    inflight_remove(table, &first);
    assert_false(inflight_has(table, "k"));
    assert_true(inflight_has(table, "l"));
    assert_true(inflight_add(table, &second));
    inflight_close(table);
}

TEST_THAT(many_running_keys_are_told_apart)
{
    enum { N = 40000 }; /* more than the table has chains */
    struct inflight *table = inflight_open();
    struct op *ops = calloc(N, sizeof *ops);
    for (int i = 0; i < N; i++) {
        snprintf(ops[i].key, sizeof ops[i].key, "key-%d", i);
        assert_true(inflight_add(table, &ops[i]));
    }
    for (int i = 0; i < N; i += 2)
        inflight_remove(table, &ops[i]);
    for (int i = 0; i < N; i++)
        assert_int_equal(inflight_has(table, ops[i].key), i % 2 == 1);
    free(ops);
    inflight_close(table);
}

/* -- text ------------------------------------------------------------------------------------ */

/* For every buffer size from 1 on: the same text and length as printf's. */
__attribute__((format(printf, 1, 2))) static void expect_as_printf(const char *format, ...)
{
    char ours[100], expected[100];
    for (size_t size = 1; size <= sizeof ours; size++) {
        va_list args, again;
        va_start(args, format);
        va_copy(again, args);
        memset(ours, '#', sizeof ours);
        memset(expected, '#', sizeof expected);
        int length = format_text(ours, size, format, args);
        assert_int_equal(vsnprintf(expected, size, format, again), length);
        va_end(again);
        va_end(args);
        assert_string_equal(ours, expected);
        if (size < sizeof ours)
            assert_int_equal(ours[size], '#'); /* nothing is written beyond its size */
    }
}

TEST_THAT(text_is_formatted_as_by_printf)
{
    expect_as_printf("plain");
    expect_as_printf("%s", "");
    expect_as_printf("{\"id\":\"%s\",\"stock\":%" PRId64 ",\"n\":%d}", "x-1", INT64_C(1000), -7);
    expect_as_printf("%" PRId64 " %" PRId64 " %" PRId64, INT64_MIN, INT64_MAX, INT64_C(0));
    expect_as_printf("%d%d%d", INT32_MIN, INT32_MAX, 0);
    expect_as_printf("%s %5.2f%% %zu %d", "others", 1.25, (size_t)7, 3); /* printf's own */
}

/* -- order ids -------------------------------------------------------------------------------- */

TEST_THAT(order_ids_sort_by_time)
{
    char ids[3][ORDER_ID_LENGTH + 1];
    order_id_make(ids[0], 1795230931452622);
    order_id_make(ids[1], 1795230931453622);
    order_id_make(ids[2], 1795230999999999);
    for (int i = 0; i < 2; i++)
        assert_true(strcmp(ids[i], ids[i + 1]) < 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(strspn(ids[i], "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), ORDER_ID_LENGTH);
}

/* Whoever knows one id knows the instant of others, and none of the digits behind it. */
TEST_THAT(order_ids_of_one_instant_differ_in_every_random_digit)
{
    enum { TIME_DIGITS = 10, IDS = 200 };
    char first[ORDER_ID_LENGTH + 1], id[ORDER_ID_LENGTH + 1];
    bool differs[ORDER_ID_LENGTH] = {false};
    order_id_make(first, 1795230931452622);
    for (int n = 0; n < IDS; n++) {
        order_id_make(id, 1795230931452622);
        for (int i = 0; i < ORDER_ID_LENGTH; i++)
            differs[i] = differs[i] || id[i] != first[i];
    }
    for (int i = 0; i < ORDER_ID_LENGTH; i++)
        assert_int_equal(differs[i], i >= TIME_DIGITS);
}

/* -- answers ---------------------------------------------------------------------------------- */

TEST_THAT(problem_document_is_json_whatever_is_in_it)
{
    struct op op = {.request_id = "a\"b\\c"};
    char detail[2000];
    memset(detail, '"', sizeof detail - 1);
    detail[sizeof detail - 1] = '\0';
    detail[0] = '\n';
    detail[1] = '\xc3';
    op_problem(&op, PROBLEM_SOLD_OUT, "%s", detail);
    json_t *document = json_loads(op.answer.body, 0, NULL);
    assert_non_null(document);
    assert_string_equal(json_string_value(json_object_get(document, "type")), "/problems/sold-out");
    assert_string_equal(json_string_value(json_object_get(document, "title")), "Sold out");
    assert_int_equal(json_integer_value(json_object_get(document, "status")), 409);
    assert_string_equal(json_string_value(json_object_get(document, "request_id")), "a\"b\\c");
    assert_memory_equal(json_string_value(json_object_get(document, "detail")), "\?\?\"\"", 4);
    json_decref(document);
    assert_int_equal(op.answer.status, 409);
    assert_true(op.answer.decided);
    answer_free(&op.answer);
}

static void *no_memory(void *at, size_t size)
{
    (void)at;
    (void)size;
    return NULL;
}

TEST_THAT(every_problem_has_a_name_and_an_error_status)
{
    for (int i = 1; i < PROBLEM_COUNT; i++) {
        const struct problem_info *info = problem_info((enum problem)i);
        assert_true(info->status >= 400 && info->status < 600);
        assert_true(info->id[0] != '\0' && info->title[0] != '\0');
        assert_true(info->status != 503 || info->retry_s > 0); /* every 503 has Retry-After */
        assert_true(!info->decided || info->status == 409);
    }
}

TEST_THAT(replay_knows_its_problem)
{
    struct op first = {.request_id = "r"}, again = {.request_id = "s"};
    db_answer stored = {.http_status = 409};
    op_problem(&first, PROBLEM_FUNDS, "too little");
    snprintf(stored.body, sizeof stored.body, "%s", first.answer.body);
    op_replay(&again, &stored);
    assert_int_equal(again.answer.problem, PROBLEM_FUNDS);
    assert_int_equal(again.answer.status, 409);
    assert_true(again.answer.replayed);
    assert_false(again.answer.decided);
    assert_string_equal(again.answer.body, first.answer.body);
    answer_free(&first.answer);
    answer_free(&again.answer);
}

TEST_THAT(answer_takes_the_room_it_needs)
{
    struct op op = {.id = ""};
    char text[DB_BODY_MAX + 1];
    for (int length = 0; length <= DB_BODY_MAX; length += 31) {
        memset(text, 'a' + length % 26, (size_t)length);
        text[length] = '\0';
        op_answer(&op, 200, "%s", text);
        assert_string_equal(op.answer.body, text);
        assert_true(op.answer.body_room > (size_t)length);
    }
    op_answer(&op, 200, "{}");
    assert_string_equal(op.answer.body, "{}");
    answer_free(&op.answer);
    assert_null(op.answer.body);
}

TEST_THAT(without_memory_no_answer_is_to_be_stored)
{
    static const db_answer stored = {.http_status = 201, .body = "{}"};
    struct op op = {.id = ""};
    answer_realloc = no_memory;
    op_answer(&op, 201, "{}");
    const struct answer success = op.answer;
    op_problem(&op, PROBLEM_SOLD_OUT, "gone");
    const struct answer refusal = op.answer;
    op_replay(&op, &stored);
    const struct answer replay = op.answer;
    answer_realloc = realloc;
    assert_int_equal(success.problem, PROBLEM_OVERLOADED);
    assert_false(success.decided);
    assert_int_equal(refusal.problem, PROBLEM_SOLD_OUT);
    assert_false(refusal.decided);
    assert_int_equal(replay.problem, PROBLEM_OVERLOADED);
    assert_false(replay.replayed);
    assert_null(op.answer.body);
}

/* -- metrics ---------------------------------------------------------------------------------- */

TEST_THAT(histogram_counts_cumulatively)
{
    struct metric_histogram histogram = {.scale = &metric_seconds};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    metric_observe(&histogram, 50);      /* on a bound: inside */
    metric_observe(&histogram, 51);      /* the next bucket */
    metric_observe(&histogram, 1 << 30); /* beyond all bounds */
    metric_print(&histogram, "t", "guard=\"x\"", out);
    fclose(out);
    assert_non_null(strstr(text, "t_bucket{guard=\"x\",le=\"5e-05\"} 1\n"));
    assert_non_null(strstr(text, "t_bucket{guard=\"x\",le=\"0.0001\"} 2\n"));
    assert_non_null(strstr(text, "t_bucket{guard=\"x\",le=\"10\"} 2\n"));
    assert_non_null(strstr(text, "t_bucket{guard=\"x\",le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(text, "t_count{guard=\"x\"} 3\n"));
    assert_non_null(strstr(text, "t_sum{guard=\"x\"} 1073.74193\n"));
    free(text);
}

/* -- guards ----------------------------------------------------------------------------------- */

TEST_THAT(guards_claim_what_they_can_keep)
{
    static const struct {
        const char *name;
        bool safe, safe_in_one_process;
    } claims[] = {
        {"none", false, false},      {"mutex", false, true},    {"redis-token", true, true},
        {"redis-fair", true, true},  {"sql-row", true, true},   {"sql-atomic", true, true},
        {"sql-version", true, true}, {"redis-set", true, true}, {"redis-reentrant", true, true},
    };
    struct config config = {.guard = "none", .redis = "redis://127.0.0.1:1", .lease_ms = 1000};
    struct guards *guards;
    assert_int_equal(guards_open(&config, &seams_none, &guards), 0);
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        const struct guard *guard = guard_find(guards, claims[i].name);
        assert_non_null(guard);
        assert_int_equal(guard_claims_safe(guard), claims[i].safe);
        assert_int_equal(guard_claims_safe_in_one_process(guard), claims[i].safe_in_one_process);
    }
    assert_ptr_equal(guard_find(guards, ""), guard_find(guards, "none"));
    assert_null(guard_find(guards, "redis"));
    guards_close(guards);
}

TEST_THAT(guards_of_one_redis_take_the_first_url)
{
    struct config config = {.guard = "none", .redis = "redis://a:1,redis://b:2", .lease_ms = 1000};
    struct guards *guards;
    assert_int_equal(guards_open(&config, &seams_none, &guards), 0);
    assert_string_equal(guard_find(guards, "redis-token")->endpoints, "redis://a:1");
    assert_string_equal(guard_find(guards, "redis-setnx")->endpoints, "redis://a:1");
    guards_close(guards);
}

TEST_THAT(service_does_not_start_with_an_unknown_guard)
{
    struct config config = {.guard = "nonesuch", .lease_ms = 1000};
    struct guards *guards = NULL;
    assert_int_equal(guards_open(&config, &seams_none, &guards), -1);
    assert_null(guards);
}
