/*
 * openapi.json tells the truth. Real answers of real services, of each route and each status, are
 * recorded on a tape, and judge.py compares them with the document: no field, header or status that
 * is not described, and none described that no answer has.
 *
 * Refusals that every route has are asked of every operation in the document. So a new route needs
 * only its rows in examples[], and in answers[] for what it alone answers.
 */
#include "openapi_questions.h"
#include "openapi_services.h"
#include "process.h"
#include "program.h"
#include "redis.h"
#include "sse.h"
#include "tests.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUYER "Authorization: Bearer buyer-token-of-the-test\r\n"

enum {
    ORDERS_MAX = 8,
    PATH_MAX_BYTES = 256,
    CROWD = 64 /* with this queue */,
    JUDGE_WAIT_MS = 240000
};

/* -- every operation --------------------------------------------------------------------------- */

static char orders[ORDERS_MAX][64]; /* ids; @A is the first */

static const char *with_order(const char *path, char ret[static PATH_MAX_BYTES])
{
    const char *at = strchr(path, '@');
    if (at != NULL)
        snprintf(ret, PATH_MAX_BYTES, "%.*s%s%s", (int)(at - path), path, orders[at[1] - 'A'],
                 at + 2);
    else
        snprintf(ret, PATH_MAX_BYTES, "%s", path);
    return ret;
}

GROUP_FIXTURE(open_services, close_services);

TEST_THAT(every_operation_has_an_example)
{
    size_t described = 0;
    const char *path, *method;
    json_t *item, *operation;
    json_object_foreach(json_object_get(document, "paths"), path, item)
    {
        json_object_foreach(item, method, operation)
        {
            const char *id = json_string_value(json_object_get(operation, "operationId"));
            bool found = id == NULL; /* "parameters" */
            for (size_t i = 0; i < EXAMPLES && !found; i++)
                found = strcmp(examples[i].operation, id) == 0;
            if (!found)
                fail_msg("%s %s: give operation %s a row in examples[]", method, path, id);
            described += id != NULL;
        }
    }
    assert_int_equal(described, EXAMPLES);
}

static void asked(int status, struct sandbox_server *service, const char *method, const char *path,
                  const char *headers, const char *body)
{
    char filled[PATH_MAX_BYTES];
    const int got = tape_ask(&tape, service->port, method, with_order(path, filled), headers, body);
    if (got != status)
        fail_msg("%s %s: %d instead of %d: %s", method, filled, got, status,
                 tape.reply.body != NULL ? tape.reply.body : "");
}

TEST_THAT(refusals_of_every_operation)
{
    static char large[9000] = "X-Large: ";
    memset(large + 9, 'x', sizeof large - 12);
    strcpy(large + sizeof large - 3, "\r\n");
    snprintf(orders[0], sizeof orders[0], "some-order");
    for (size_t i = 0; i < EXAMPLES; i++) {
        const char *path = examples[i].path, *method = method_of(examples[i].operation);
        const bool takes_body = strcmp(method, "GET") != 0;
        asked(400, shop.service, method, path, "Broken: \v\r\nTwo : colons\r\n", NULL);
        asked(413, shop.service, method, path, JSON_TYPE "Content-Length: 2000000\r\n", NULL);
        asked(421, shop.service, method, path, "Host: evil.example\r\n", NULL);
        asked(431, shop.service, method, path, large, NULL);
        asked(405, shop.service, "OPTIONS", path, "", NULL);
        asked(411, shop.service, method, path, JSON_TYPE "Transfer-Encoding: chunked\r\n", NULL);
        if (takes_body)
            asked(415, shop.service, method, path, "Content-Type: text/plain\r\n", "{}");
        if (takes_body || strcmp(examples[i].operation, "events") == 0)
            asked(403, shop.service, method, path, JSON_TYPE "Origin: https://evil.example\r\n",
                  NULL);
        if (strcmp(method, "POST") == 0) /* without its key, or with half a body */
            asked(400, shop.service, method, path, JSON_TYPE, "{");
    }
}

/* -- what each operation alone answers ------------------------------------------------------------
 */

