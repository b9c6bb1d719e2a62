/* A PATCH changes the terms of an item or an account, and the sale goes on. On both engines, and
 * with two instances on one PostgreSQL. */
#include "places.h"

GROUP_FIXTURE(open_shop, close_shop);

/* A price and a guard change while the sale goes on: no order is lost, and none is sold twice. */
TEST_THAT(a_patch_changes_terms_and_keeps_the_sale)
{
    static const char *const guards[] = {"sql-atomic", "sql-row", "sql-version", "none", "mutex"};
    for (size_t p = 0; p < PLACES; p++) {
        int port = places[p].ports[0];
        int buyer = 0;
        assert_int_equal(ask(port, "PUT", "/v1/items/terms", NULL, "{\"stock\":9,\"price\":5}"),
                         201);
        assert_int_equal(order(port, "terms", buyer++), 201);
        for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
            char over[64], body[96];
            port = places[p].ports[i % 2];
            snprintf(over, sizeof over, "If-Match: \"%d\"", 2 + 2 * (int)i);
            snprintf(body, sizeof body, "{\"guard\":\"%s\",\"price\":%d}", guards[i], 6 + (int)i);
            assert_int_equal(ask(port, "PATCH", "/v1/items/terms", over, body), 200);
            port = places[p].ports[(i + 1) % 2];
            assert_int_equal(ask(port, "PATCH", "/v1/items/terms", over, body), 412); /* again */
            assert_int_equal(client_number(port, "/v1/items/terms", "price"), 6 + (int)i);
            assert_int_equal(client_number(port, "/v1/items/terms", "stock"), 9 - buyer);
            assert_int_equal(order(port, "terms", buyer++), 201);
            assert_non_null(strstr(reply.body, guards[i]));
        }
        assert_int_equal(client_number(port, "/v1/items/terms", "sold"), buyer);
        assert_int_equal(ask(port, "PATCH", "/v1/items/terms", NULL, "{\"price\":1}"), 412);
        assert_int_equal(ask(port, "PATCH", "/v1/items/terms", "X-None: 1", "{\"price\":1}"), 428);
        assert_int_equal(ask(port, "PATCH", "/v1/items/none", "If-Match: \"1\"", "{}"), 412);
        assert_true(shop_audit_ok(port));
    }
}

/* A limit may fall as far as what a user has, and no further. */
TEST_THAT(a_limit_falls_to_what_its_users_have)
{
    for (size_t p = 0; p < PLACES; p++) {
        const int port = places[p].ports[1];
        const char *const path = "/v1/items/limit";
        assert_int_equal(
            ask(places[p].ports[0], "PUT", path, NULL, "{\"stock\":9,\"per_user_limit\":5}"), 201);
        struct client client = {.port = port, .fd = -1};
        client_call(&client, "POST", "/v1/items/limit/orders", "limit-key",
                    "{\"user_id\":\"u\",\"quantity\":3}", SHOP_WAIT_MS, &reply);
        client_close(&client);
        assert_int_equal(reply.status, 201);
        assert_int_equal(ask(port, "PATCH", path, "If-Match: \"2\"", "{\"per_user_limit\":2}"),
                         409);
        assert_problem("user-limit");
        assert_int_equal(ask(port, "PATCH", path, "If-Match: \"2\"", "{\"per_user_limit\":3}"),
                         200);
        assert_int_equal(ask(port, "PATCH", path, "If-Match: \"3\"", "{\"per_user_limit\":0}"),
                         200);
        assert_int_equal(ask(port, "PATCH", path, "If-Match: \"4\"", "{\"per_user_limit\":2}"),
                         409); /* by way of none it may not, either */
        assert_true(shop_audit_ok(port));
    }
}

/* What was bought while there was no limit counts for none. */
TEST_THAT(a_limit_that_comes_later_leaves_the_audit_clean)
{
    for (size_t p = 0; p < PLACES; p++) {
        const int port = places[p].ports[1];
        const char *const path = "/v1/items/later";
        assert_int_equal(ask(places[p].ports[0], "PUT", path, NULL, "{\"stock\":9}"), 201);
        struct client client = {.port = port, .fd = -1};
        for (int user = 0; user < 3; user++) {
            char key[16], body[64];
            snprintf(key, sizeof key, "later-%d", user);
            snprintf(body, sizeof body, "{\"user_id\":\"u%d\",\"quantity\":2}", user);
            client_call(&client, "POST", "/v1/items/later/orders", key, body, SHOP_WAIT_MS, &reply);
            assert_int_equal(reply.status, 201);
        }
        client_close(&client);
        assert_int_equal(ask(port, "PATCH", path, "If-Match: \"4\"", "{\"per_user_limit\":3}"),
                         200);
        assert_true(shop_audit_ok(port));
    }
}

/* The guard of an account changes while money comes in. */
TEST_THAT(an_accounts_guard_changes_and_its_balance_stays)
{
    static const char *const guards[] = {"sql-atomic", "sql-row", "sql-version", "mutex"};
    for (size_t p = 0; p < PLACES; p++) {
        int port = places[p].ports[0];
        const char *const path = "/v1/accounts/payer";
        assert_int_equal(ask(port, "PUT", path, NULL, "{\"balance\":100}"), 201);
        for (int i = 0; i < 4; i++) {
            char over[64], body[96], key[32];
            port = places[p].ports[i % 2];
            snprintf(over, sizeof over, "If-Match: \"%d\"", 1 + 2 * i);
            snprintf(body, sizeof body, "{\"guard\":\"%s\"}", guards[i]);
            assert_int_equal(ask(port, "PATCH", path, over, body), 200);
            port = places[p].ports[(i + 1) % 2];
            assert_int_equal(ask(port, "PATCH", path, over, body), 412); /* again */
            assert_int_equal(client_number(port, path, "balance"), 100 + i);
            snprintf(key, sizeof key, "payer-%d", i);
            struct client client = {.port = port, .fd = -1};
            client_call(&client, "POST", "/v1/accounts/payer/transactions", key, "{\"amount\":1}",
                        SHOP_WAIT_MS, &reply);
            client_close(&client);
            assert_int_equal(reply.status, 201);
        }
        assert_int_equal(client_number(port, path, "version"), 9);
        assert_int_equal(ask(port, "PATCH", path, "X-None: 1", "{}"), 428);
        assert_int_equal(ask(port, "PATCH", path, "If-Match: \"9\"", "{\"price\":1}"), 400);
        assert_int_equal(ask(port, "PATCH", "/v1/accounts/none", "If-Match: \"1\"", "{}"), 412);
        assert_true(shop_audit_ok(port));
    }
}
