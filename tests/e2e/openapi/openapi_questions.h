/* What is asked of the service for the tape of test_openapi_answers.c. */
#ifndef TEST_OPENAPI_QUESTIONS_H
#define TEST_OPENAPI_QUESTIONS_H

#include <stddef.h>

#define JSON_TYPE "Content-Type: application/json\r\n"
#define NEW       JSON_TYPE "If-None-Match: *\r\n"
#define OVER(tag) JSON_TYPE "If-Match: \"" tag "\"\r\n"
#define KEY(key)  NEW "Idempotency-Key: " key "\r\n" /* a POST, or a PUT */

/* A good request of each operation; @A is the id of an order. */
static const struct example {
    const char *operation, *path, *body;
} examples[] = {
    {"getItem", "/v1/items/1", NULL},
    {"putItem", "/v1/items/1", "{\"stock\":5,\"price\":10}"},
    {"resetItem", "/v1/items/1/reset", "{\"stock\":5,\"price\":10}"},
    {"placeOrder", "/v1/items/1/orders", "{\"user_id\":\"u1\"}"},
    {"getOrder", "/v1/orders/@A", NULL},
    {"payOrder", "/v1/orders/@A/payment", "{}"},
    {"cancelOrder", "/v1/orders/@A/cancellation", "{}"},
    {"getAccount", "/v1/accounts/u1", NULL},
    {"putAccount", "/v1/accounts/u1", "{\"balance\":1000}"},
    {"resetAccount", "/v1/accounts/u1/reset", "{\"balance\":1000}"},
    {"changeBalance", "/v1/accounts/u1/transactions", "{\"amount\":5}"},
    {"transfer", "/v1/transfers", "{\"from\":\"u1\",\"to\":\"u2\",\"amount\":1}"},
    {"getTransaction", "/v1/transactions/k", NULL},
    {"listLedger", "/v1/ledger", NULL},
    {"audit", "/v1/audit", NULL},
    {"listGuards", "/v1/guards", NULL},
    {"metrics", "/metrics", NULL},
    {"live", "/livez", NULL},
    {"ready", "/readyz", NULL},
    {"health", "/healthz", NULL},
    {"events", "/v1/events", NULL},
    {"problem", "/problems/sold-out", NULL},
    {"page", "/", NULL},
    {"pageFile", "/web/page.js", NULL},
    {"openapi", "/openapi.json", NULL},
};
enum { EXAMPLES = sizeof examples / sizeof examples[0] };

