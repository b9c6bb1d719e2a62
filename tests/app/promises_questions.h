/* One request of each route, and of orders and changes under each kind of guard. */
#ifndef TESTS_APP_PROMISES_QUESTIONS_H
#define TESTS_APP_PROMISES_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct question {
    const char *method, *route, *body, *guard;
    bool item; /* its resource is an item; false: an account */
};

/* {} in the path stands for the case's own resource; on an order's route for its order id. */
static const struct question questions[] = {
    {"PUT", "/v1/items/{}", "{\"stock\":7}", "redis-token", true},
    {"GET", "/v1/items/{}", NULL, "redis-token", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "redis-token", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "redis-fair", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "redis-reentrant", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "pg-advisory", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "sql-unique", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "sql-row", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "sql-atomic", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "sql-version", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "mutex", true},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"u1\"}", "none", true},
    {"POST", "/v1/items/{}/stock-changes", "{\"delta\":1,\"reason\":\"delivery\"}", "redis-token",
     true},
    {"GET", "/v1/orders/{}", NULL, "redis-token", true},
    {"POST", "/v1/orders/{}/payment", NULL, "redis-token", true},
    {"POST", "/v1/orders/{}/cancellation", NULL, "redis-token", true},
    {"POST", "/v1/orders/{}/payment", NULL, "sql-row", true},
    {"POST", "/v1/orders/{}/cancellation", NULL, "sql-row", true},
    {"POST", "/v1/orders/{}/refund", NULL, "redis-token", true},
    {"PATCH", "/v1/items/{}", "{\"price\":7}", "redis-token", true},
    {"PUT", "/v1/accounts/{}", "{\"balance\":7}", "redis-token", false},
    {"PATCH", "/v1/accounts/{}", "{\"fence\":true}", "redis-token", false},
    {"GET", "/v1/accounts/{}", NULL, "redis-token", false},
    {"POST", "/v1/accounts/{}/transactions", "{\"amount\":-1}", "redis-token", false},
    {"POST", "/v1/accounts/{}/transactions", "{\"amount\":-1}", "sql-row", false},
    {"POST", "/v1/accounts/{}/transactions", "{\"amount\":-1}", "sql-version", false},
    {"POST", "/v1/transfers", "{\"from\":\"%s\",\"to\":\"u1\",\"amount\":1}", "redis-token", false},
    {"POST", "/v1/transfers", "{\"from\":\"%s\",\"to\":\"u1\",\"amount\":1}", "sql-row", false},
    {"GET", "/v1/transactions/{}", NULL, "redis-token", false},
    {"GET", "/v1/ledger", NULL, "redis-token", false},
    {"GET", "/v1/items/{}/ledger", NULL, "redis-token", true},
    {"GET", "/v1/accounts/{}/ledger", NULL, "redis-token", false},
    {"GET", "/v1/shop/{}/ledger", NULL, "redis-token", false},
    {"GET", "/v1/orders", NULL, "redis-token", false},
    {"GET", "/v1/guards", NULL, "redis-token", false},
    {"GET", "/readyz", NULL, "redis-token", false},
    {"GET", "/healthz", NULL, "redis-token", false},
    {"GET", "/livez", NULL, "redis-token", false},
    {"GET", "/metrics", NULL, "redis-token", false},
    {"GET", "/openapi.json", NULL, "redis-token", false},
    {"GET", "/", NULL, "redis-token", false},
    {"GET", "/web/{}", NULL, "redis-token", false},
    {"GET", "/problems/{}", NULL, "redis-token", false},
};
enum { CASES = sizeof questions / sizeof questions[0] };

#endif
