/* What a sale is under beside its guard: lease, watchdog, fence and lanes of one item. */
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { SEEN_WITHIN_MS = 60000, LEASE_MS = 3000, ORDERS = 4 };

static struct shop shop;
static int port;
static struct reply reply;

static int open_shop(void **state)
{
    (void)state;
    if (shop_open(&shop, (const char *const[]){"--lab", "--lanes=off", "--lease-ms=60000",
                                               "--wait-ms=60000", NULL}) != 0)
        return -1;
    port = shop.service->port;
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    const bool well = shop_stop(shop.service);
    shop_close(&shop);
    return well ? 0 : -1;
}

static int post(const char *path, const char *body)
{
    return shop_post(&shop, path, NULL, body, &reply);
}

static int64_t pause_at(const char *point, const char *match, const char *action)
{
    char body[200];
    snprintf(body, sizeof body, "{\"point\":\"%s\",\"match\":\"%s\",\"action\":\"%s\"}", point,
             match, action);
    assert_int_equal(post("/v1/lab/pauses", body), 201);
    json_t *json = json_loads(reply.body, 0, NULL);
    const int64_t id = json_integer_value(json_object_get(json, "id"));
    json_decref(json);
    return id;
}

struct sight {
    int64_t id;
    const char *name;
    int64_t least;
};

static int64_t seen(int64_t id, const char *name)
{
    json_t *json = client_get(port, "/v1/lab/pauses"), *pause;
    int64_t value = -1;
    size_t i;
    json_array_foreach(json_object_get(json, "pauses"), i, pause)
    {
        if (json_integer_value(json_object_get(pause, "id")) == id)
            value = json_integer_value(json_object_get(pause, name));
    }
    json_decref(json);
    return value;
}

static bool shows(void *arg)
{
    const struct sight *sight = arg;
    return seen(sight->id, sight->name) >= sight->least;
}

static void await(int64_t id, const char *name, int64_t least)
{
    struct sight sight = {id, name, least};
    assert_true(wait_until(shows, &sight, SEEN_WITHIN_MS));
}

static void forget_all(void)
{
    assert_int_equal(
        client_call(&shop.client, "DELETE", "/v1/lab/pauses", NULL, NULL, SHOP_WAIT_MS, &reply),
        200);
}

static void send_order(struct client *client, const char *item, int n)
{
    char path[100], key[40], body[60];
    *client = (struct client){.port = port, .fd = -1};
    snprintf(path, sizeof path, "/v1/items/%s/orders", item);
    snprintf(key, sizeof key, "%s-%d", item, n);
    snprintf(body, sizeof body, "{\"user_id\":\"u%d\",\"quantity\":1}", n);
    assert_int_equal(client_send(client, "POST", path, key, body), 0);
}

static int answer_of(struct client *client)
{
    const int status = client_read(client, SHOP_WAIT_MS, &reply);
    client_close(client);
    return status;
}

/* -- the lab's terms --------------------------------------------------------------------------- */

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(a_resource_has_a_lease_of_its_own_which_is_renewed_if_so_wished)
{
    struct client order;
    char terms[200];
    assert_true(shop_put(&shop, "/v1/items/own", "{\"stock\":9,\"guard\":\"redis-token\"}"));
    snprintf(terms, sizeof terms, "{\"match\":\"item:own\",\"lease_ms\":%d,\"watchdog\":true}",
             LEASE_MS);
    assert_int_equal(post("/v1/lab/terms", terms), 201);
    const int64_t held = pause_at("decided", "own-1", "hold"),
                  renewed = pause_at("lock.renew", "lock:item:own", "note");
    send_order(&order, "own", 1);
    await(held, "n_held", 1);
    const int64_t left_ms = client_number(port, "/v1/lab/locks/item:own", "left_ms");
    assert_true(left_ms > 0 && left_ms <= LEASE_MS);
    await(renewed, "passed", 4); /* a third of a lease apart: one is over */
    forget_all();
    assert_int_equal(answer_of(&order), 201);
}

/* In a lane the first takes the lock alone, those behind it share one. */
TEST_THAT(a_resource_is_served_in_lanes_if_so_wished)
{
    struct client orders[ORDERS];
    for (int lanes = 0; lanes < 2; lanes++) {
        const char *item = lanes ? "laned" : "single";
        char path[60], terms[100], lock[60], first[60];
        snprintf(path, sizeof path, "/v1/items/%s", item);
        snprintf(terms, sizeof terms, "{\"match\":\"item:%s\",\"lanes\":%s}", item,
                 lanes ? "true" : "false");
        snprintf(lock, sizeof lock, "lock:item:%s", item);
        snprintf(first, sizeof first, "%s-0", item);
        assert_true(shop_put(&shop, path, "{\"stock\":9,\"guard\":\"redis-token\"}"));
        assert_int_equal(post("/v1/lab/terms", terms), 201);
        const int64_t held = pause_at("read", first, "hold"),
                      granted = pause_at("lock.acquired", lock, "note"),
                      came = pause_at("submitted", "", "note");
        send_order(&orders[0], item, 0);
        await(held, "n_held", 1);
        for (int i = 1; i < ORDERS; i++)
            send_order(&orders[i], item, i);
        await(came, "passed", ORDERS);
        assert_int_equal(post("/v1/lab/pauses/1000000", "{}"), 404); /* one more turn of the loop */
        char path_of_held[60];
        snprintf(path_of_held, sizeof path_of_held, "/v1/lab/pauses/%d", (int)held);
        assert_int_equal(post(path_of_held, "{}"), 200);
        for (int i = 0; i < ORDERS; i++)
            assert_int_equal(answer_of(&orders[i]), 201);
        assert_int_equal(seen(granted, "passed"), lanes ? 2 : ORDERS);
        forget_all();
    }
}