static void keep_order(int which)
{
    json_t *body = json_loads(tape.reply.body, 0, NULL);
    const char *id = json_string_value(json_object_get(body, "order_id"));
    assert_non_null(id);
    snprintf(orders[which], sizeof orders[which], "%s", id);
    json_decref(body);
}

TEST_THAT(answers_of_each_operation)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        const struct question *q = &answers[i];
        asked(q->status, shop.service, q->method, q->path, q->headers, q->body);
        if (q->order != 0)
            keep_order(q->order - 'A');
    }
}

TEST_THAT(lessons_without_their_option)
{
    asked(404, plain, "POST", "/v1/items/1/reset", JSON_TYPE, "{\"stock\":1}");
    asked(404, plain, "POST", "/v1/accounts/u1/reset", JSON_TYPE, "{\"balance\":1}");
}

TEST_THAT(the_stream_of_events)
{
    struct sse sse;
    assert_true(sse_open(&sse, shop.service->port, "/v1/events", NULL, false));
    assert_true(sse_await(&sse, "event: hello", 1));
    char *end = strstr(sse.text, "\r\n\r\n");
    assert_non_null(end);
    raw_free(&tape.reply);
    tape.reply = (struct raw_reply){.status = 200, .body = strdup(end + 4)};
    snprintf(tape.reply.head, sizeof tape.reply.head, "%.*s", (int)(end + 4 - sse.text), sse.text);
    tape_record(&tape, "GET", "/v1/events");
    sse_close(&sse);
}

static bool runs(void *path)
{
    return tape_ask(&tape, shop.service->port, "GET", path, "", NULL) == 409;
}

TEST_THAT(a_key_whose_request_runs)
{
    static char path[] = "/v1/transactions/slow";
    assert_int_equal(redis_do(shop.redis, "SET lock:item:1 other NX PX 600000"), 1);
    const int fd = raw_connect(shop.service->port);
    assert_int_equal(
        raw_send_text(fd, "POST /v1/items/1/orders HTTP/1.1\r\nHost: 127.0.0.1\r\n" KEY(
                              "slow") "Content-Length: 16\r\n\r\n{\"user_id\":\"u1\"}"),
        0);
    assert_true(wait_until(runs, path, SHOP_WAIT_MS));
    asked(409, shop.service, "POST", "/v1/items/1/orders", KEY("slow"), "{\"user_id\":\"u1\"}");
    assert_int_equal(redis_do(shop.redis, "DEL lock:item:1"), 1);
    raw_free(&tape.reply);
    assert_int_equal(raw_read(fd, 0, SHOP_WAIT_MS, &tape.reply), 201);
    tape_record(&tape, "POST", "/v1/items/1/orders");
    close(fd);
}

/* -- a crowd -------------------------------------------------------------------------------------
 */

struct refused {
    const char *path, *body;
};
static int crowds; /* so far */
static struct reply reply;

static bool are_in_flight(void *service)
{
    for (int i = 0; i < CROWD; i++) {
        char path[64];
        struct client client = {.port = ((struct sandbox_server *)service)->port, .fd = -1};
        snprintf(path, sizeof path, "/v1/transactions/crowd-%d-%d", crowds, i);
        client_call(&client, "GET", path, NULL, NULL, SHOP_WAIT_MS, &reply);
        client_close(&client);
        if (reply.status != 409)
            return false;
    }
    return true;
}

/* So many requests wait for one lock that further ones about the same are refused. */
static void crowd(struct sandbox_server *service, const char *lock, const char *path,
                  const char *body, const struct refused *refused)
{
    struct client clients[CROWD];
    char filled[PATH_MAX_BYTES], key[32];
    crowds++;
    assert_int_equal(redis_do(shop.redis, "SET %s other NX PX 600000", lock), 1);
    for (int i = 0; i < CROWD; i++) {
        snprintf(key, sizeof key, "crowd-%d-%d", crowds, i);
        clients[i] = (struct client){.port = service->port, .fd = -1};
        assert_int_equal(client_send(&clients[i], "POST", with_order(path, filled), key, body), 0);
    }
    assert_true(wait_until(are_in_flight, service, SHOP_WAIT_MS));
    for (; refused->path != NULL; refused++)
        asked(429, service, "POST", refused->path, KEY("one-more"), refused->body);
    assert_int_equal(redis_do(shop.redis, "DEL %s", lock), 1);
    for (int i = 0; i < CROWD; i++) {
        assert_int_not_equal(client_read(&clients[i], SHOP_WAIT_MS, &reply), 0);
        client_close(&clients[i]);
    }
}

