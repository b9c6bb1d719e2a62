/* Whatever is wrong with a request, the answer says it in a problem document of the right kind, and
 * nothing has been written. */
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEN(x)     x x x x x x x x x x
#define HUNDRED(x) TEN(TEN(x))

#define ID_64    TEN("abcdef") "wxyz"
#define KEY_255  HUNDRED("k") HUNDRED("k") TEN("kkkkk") "kkkkk"
#define TEXT_128 HUNDRED("t") TEN("tt") "tttttttt"
#define KB_10    HUNDRED(HUNDRED("a"))

#define ORDERS   "/v1/items/1/orders"
#define CHANGES  "/v1/accounts/a/transactions"
#define ORDER(q) "{\"user_id\":\"u1\",\"quantity\":" q "}"
#define GOOD     ORDER("1")

struct row {
    const char *method, *path, *key, *body;
    int status;
    const char *problem;
};

static const struct row rows[] = {
    /* paths, ids and methods */
    {"GET", "/nowhere", NULL, NULL, 404, "not-found"},
    {"GET", "/v1/items/1/", NULL, NULL, 404, "not-found"},
    {"GET", "/v1/items/2", NULL, NULL, 404, "not-found"},
    {"GET", "/v1/accounts/2", NULL, NULL, 404, "not-found"},
    {"GET", "/v1/orders/2", NULL, NULL, 404, "not-found"},
    {"GET", "/v1/transactions/never-sent", NULL, NULL, 404, "not-found"},
    {"GET", "/v1/audit?resource=item:2", NULL, NULL, 404, "not-found"},
    {"GET", "/v1/audit?resource=1", NULL, NULL, 400, "bad-request"},
    {"GET", "/v1/audit?other=1", NULL, NULL, 400, "bad-request"},
    {"GET", "/v1/items/a.b", NULL, NULL, 400, "bad-request"},
    {"GET", "/v1/items/%zz", NULL, NULL, 400, "bad-request"},
    {"GET", "/v1/items/%00", NULL, NULL, 400, "bad-request"},
    {"GET", "/v1/items/" ID_64 "0", NULL, NULL, 400, "bad-request"},
    {"GET", "/v1/transactions/" KEY_255 "k", NULL, NULL, 400, "bad-request"},
    {"GET", "/v1/items/" KB_10, NULL, NULL, 431, "headers-too-large"},
    {"DELETE", "/v1/items/1", NULL, NULL, 405, "method-not-allowed"},
    {"POST", "/v1/items/1", "bad", GOOD, 405, "method-not-allowed"},
    {"GET", ORDERS, NULL, NULL, 405, "method-not-allowed"},
    {"BREW", ORDERS, "bad", GOOD, 405, "method-not-allowed"},
    {"POST", "/v1/items/2/orders", "bad", GOOD, 404, "not-found"},
    {"POST", "/v1/accounts/2/transactions", "bad", "{\"amount\":1}", 404, "not-found"},
    {"POST", "/v1/orders/2/payment", "bad", "{}", 404, "not-found"},
    {"POST", "/v1/orders/2/cancellation", "bad", NULL, 404, "not-found"},

    /* keys */
    {"POST", ORDERS, NULL, GOOD, 400, "key-required"},
    {"POST", CHANGES, NULL, "{\"amount\":1}", 400, "key-required"},
    {"POST", "/v1/transfers", NULL, "{\"from\":\"a\",\"to\":\"b\",\"amount\":1}", 400,
     "key-required"},
    {"POST", ORDERS, "", GOOD, 400, "bad-request"},
    {"POST", ORDERS, "\"\"", GOOD, 400, "bad-request"},
    {"POST", ORDERS, "\"open", GOOD, 400, "bad-request"},
    {"POST", ORDERS, "caf\xc3\xa9", GOOD, 400, "bad-request"},
    {"POST", ORDERS, KEY_255 "k", GOOD, 400, "bad-request"},

    /* bodies that are no JSON object */
    {"POST", ORDERS, "bad", "", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{", 400, "bad-request"},
    {"POST", ORDERS, "bad", "[]", 400, "bad-request"},
    {"POST", ORDERS, "bad", "null", 400, "bad-request"},
    {"POST", ORDERS, "bad", "\"text\"", 400, "bad-request"},
    {"POST", ORDERS, "bad", GOOD " extra", 400, "bad-request"},
    {"POST", ORDERS, "bad", GOOD GOOD, 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"u1\",}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"\xff\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"u\\u0000\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"u1\",\"user_id\":\"u2\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"" KB_10 KB_10 "\"}", 413, "too-large"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"" KB_10 "\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", HUNDRED(HUNDRED("[")), 400, "bad-request"},

    /* orders */
    {"POST", ORDERS, "bad", "{}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"quantity\":1}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"u1\",\"colour\":\"red\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":1}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":null}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"a b\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", "{\"user_id\":\"" ID_64 "0\"}", 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("0"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("-1"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("1.0"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("1e1"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("\"1\""), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("true"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("null"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("[1]"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("1000000001"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("9223372036854775808"), 400, "bad-request"},
    {"POST", ORDERS, "bad", ORDER("99999999999999999999999999"), 400, "bad-request"},

    /* balances and transfers */
    {"POST", CHANGES, "bad", "{}", 400, "bad-request"},
    {"POST", CHANGES, "bad", "{\"amount\":1.5}", 400, "bad-request"},
    {"POST", CHANGES, "bad", "{\"amount\":\"1\"}", 400, "bad-request"},
    {"POST", CHANGES, "bad", "{\"amount\":-9223372036854775808}", 400, "bad-request"},
    {"POST", CHANGES, "bad", "{\"amount\":9223372036854775808}", 400, "bad-request"},
    {"POST", CHANGES, "bad", "{\"amount\":1,\"reason\":5}", 400, "bad-request"},
    {"POST", CHANGES, "bad", "{\"amount\":1,\"reason\":\"a\\nb\"}", 400, "bad-request"},
    {"POST", CHANGES, "bad", "{\"amount\":1,\"reason\":\"" TEXT_128 "t\"}", 400, "bad-request"},
    {"POST", "/v1/transfers", "bad", "{\"from\":\"a\",\"to\":\"a\",\"amount\":1}", 400,
     "bad-request"},
    {"POST", "/v1/transfers", "bad", "{\"from\":\"a\",\"to\":\"b\",\"amount\":0}", 400,
     "bad-request"},
    {"POST", "/v1/transfers", "bad", "{\"from\":\"a\",\"to\":\"b\",\"amount\":-1}", 400,
     "bad-request"},
    {"POST", "/v1/transfers", "bad", "{\"from\":\"a\",\"amount\":1}", 400, "bad-request"},
    {"POST", "/v1/transfers", "bad", "{\"from\":\"a\",\"to\":\"nobody\",\"amount\":1}", 404,
     "not-found"},

    /* admin */
    {"PUT", "/v1/items/1", NULL, "{}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":-1}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":\"10\"}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":9223372036854775808}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":1,\"price\":-1}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":1,\"per_user_limit\":-1}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":1,\"reserve_s\":0}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":1,\"fence\":1}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":1,\"guard\":7}", 400, "bad-request"},
    {"PUT", "/v1/items/1", NULL, "{\"stock\":1,\"guard\":\"redis-tokem\"}", 422, "unknown-guard"},
    {"PUT", "/v1/items/3", NULL, "{\"stock\":1,\"guard\":\"redis-tokem\"}", 422, "unknown-guard"},
    {"PUT", "/v1/accounts/a", NULL, "{\"balance\":-1}", 400, "bad-request"},
    {"PUT", "/v1/accounts/a", NULL, "{\"balance\":1,\"guard\":\"no\"}", 422, "unknown-guard"},
};

/* Whole requests: what client_send() would not write. */
static const struct raw {
    const char *text;
    int status;
    const char *problem;
} raws[] = {
#define POST_HEAD "POST " ORDERS " HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: bad\r\n"
    {POST_HEAD "Content-Length: 29\r\n\r\n{\"user_id\":\"u1\",\"quantity\":1}", 415, "media-type"},
    {POST_HEAD "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, "media-type"},
    {POST_HEAD "Content-Type: application/json; charset=latin1\r\nContent-Length: 2\r\n\r\n{}", 415,
     "media-type"},
    {POST_HEAD "Idempotency-Key: worse\r\nContent-Type: application/json\r\nContent-Length: "
               "2\r\n\r\n{}",
     400, "bad-request"},
    {POST_HEAD "Content-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: "
               "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
     400, "bad-request"},
    {POST_HEAD "Content-Type: application/json\r\nContent-Length: 9999999\r\n\r\n", 413,
     "too-large"},
    {POST_HEAD "X-Long: " KB_10 "\r\n\r\n", 431, "headers-too-large"},
    {"GET /v1/items/1 HTTP/1.1\r\n\r\n", 400, "bad-request"}, /* no Host */
};

static struct shop shop;
static struct reply reply, item_before, item_after, audit_before, audit_after;

static int open_shop(void **state)
{
    (void)state;
    return shop_open(&shop, NULL);
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static void note(struct reply *item, struct reply *audit)
{
    assert_int_equal(
        client_call(&shop.client, "GET", "/v1/items/1", NULL, NULL, SHOP_WAIT_MS, item), 200);
    assert_int_equal(client_call(&shop.client, "GET", "/v1/audit", NULL, NULL, SHOP_WAIT_MS, audit),
                     200);
}

static void fill_shop(void)
{
    assert_true(shop_put(&shop, "/v1/items/1", "{\"stock\":10,\"per_user_limit\":2}"));
    assert_true(shop_put(&shop, "/v1/accounts/a", "{\"balance\":100}"));
    assert_true(shop_put(&shop, "/v1/accounts/b", "{\"balance\":100}"));
    note(&item_before, &audit_before);
}

static void check_nothing_written(void)
{
    note(&item_after, &audit_after);
    assert_string_equal(item_after.body, item_before.body);
    assert_string_equal(audit_after.body, audit_before.body);
    assert_int_equal(
        client_call(&shop.client, "GET", "/v1/items/3", NULL, NULL, SHOP_WAIT_MS, &reply), 404);
    assert_int_equal(
        client_call(&shop.client, "GET", "/v1/transactions/bad", NULL, NULL, SHOP_WAIT_MS, &reply),
        404);
}

/* A problem document with all its members; wrong rows are shown, and counted. */
static int wrong_answer(const char *what, int status, const char *problem)
{
    char got[32];
    reply_problem(&reply, got, sizeof got);
    json_t *json = json_loads(reply.body, 0, NULL);
    bool right = reply.status == status && strcmp(got, problem) == 0 &&
                 json_integer_value(json_object_get(json, "status")) == status &&
                 json_string_length(json_object_get(json, "title")) > 0 &&
                 json_string_length(json_object_get(json, "detail")) > 0 &&
                 json_string_length(json_object_get(json, "request_id")) > 0;
    json_decref(json);
    if (!right)
        print_error("%.120s: %d %s, not %d %s\n", what, reply.status, reply.body, status, problem);
    return !right;
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(each_bad_request_is_told_what_is_wrong_and_writes_nothing)
{
    int wrong = 0;
    fill_shop();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        char what[256];
        snprintf(what, sizeof what, "%s %.60s key %.40s %.100s", row->method, row->path,
                 row->key != NULL ? row->key : "-", row->body != NULL ? row->body : "");
        client_call(&shop.client, row->method, row->path, row->key, row->body, SHOP_WAIT_MS,
                    &reply);
        wrong += wrong_answer(what, row->status, row->problem);
    }
    assert_int_equal(wrong, 0);
    check_nothing_written();
}

TEST_THAT(each_malformed_request_is_told_what_is_wrong_and_writes_nothing)
{
    int wrong = 0;
    fill_shop();
    for (size_t i = 0; i < sizeof raws / sizeof raws[0]; i++) {
        client_send_text(&shop.client, raws[i].text, strlen(raws[i].text));
        client_read(&shop.client, SHOP_WAIT_MS, &reply);
        wrong += wrong_answer(raws[i].text, raws[i].status, raws[i].problem);
        client_close(&shop.client);
    }
    assert_int_equal(wrong, 0);
    check_nothing_written();
}

/* So large that libmicrohttpd answers by itself: its page is no problem document, but clear. */
TEST_THAT(a_giant_head_is_refused)
{
    static const char giant[] = POST_HEAD "X-Long: " HUNDRED(KB_10) "\r\n\r\n";
    fill_shop();
    client_send_text(&shop.client, giant, strlen(giant));
    assert_int_equal(client_read(&shop.client, SHOP_WAIT_MS, &reply), 431);
    client_close(&shop.client);
    check_nothing_written();
}

/* The largest that is allowed is allowed: each limit is where it is said to be. */
TEST_THAT(the_limits_themselves_are_accepted)
{
    static const char big[] = "9223372036854775807";
    char body[512];
    assert_true(shop_put(&shop, "/v1/items/" ID_64, "{\"stock\":9223372036854775807}"));
    assert_int_equal(client_number(shop.service->port, "/v1/items/" ID_64, "stock"), INT64_MAX);
    snprintf(body, sizeof body, "{\"user_id\":\"%s\",\"quantity\":1000000000}", ID_64);
    assert_int_equal(shop_post(&shop, "/v1/items/" ID_64 "/orders", KEY_255, body, &reply), 201);
    assert_true(shop_put(&shop, "/v1/accounts/big", "{\"balance\":0}"));
    snprintf(body, sizeof body, "{\"amount\":%s,\"reason\":\"%s\"}", big, TEXT_128);
    assert_int_equal(shop_post(&shop, "/v1/accounts/big/transactions", "up", body, &reply), 201);
    assert_int_equal(client_number(shop.service->port, "/v1/accounts/big", "balance"), INT64_MAX);
    assert_true(shop_audit_ok(shop.service->port));
}

/* One more would not fit into 64 bits: refused as a decision, not wrapped around. */
TEST_THAT(a_sum_beyond_64_bits_is_refused)
{
    char problem[32];
    assert_true(shop_put(&shop, "/v1/accounts/full", "{\"balance\":9223372036854775807}"));
    assert_true(shop_put(&shop, "/v1/accounts/some", "{\"balance\":5}"));
    assert_int_equal(
        shop_post(&shop, "/v1/accounts/full/transactions", "over", "{\"amount\":1}", &reply), 409);
    assert_string_equal(reply_problem(&reply, problem, sizeof problem), "out-of-range");
    assert_int_equal(shop_post(&shop, "/v1/transfers", "over2",
                               "{\"from\":\"some\",\"to\":\"full\",\"amount\":1}", &reply),
                     409);
    assert_string_equal(reply_problem(&reply, problem, sizeof problem), "out-of-range");
    assert_int_equal(client_number(shop.service->port, "/v1/accounts/some", "balance"), 5);
    assert_true(shop_put(&shop, "/v1/items/dear", "{\"stock\":10,\"price\":9223372036854775807}"));
    assert_int_equal(shop_post(&shop, "/v1/items/dear/orders", "over3", ORDER("2"), &reply), 409);
    assert_string_equal(reply_problem(&reply, problem, sizeof problem), "out-of-range");
    assert_int_equal(client_number(shop.service->port, "/v1/items/dear", "stock"), 10);
    assert_true(shop_audit_ok(shop.service->port));
}

/* Last: cmocka's exit status does not tell of a failed teardown. */
TEST_THAT(service_drains_and_ends_well)
{
    assert_true(shop_stop(shop.service));
}
