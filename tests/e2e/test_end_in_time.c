/* SIGTERM ends the service in the promised time, --wait-ms and 10 s, whatever its threads wait for:
 * a Redis that hangs under orders, a PostgreSQL that hangs under orders and an audit (which alone
 * would take 22 s). */
#include "lateness.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "shop.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ORDERS = 20, WAIT_MS = 1000, PROMISED_MS = WAIT_MS + 10000 };

static struct sandbox *sandbox;
static struct sandbox_server *redis, *postgres, *service;
static struct proxy *to_redis, *to_postgres;
static struct client clients[ORDERS + 1];

static int set_up(void **state)
{
    char redis_url[128], db[128];
    (void)state;
    if (sandbox_open(&sandbox) != 0 || (redis = sandbox_redis(sandbox, NULL)) == NULL ||
        (postgres = sandbox_postgres(sandbox, NULL)) == NULL ||
        (to_redis = proxy_open(redis->port)) == NULL ||
        (to_postgres = proxy_open(postgres->port)) == NULL)
        return -1;
    snprintf(redis_url, sizeof redis_url, "redis://127.0.0.1:%d", proxy_port(to_redis));
    snprintf(db, sizeof db, "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable",
             proxy_port(to_postgres));
    const char *args[] = {"--redis", redis_url, "--db", db, "--wait-ms", "1000", NULL};
    service = sandbox_seckilld(sandbox, shop_binary("seckilld"), args);
    return service != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i <= ORDERS; i++)
        client_close(&clients[i]);
    proxy_close(to_redis);
    proxy_close(to_postgres);
    sandbox_close(sandbox);
    return 0;
}

static void put(const char *path)
{
    struct client client = {.port = service->port, .fd = -1};
    struct reply reply;
    const int status =
        client_call(&client, "PUT", path, NULL, "{\"stock\":100}", SHOP_WAIT_MS, &reply);
    assert_true(status == 200 || status == 201);
    client_close(&client);
}

/* Sends orders and an audit, each on a connection of its own. */
static void ask(void)
{
    char key[16];
    for (int i = 0; i <= ORDERS; i++) {
        const char *path = i % 2 != 0 ? "/v1/items/1/orders" : "/v1/items/2/orders";
        clients[i] = (struct client){.port = service->port, .fd = -1};
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(i == ORDERS
                             ? client_send(&clients[i], "GET", "/v1/audit", NULL, NULL)
                             : client_send(&clients[i], "POST", path, key, "{\"user_id\":\"u1\"}"),
                         0);
    }
}

static bool orders_wait(void *arg)
{
    (void)arg;
    struct client client = {.port = service->port, .fd = -1};
    struct reply reply;
    const char *at = NULL;
    if (client_call(&client, "GET", "/metrics", NULL, NULL, SHOP_WAIT_MS, &reply) == 200)
        at = strstr(reply.body, "\nseckill_http_in_flight ");
    client_close(&client);
    return at != NULL && atoi(strchr(at, ' ')) >= ORDERS;
}

static void it_ends_while_silent(struct proxy *way)
{
    put("/v1/items/1");
    put("/v1/items/2");
    proxy_drop(way, PROXY_TO_CLIENT, true);
    ask();
    assert_true(wait_until(orders_wait, NULL, SHOP_WAIT_MS));
    const int64_t began_ms = test_now_ms();
    const int status = sandbox_signal(service, SIGTERM);
    const int64_t took_ms = test_now_ms() - began_ms;
    printf("ended after %lld ms, wait status 0x%x\n", (long long)took_ms, (unsigned)status);
    assert_true(WIFEXITED(status));
    assert_true(took_at_most(took_ms, PROMISED_MS));
}

TEST_FIXTURE(set_up, tear_down);

TEST_THAT(with_a_redis_that_hangs)
{
    it_ends_while_silent(to_redis);
}

TEST_THAT(with_a_postgres_that_hangs)
{
    it_ends_while_silent(to_postgres);
}