/* What each operation alone answers, in this order. */
static const struct question {
    int status;
    const char *method, *path, *headers, *body;
    char order; /* keep the order's id as this one */
} answers[] = {
    {404, "GET", "/nothing", "", NULL, 0},
    {404, "GET", "/web/nothing.js", "", NULL, 0},
    {404, "GET", "/v1/items/1", "", NULL, 0},
    {404, "POST", "/v1/items/1/orders", KEY("k0"), "{\"user_id\":\"u1\"}", 0},
    {201, "PUT", "/v1/items/1", NEW, "{\"stock\":9}", 0},
    {412, "PUT", "/v1/items/1", NEW, "{\"stock\":9}", 0},
    {428, "PUT", "/v1/items/1", JSON_TYPE, "{\"stock\":9}", 0},
    {200, "PUT", "/v1/items/1", OVER("1"), "{\"stock\":8,\"price\":10,\"per_user_limit\":5}", 0},
    {422, "PUT", "/v1/items/1", NEW, "{\"stock\":8,\"guard\":\"no-such-guard\"}", 0},
    {400, "PUT", "/v1/items/1", NEW, "{\"stock\":-1}", 0},
    {304, "GET", "/v1/items/1", "If-None-Match: \"2\"\r\n", NULL, 0},
    {412, "GET", "/v1/items/1", "If-Match: \"1\"\r\n", NULL, 0},
    {200, "POST", "/v1/items/2/reset", JSON_TYPE, "{\"stock\":1}", 0},
    {412, "POST", "/v1/items/2/reset", NEW, "{\"stock\":1}", 0},
    {422, "POST", "/v1/items/2/reset", JSON_TYPE, "{\"stock\":1,\"guard\":\"no-such-guard\"}", 0},
    {200, "GET", "/v1/items/1", "", NULL, 0},
    {200, "HEAD", "/v1/items/1", "", NULL, 0},
    {404, "GET", "/v1/accounts/u1", "", NULL, 0},
    {404, "POST", "/v1/accounts/u1/transactions", KEY("k1"), "{\"amount\":5}", 0},
    {201, "PUT", "/v1/accounts/u1", NEW, "{\"balance\":24}", 0},
    {412, "PUT", "/v1/accounts/u1", NEW, "{\"balance\":24}", 0},
    {428, "PUT", "/v1/accounts/u1", JSON_TYPE, "{\"balance\":24}", 0},
    {200, "PUT", "/v1/accounts/u1", OVER("1"), "{\"balance\":25}", 0},
    {201, "PUT", "/v1/accounts/u2", NEW, "{\"balance\":9223372036854775807}", 0},
    {422, "PUT", "/v1/accounts/u1", NEW, "{\"balance\":1,\"guard\":\"no-such-guard\"}", 0},
    {304, "GET", "/v1/accounts/u1", "If-None-Match: \"2\"\r\n", NULL, 0},
    {412, "GET", "/v1/accounts/u1", "If-Match: \"1\"\r\n", NULL, 0},
    {200, "POST", "/v1/accounts/u3/reset", JSON_TYPE, "{\"balance\":1}", 0},
    {412, "POST", "/v1/accounts/u3/reset", NEW, "{\"balance\":1}", 0},
    {422, "POST", "/v1/accounts/u3/reset", JSON_TYPE, "{\"balance\":1,\"guard\":\"no-such-guard\"}",
     0},
    {200, "GET", "/v1/accounts/u1", "", NULL, 0},
    {201, "POST", "/v1/items/1/orders", KEY("k2"), "{\"user_id\":\"u1\"}", 'A'},
    {201, "POST", "/v1/items/1/orders", KEY("k2"), "{\"user_id\":\"u1\"}", 0},
    {422, "POST", "/v1/items/1/orders", KEY("k2"), "{\"user_id\":\"u2\"}", 0},
    {201, "POST", "/v1/items/1/orders", KEY("k3"), "{\"user_id\":\"u1\",\"quantity\":2}", 'B'},
    {409, "POST", "/v1/items/1/orders", KEY("k4"), "{\"user_id\":\"u1\",\"quantity\":3}", 0},
    {409, "POST", "/v1/items/1/orders", KEY("k5"), "{\"user_id\":\"u2\",\"quantity\":9}", 0},
    {200, "GET", "/v1/orders/@A", "", NULL, 0},
    {404, "GET", "/v1/orders/none", "", NULL, 0},
    {404, "POST", "/v1/orders/none/payment", KEY("k6"), "{}", 0},
    {404, "POST", "/v1/orders/none/cancellation", KEY("k7"), "{}", 0},
    {201, "POST", "/v1/orders/@A/payment", KEY("k8"), "{}", 0},
    {201, "POST", "/v1/orders/@A/payment", KEY("k8"), "{}", 0},
    {422, "POST", "/v1/orders/@B/payment", KEY("k8"), "{}", 0},
    {409, "POST", "/v1/orders/@A/payment", KEY("k9"), "{}", 0},
    {409, "POST", "/v1/orders/@B/payment", KEY("k10"), "{}", 0},
    {409, "POST", "/v1/orders/@A/cancellation", KEY("k11"), "{}", 0},
    {201, "POST", "/v1/orders/@B/cancellation", KEY("k12"), "{}", 0},
    {201, "POST", "/v1/orders/@B/cancellation", KEY("k12"), "{}", 0},
    {422, "POST", "/v1/orders/@A/cancellation", KEY("k12"), "{}", 0},
    {201, "POST", "/v1/accounts/u1/transactions", KEY("k13"), "{\"amount\":5}", 0},
    {201, "POST", "/v1/accounts/u1/transactions", KEY("k13"), "{\"amount\":5}", 0},
    {422, "POST", "/v1/accounts/u1/transactions", KEY("k13"), "{\"amount\":6}", 0},
    {409, "POST", "/v1/accounts/u1/transactions", KEY("k14"), "{\"amount\":-500}", 0},
    {409, "POST", "/v1/accounts/u2/transactions", KEY("k15"), "{\"amount\":1}", 0},
    {201, "POST", "/v1/transfers", KEY("k16"), "{\"from\":\"u2\",\"to\":\"u1\",\"amount\":3}", 0},
    {201, "POST", "/v1/transfers", KEY("k16"), "{\"from\":\"u2\",\"to\":\"u1\",\"amount\":3}", 0},
    {422, "POST", "/v1/transfers", KEY("k16"), "{\"from\":\"u1\",\"to\":\"u2\",\"amount\":3}", 0},
    {409, "POST", "/v1/transfers", KEY("k17"), "{\"from\":\"u1\",\"to\":\"u2\",\"amount\":999}", 0},
    {404, "POST", "/v1/transfers", KEY("k18"), "{\"from\":\"u1\",\"to\":\"u9\",\"amount\":1}", 0},
    {409, "POST", "/v1/transfers", KEY("k19"), "{\"from\":\"u1\",\"to\":\"u2\",\"amount\":4}", 0},
    {200, "GET", "/v1/transactions/k2", "", NULL, 0},
    {200, "GET", "/v1/transactions/k5", "", NULL, 0},
    {200, "GET", "/v1/transactions/k8", "", NULL, 0},
    {200, "GET", "/v1/transactions/k12", "", NULL, 0},
    {200, "GET", "/v1/transactions/k13", "", NULL, 0},
    {200, "GET", "/v1/transactions/k16", "", NULL, 0},
    {404, "GET", "/v1/transactions/none", "", NULL, 0},
    {200, "GET", "/v1/ledger", "", NULL, 0},
    {200, "GET", "/v1/ledger?after=1&limit=2", "", NULL, 0},
    {400, "GET", "/v1/ledger?after=x", "", NULL, 0},
    {200, "GET", "/v1/audit", "", NULL, 0},
    {200, "GET", "/v1/audit?resource=item:1", "", NULL, 0},
    {404, "GET", "/v1/audit?resource=item:none", "", NULL, 0},
    {400, "GET", "/v1/audit?resource=x", "", NULL, 0},
    {200, "GET", "/v1/guards", "", NULL, 0},
    {200, "GET", "/metrics", "", NULL, 0},
    {200, "GET", "/livez", "", NULL, 0},
    {200, "GET", "/readyz", "", NULL, 0},
    {200, "GET", "/healthz", "", NULL, 0},
    {200, "GET", "/problems/sold-out", "", NULL, 0},
    {404, "GET", "/problems/none", "", NULL, 0},
    {200, "GET", "/", "", NULL, 0},
    {200, "GET", "/web/page.js", "", NULL, 0},
    {200, "GET", "/web/style.css", "", NULL, 0},
    {200, "GET", "/web/steps.html", "", NULL, 0},
    {200, "GET", "/web/d3-copyright.txt", "", NULL, 0},
    {200, "GET", "/openapi.json", "", NULL, 0},
};
enum { ANSWERS = sizeof answers / sizeof answers[0] };

#endif