static bool needs_store(const char *operation)
{
    static const char *const others[] = {"listGuards", "metrics", "live",     "events",
                                         "page",       "openapi", "pageFile", "problem"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(operation, others[i]) == 0)
            return false;
    return true;
}

TEST_THAT(more_than_may_wait)
{
    static const char order[] = "{\"user_id\":\"u1\"}", change[] = "{\"amount\":1}";
    static const struct refused
        orders_refused[] = {{"/v1/items/1/orders", order},
                            {"/v1/items/1/stock-changes", "{\"delta\":5,\"reason\":\"delivery\"}"},
                            {0}},
        changes_refused[] = {{"/v1/accounts/u1/transactions", change},
                             {"/v1/transfers", "{\"from\":\"u1\",\"to\":\"u2\",\"amount\":1}"},
                             {0}},
        payments_refused[] = {{"/v1/orders/@A/payment", "{}"},
                              {"/v1/orders/@A/cancellation", "{}"},
                              {"/v1/orders/@A/refund", "{}"},
                              {0}};
    crowd(shop.service, "lock:item:1", "/v1/items/1/orders", order, orders_refused);
    crowd(shop.service, "lock:account:u1", "/v1/accounts/u1/transactions", change, changes_refused);
    crowd(shop.service, "lock:account:u1", "/v1/orders/@A/payment", "{}", payments_refused);
}

TEST_THAT(operations_without_their_store)
{
    sandbox_signal(postgres, SIGKILL);
    for (size_t i = 0; i < EXAMPLES; i++)
        if (needs_store(examples[i].operation))
            asked(503, away, method_of(examples[i].operation), examples[i].path, KEY("away"),
                  examples[i].body);
}

TEST_THAT(operations_without_the_right_token)
{
    for (size_t i = 0; i < EXAMPLES; i++) {
        const struct example *e = &examples[i];
        const char *method = method_of(e->operation);
        if (!takes_token(e->operation, "operatorToken"))
            continue;
        asked(401, guarded, method, e->path, KEY("token"), e->body);
        if (!takes_token(e->operation, "buyerToken"))
            asked(403, guarded, method, e->path, BUYER KEY("token"), e->body);
    }
    asked(403, guarded, "GET", "/v1/orders?user=another", BUYER, NULL);
}