TEST_THAT(terms_that_cannot_be_are_refused)
{
    assert_int_equal(post("/v1/lab/terms", "{\"match\":\"item:x\",\"watchdog\":true}"), 400);
    assert_int_equal(post("/v1/lab/terms", "{\"match\":\"item:x\",\"lanes\":1}"), 400);
}

/* -- loadgen sale ------------------------------------------------------------------------------ */

/* The command, which reports to sale.json in the sandbox. */
static void sale_command(char *ret, size_t size, const char *url, const char *flags)
{
    snprintf(ret, size,
             "%s sale --url=%s --guards=redis-token --buyers=20 --stock=10 --quiet"
             " --json=%s/sale.json %s",
             shop_binary("loadgen"), url, sandbox_dir(shop.sandbox), flags);
}

static json_t *sale(const char *url, const char *flags, int expected)
{
    char command[800], file[SANDBOX_TEXT_MAX + 16];
    sale_command(command, sizeof command, url, flags);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    snprintf(file, sizeof file, "%s/sale.json", sandbox_dir(shop.sandbox));
    return expected == 0 ? json_load_file(file, 0, NULL) : NULL;
}

/* The service's own lease is a minute. */
TEST_THAT(a_sale_runs_under_the_lease_that_it_set)
{
    char command[800], key[80], path[120];
    sale_command(command, sizeof command, shop.service->url, "--lease-ms=5000 --watchdog=on");
    const int64_t held = pause_at("decided", "", "hold");
    FILE *running = popen(command, "r");
    assert_non_null(running);
    await(held, "n_held", 1);
    json_t *json = client_get(port, "/v1/lab/pauses"),
           *pause = json_array_get(json_object_get(json, "pauses"), 0);
    snprintf(key, sizeof key, "%s",
             json_string_value(json_array_get(json_object_get(pause, "held"), 0)));
    json_decref(json);
    assert_non_null(strrchr(key, '-')); /* the item's id, and a number */
    *strrchr(key, '-') = '\0';
    snprintf(path, sizeof path, "/v1/lab/locks/item:%s", key);
    const int64_t left_ms = client_number(port, path, "left_ms");
    forget_all();
    assert_int_equal(pclose(running), 0);
    assert_in_range(left_ms, 1, 5000);
}

TEST_THAT(a_sale_sets_the_terms_of_its_item_and_reports_them)
{
    char path[80];
    const int64_t granted = pause_at("lock.acquired", "", "note");
    json_t *report =
               sale(shop.service->url,
                    "--fence=off --lease-ms=5000 --watchdog=on --lanes=on --connections=4", 0),
           *run = json_array_get(json_object_get(report, "runs"), 0),
           *terms = json_object_get(run, "terms");
    assert_int_equal(json_integer_value(json_object_get(terms, "lease_ms")), 5000);
    assert_true(json_is_true(json_object_get(terms, "watchdog")));
    assert_true(json_is_false(json_object_get(terms, "fence")));
    assert_true(json_is_true(json_object_get(terms, "lanes")));
    assert_true(json_is_true(json_object_get(run, "lanes")));
    assert_true(seen(granted, "passed") > 0);
    snprintf(path, sizeof path, "/v1/items/sale-%s",
             json_string_value(json_object_get(run, "run_id")));
    json_t *item = client_get(port, path);
    assert_true(json_is_false(json_object_get(item, "fence")));
    json_decref(item);
    json_decref(report);
    forget_all();

    report = sale(shop.service->url, "", 0);
    terms = json_object_get(json_array_get(json_object_get(report, "runs"), 0), "terms");
    assert_true(json_is_null(json_object_get(terms, "lease_ms")));
    assert_true(json_is_null(json_object_get(terms, "fence")));
    json_decref(report);
}

TEST_THAT(a_service_without_the_lab_takes_a_fence_but_no_lease)
{
    char db[SANDBOX_TEXT_MAX + 32];
    snprintf(db, sizeof db, "sqlite:%s/plain.db", sandbox_dir(shop.sandbox));
    struct sandbox_server *plain = sandbox_seckilld(
        shop.sandbox, shop_binary("seckilld"),
        (const char *const[]){"--db", db, "--redis", shop.redis->url, "--lanes=off", NULL});
    assert_non_null(plain);
    json_decref(sale(plain->url, "--fence=on", 0));
    assert_null(sale(plain->url, "--lease-ms=5000", 1));
    assert_null(sale(plain->url, "--lanes=on", 1));
    assert_null(sale(plain->url, "--watchdog=on", 2));
    assert_null(sale(plain->url, "--fence=maybe", 2));
    assert_true(shop_stop(plain));
}
