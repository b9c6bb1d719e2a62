/* One service on SQLite, two on one PostgreSQL, one with --demo, and what a client asks of them. */
#ifndef TESTS_E2E_PLACES_H
#define TESTS_E2E_PLACES_H

#include "process.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

enum { PLACES = 2 };

static struct shop shop;
static struct sandbox_server *demo;
static struct reply reply;

/* Where the service keeps its rows, and the ports of its instances. */
static struct place {
    const char *name;
    int ports[2];
} places[PLACES] = {{.name = "SQLite"}, {.name = "PostgreSQL, two instances"}};

static struct sandbox_server *start(const char *db, const char *flag)
{
    const char *const args[] = {"--db", db, "--guard", "mutex", flag, NULL};
    return sandbox_seckilld(shop.sandbox, shop_binary("seckilld"), args);
}

static int open_shop(void **state)
{
    (void)state;
    char db[SANDBOX_TEXT_MAX + 32];
    shop = (struct shop){.client.fd = -1};
    if (sandbox_open(&shop.sandbox) != 0)
        return -1;
    const struct sandbox_server *postgres = sandbox_postgres(shop.sandbox, NULL);
    snprintf(db, sizeof db, "sqlite:%s/shop.db", sandbox_dir(shop.sandbox));
    struct sandbox_server *one = start(db, NULL);
    struct sandbox_server *two = postgres ? start(postgres->url, NULL) : NULL;
    struct sandbox_server *three = postgres ? start(postgres->url, NULL) : NULL;
    snprintf(db, sizeof db, "sqlite:%s/demo.db", sandbox_dir(shop.sandbox));
    demo = start(db, "--demo");
    if (!one || !two || !three || !demo)
        return -1;
    places[0].ports[0] = places[0].ports[1] = one->port;
    places[1].ports[0] = two->port;
    places[1].ports[1] = three->port;
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static int ask(int port, const char *method, const char *path, const char *condition,
               const char *body)
{
    struct client client = {.port = port, .fd = -1, .condition = condition};
    const char *key = strcmp(method, "POST") == 0 ? path : NULL;
    client_call(&client, method, path, key, body, SHOP_WAIT_MS, &reply);
    client_close(&client);
    return reply.status;
}

static void assert_problem(const char *name)
{
    char got[64];
    assert_string_equal(reply_problem(&reply, got, sizeof got), name);
}

static int order(int port, const char *id, int buyer)
{
    char path[64], key[64], body[64];
    struct client client = {.port = port, .fd = -1};
    snprintf(path, sizeof path, "/v1/items/%s/orders", id);
    snprintf(key, sizeof key, "%s-%d", id, buyer);
    snprintf(body, sizeof body, "{\"user_id\":\"u%d\"}", buyer);
    client_call(&client, "POST", path, key, body, SHOP_WAIT_MS, &reply);
    client_close(&client);
    return reply.status;
}

#endif