static int change_store(const char *sql)
{
    char file[SANDBOX_TEXT_MAX + 32], *message = NULL;
    sqlite3 *handle = NULL;
    snprintf(file, sizeof file, "%s/shop.db", sandbox_dir(shop.sandbox));
    int result = sqlite3_open_v2(file, &handle, SQLITE_OPEN_READWRITE, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(handle, sql, NULL, NULL, &message);
    if (message != NULL)
        fprintf(stderr, "%s\n", message);
    sqlite3_free(message);
    sqlite3_close(handle);
    return result;
}

/* Damage by another program: a fork in the ledger, and stored answers with no status of HTTP. */
TEST_THAT(a_damaged_store)
{
    asked(201, shop.service, "POST", "/v1/accounts/u1/transactions", KEY("k99"), "{\"amount\":1}");
    assert_true(shop_stop(shop.service));
    assert_int_equal(
        change_store(
            "CREATE TEMP TABLE copied AS SELECT * FROM ledger WHERE resource = 'account:u1'"
            " ORDER BY id DESC LIMIT 1;"
            "UPDATE copied SET id = (SELECT max(id) + 1 FROM ledger), txn_id = 'fork';"
            "INSERT INTO ledger SELECT * FROM copied;"
            "UPDATE idempotency SET http_status = 9999"),
        SQLITE_OK);
    assert_int_equal(sandbox_restart(shop.service), 0);
    asked(200, shop.service, "GET", "/v1/audit", "", NULL);
    assert_non_null(strstr(tape.reply.body, "\"fork\""));
    asked(500, shop.service, "POST", "/v1/orders/@A/refund", KEY("r3"), "{\"reason\":\"broken\"}");
    asked(500, shop.service, "POST", "/v1/items/1/orders", KEY("k2"), "{\"user_id\":\"u1\"}");
    asked(500, shop.service, "POST", "/v1/orders/@A/payment", KEY("k8"), "{}");
    asked(500, shop.service, "POST", "/v1/orders/@B/cancellation", KEY("k12"), "{}");
    asked(500, shop.service, "POST", "/v1/orders/@A/refund", KEY("r3"), "{\"reason\":\"broken\"}");
    asked(500, shop.service, "POST", "/v1/items/1/stock-changes", KEY("s1"),
          "{\"delta\":5,\"reason\":\"delivery\",\"reference\":\"note 7\"}");
    asked(500, shop.service, "POST", "/v1/accounts/u1/transactions", KEY("k13"), "{\"amount\":5}");
    asked(500, shop.service, "POST", "/v1/transfers", KEY("k16"),
          "{\"from\":\"u2\",\"to\":\"u1\",\"amount\":3}");
}

/* As if the first row of each had been moved to an archive. */
TEST_THAT(lists_whose_rows_were_moved)
{
    static const char *const paths[] = {"/v1/ledger", "/v1/items/1/ledger",
                                        "/v1/accounts/u1/ledger", "/v1/shop/revenue/ledger"};
    assert_true(shop_stop(shop.service));
    assert_int_equal(
        change_store("INSERT INTO archives VALUES (1, 0, 0, 1, 1, 'x');"
                     "INSERT INTO carried SELECT resource, epoch, version_before, id, hash, after,"
                     " 0, 0, 1 FROM ledger WHERE id IN (SELECT min(id) FROM ledger"
                     " GROUP BY resource)"),
        SQLITE_OK);
    assert_int_equal(sandbox_restart(shop.service), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        asked(410, shop.service, "GET", paths[i], "", NULL);
        assert_non_null(strstr(tape.reply.body, "\"next\":\""));
    }
    asked(200, shop.service, "GET", "/v1/ledger?after=1", "", NULL);
}

/* All of them at once, as each waits for the end of the service's patience: 10 s. */
TEST_THAT(requests_that_do_not_end)
{
    int fds[EXAMPLES];
    for (size_t i = 0; i < EXAMPLES; i++) {
        char text[512], path[PATH_MAX_BYTES];
        snprintf(text, sizeof text,
                 "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n" KEY("late") "Content-Length: 9\r\n\r\n{",
                 method_of(examples[i].operation), with_order(examples[i].path, path));
        fds[i] = raw_connect(away->port);
        assert_int_equal(raw_send_text(fds[i], text), 0);
    }
    for (size_t i = 0; i < EXAMPLES; i++) {
        char path[PATH_MAX_BYTES];
        raw_free(&tape.reply);
        assert_int_equal(raw_read(fds[i], 0, SHOP_WAIT_MS, &tape.reply), 408);
        tape_record(&tape, method_of(examples[i].operation), with_order(examples[i].path, path));
        close(fds[i]);
    }
}

/* -- the verdict ---------------------------------------------------------------------------------
 */

static void judged(const char *option)
{
    char meta[SANDBOX_TEXT_MAX], said[SANDBOX_TEXT_MAX + 32];
    const char *argv[8] = {"/usr/bin/python3", "tests/e2e/openapi/judge.py"};
    size_t n = 2;
    int status;
    snprintf(meta, sizeof meta, "%s", shop_binary("openapi-3.1.json"));
    snprintf(said, sizeof said, "%s/judge", sandbox_dir(shop.sandbox));
    if (option != NULL)
        argv[n++] = option;
    argv[n++] = DOCUMENT;
    argv[n++] = meta;
    argv[n] = tape_file;
    fflush(tape.out);
    assert_true(program_ends(program_start(argv, said, NULL), JUDGE_WAIT_MS, &status));
    FILE *in = fopen(said, "r");
    for (int c; in != NULL && (c = fgetc(in)) != EOF;)
        fputc(c, stderr);
    if (in != NULL)
        fclose(in);
    assert_int_equal(status, 0);
}

TEST_THAT(all_answers_are_as_described)
{
    assert_true(tape.n >= 60);
    judged(NULL);
}

TEST_THAT(the_judge_notices_planted_faults)
{
    judged("--planted");
}
