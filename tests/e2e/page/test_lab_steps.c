/* What --lab adds for stepping: those held go on one point at a time, have a lease and patience of
 * their own, and their lock can be looked at and made free. */
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

enum { SEEN_WITHIN_MS = 30000, LEASE_MS = 700, PATIENCE_MS = 600000 };

static struct shop shop;
static struct reply reply;
static int port;

static int open_shop(void **state)
{
    (void)state;
    if (shop_open(&shop,
                  (const char *const[]){"--lab", "--lanes", "off", "--wait-ms", "1500", NULL}) != 0)
        return -1;
    port = shop.service->port;
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static int ask(const char *method, const char *path, const char *body)
{
    struct client client = {.port = port, .fd = -1};
    client_call(&client, method, path, NULL, body, SHOP_WAIT_MS, &reply);
    client_close(&client);
    return reply.status;
}

static void set_terms(const char *key, int lease_ms, int wait_ms)
{
    char body[200];
    snprintf(body, sizeof body, "{\"match\":\"%s\",\"lease_ms\":%d,\"wait_ms\":%d}", key, lease_ms,
             wait_ms);
    assert_int_equal(ask("POST", "/v1/lab/terms", body), 201);
}

static void send_change(struct client *client, const char *account, const char *key, int amount)
{
    char path[100], body[40];
    *client = (struct client){.port = port, .fd = -1};
    snprintf(path, sizeof path, "/v1/accounts/%s/transactions", account);
    snprintf(body, sizeof body, "{\"amount\":%d}", amount);
    assert_int_equal(client_send(client, "POST", path, key, body), 0);
}

static int answer_of(struct client *client)
{
    const int status = client_read(client, SHOP_WAIT_MS, &reply);
    client_close(client);
    return status;
}

/* -- pauses --------------------------------------------------------------------------------------
 */

struct sight {
    int64_t id;
    const char *name;
    int64_t wanted, value, fence;
};

static int64_t pause_at(const char *point, const char *key, const char *action)
{
    char body[200];
    snprintf(body, sizeof body,
             "{\"point\":\"%s\",\"match\":\"%s\",\"action\":\"%s\",\"count\":1000}", point, key,
             action);
    assert_int_equal(ask("POST", "/v1/lab/pauses", body), 201);
    json_t *json = json_loads(reply.body, 0, NULL);
    const int64_t id = json_integer_value(json_object_get(json, "id"));
    json_decref(json);
    return id;
}

static bool shows(void *arg)
{
    struct sight *sight = arg;
    json_t *json = client_get(port, "/v1/lab/pauses"), *pause;
    bool seen = false;
    size_t i;
    json_array_foreach(json_object_get(json, "pauses"), i, pause)
    {
        if (json_integer_value(json_object_get(pause, "id")) != sight->id)
            continue;
        seen = json_integer_value(json_object_get(pause, sight->name)) >= sight->wanted;
        sight->value = json_integer_value(json_object_get(pause, "value"));
        sight->fence = json_integer_value(json_object_get(pause, "fence"));
    }
    json_decref(json);
    return seen;
}

static struct sight await(int64_t id, const char *name)
{
    struct sight sight = {id, name, 1, 0, 0};
    assert_true(wait_until(shows, &sight, SEEN_WITHIN_MS));
    return sight;
}

static void step(int64_t id)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/lab/pauses/%d", (int)id);
    assert_int_equal(ask("POST", path, "{}"), 200);
}

static void forget_all(void)
{
    assert_int_equal(ask("DELETE", "/v1/lab/pauses", NULL), 200);
}

static bool lock_is_free(void *path)
{
    return client_number(port, path, "holders") == 0;
}

/* -- claims --------------------------------------------------------------------------------------
 */

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(two_stepped_through_their_points_lose_what_the_script_says)
{
    struct client a, b;
    assert_true(shop_put(&shop, "/v1/accounts/step", "{\"balance\":1000,\"guard\":\"none\"}"));
    const int64_t a_read = pause_at("read", "a1", "hold"),
                  a_decided = pause_at("decided", "a1", "hold"),
                  b_read = pause_at("read", "b1", "hold");
    set_terms("a1", 0, PATIENCE_MS);
    send_change(&a, "step", "a1", -200);
    set_terms("b1", 0, PATIENCE_MS);
    send_change(&b, "step", "b1", -300);
    assert_int_equal(await(a_read, "n_held").value, 1000);
    assert_int_equal(await(b_read, "n_held").value, 1000);
    step(a_read);
    assert_int_equal(await(a_decided, "n_held").value, 800);
    step(a_decided);
    assert_int_equal(answer_of(&a), 201);
    step(b_read);
    assert_int_equal(answer_of(&b), 201);
    assert_int_equal(client_number(port, "/v1/accounts/step", "balance"), 700);
    forget_all();
}

TEST_THAT(who_comes_again_after_a_step_is_held_again)
{
    struct client a;
    assert_true(
        shop_put(&shop, "/v1/accounts/again", "{\"balance\":1000,\"guard\":\"sql-version\"}"));
    set_terms("a2", 0, PATIENCE_MS);
    set_terms("b2", 0, PATIENCE_MS);
    const int64_t id = pause_at("read", "a2", "hold");
    send_change(&a, "again", "a2", -200);
    await(id, "n_held");
    assert_int_equal(
        shop_post(&shop, "/v1/accounts/again/transactions", "b2", "{\"amount\":-300}", &reply),
        201);
    step(id); /* its version is gone: it reads once more */
    assert_int_equal(await(id, "n_held").value, 700);
    step(id);
    assert_int_equal(answer_of(&a), 201);
    assert_int_equal(client_number(port, "/v1/accounts/again", "balance"), 500);
    forget_all();
}

TEST_THAT(a_lease_of_its_own_ends_and_nobody_renews_it)
{
    struct client a;
    char problem[32];
    assert_true(
        shop_put(&shop, "/v1/accounts/lease", "{\"balance\":1000,\"guard\":\"redis-token\"}"));
    set_terms("a3", LEASE_MS, PATIENCE_MS);
    const int64_t id = pause_at("decided", "a3", "hold");
    send_change(&a, "lease", "a3", -200);
    assert_true(await(id, "n_held").fence > 0);
    assert_true(client_number(port, "/v1/lab/locks/account:lease", "left_ms") <= LEASE_MS);
    assert_true(wait_until(lock_is_free, "/v1/lab/locks/account:lease", SEEN_WITHIN_MS));
    step(id);
    assert_int_equal(answer_of(&a), 503);
    assert_string_equal(reply_problem(&reply, problem, sizeof problem), "lock-lost");
    forget_all();
}

TEST_THAT(patience_of_its_own_outlasts_the_services)
{
    struct client a, b, c;
    char problem[32];
    assert_true(
        shop_put(&shop, "/v1/accounts/wait", "{\"balance\":1000,\"guard\":\"redis-token\"}"));
    set_terms("b4", 0, PATIENCE_MS);
    const int64_t held = pause_at("committed", "a4", "hold"),
                  waits = pause_at("lock.wait", "b4", "note");
    set_terms("a4", 0, PATIENCE_MS);
    send_change(&a, "wait", "a4", -200);
    await(held, "n_held");
    send_change(&b, "wait", "b4", -300);
    await(waits, "passed");
    send_change(&c, "wait", "c4", -100);
    assert_int_equal(answer_of(&c), 503);
    assert_string_equal(reply_problem(&reply, problem, sizeof problem), "lock-timeout");
    step(held);
    assert_int_equal(answer_of(&a), 201);
    assert_int_equal(answer_of(&b), 201);
    assert_int_equal(client_number(port, "/v1/accounts/wait", "balance"), 500);
    forget_all();
}

TEST_THAT(a_lock_is_shown_and_made_free_under_its_holder)
{
    static const char path[] = "/v1/lab/locks/account:free";
    struct client a;
    assert_true(shop_put(&shop, "/v1/accounts/free",
                         "{\"balance\":1000,\"guard\":\"redis-token\",\"fence\":false}"));
    assert_true(lock_is_free((void *)path));
    const int64_t id = pause_at("decided", "a5", "hold");
    set_terms("a5", 0, PATIENCE_MS);
    send_change(&a, "free", "a5", -200);
    await(id, "n_held");
    assert_int_equal(client_number(port, path, "holders"), 1);
    assert_true(client_number(port, path, "left_ms") > 0);
    assert_int_equal(ask("DELETE", path, NULL), 200);
    assert_string_equal(reply.body, "{\"was_held\":true}\n");
    assert_true(lock_is_free((void *)path));
    assert_int_equal(ask("DELETE", path, NULL), 200);
    assert_string_equal(reply.body, "{\"was_held\":false}\n");
    step(id);
    assert_int_equal(answer_of(&a), 201);
    forget_all();
}

/* The first has looked at its lock for the last time when the lock goes to the second. SQLite has
 * one write transaction at a time: the first must not stand in it. */
TEST_THAT(the_late_holder_is_refused_by_its_fence_in_each_of_11_plays)
{
    static const char item[] = "{\"stock\":10,\"guard\":\"redis-token\",\"fence\":true}";
    for (int play = 1; play <= 11; play++) {
        struct client a;
        char problem[32], first[16], second[16];
        snprintf(first, sizeof first, "first-%d", play);
        snprintf(second, sizeof second, "second-%d", play);
        assert_true(shop_put(&shop, "/v1/items/late", item));
        const int64_t held = pause_at("checked", first, "hold");
        a = (struct client){.port = port, .fd = -1};
        assert_int_equal(
            client_send(&a, "POST", "/v1/items/late/orders", first, "{\"user_id\":\"a\"}"), 0);
        const int64_t older = await(held, "n_held").fence;
        assert_int_equal(ask("DELETE", "/v1/lab/locks/item:late", NULL), 200);
        assert_int_equal(
            shop_post(&shop, "/v1/items/late/orders", second, "{\"user_id\":\"b\"}", &reply), 201);
        const int64_t newer = client_number(port, "/v1/lab/locks/item:late", "last_fence");
        assert_true(older > 0 && older < newer);
        step(held);
        assert_int_equal(answer_of(&a), 503);
        assert_string_equal(reply_problem(&reply, problem, sizeof problem), "lock-lost");
        assert_int_equal(client_number(port, "/v1/items/late", "stock"), 9);
        assert_int_equal(client_number(port, "/v1/lab/locks/item:late", "last_fence"), newer);
        forget_all();
    }
    json_t *audit = client_get(port, "/v1/audit?resource=item:late");
    assert_true(json_is_true(json_object_get(audit, "ok")));
    json_decref(audit);
}

TEST_THAT(an_items_lock_is_shown_with_the_fence_its_row_has_seen)
{
    static const char path[] = "/v1/lab/locks/item:last";
    assert_true(shop_put(&shop, "/v1/items/last", "{\"stock\":1,\"guard\":\"redis-token\"}"));
    assert_int_equal(client_number(port, path, "last_fence"), 0);
    assert_int_equal(shop_post(&shop, "/v1/items/last/orders", "b6", "{\"user_id\":\"b\"}", &reply),
                     201);
    json_t *order = json_loads(reply.body, 0, NULL), *lock = client_get(port, path);
    const int64_t fence = json_integer_value(json_object_get(order, "fence"));
    assert_true(fence > 0);
    assert_int_equal(json_integer_value(json_object_get(lock, "last_fence")), fence);
    assert_int_equal(json_integer_value(json_object_get(lock, "fence")), fence);
    assert_string_equal(json_string_value(json_object_get(lock, "key")), "lock:item:last");
    json_decref(order);
    json_decref(lock);
}

TEST_THAT(malformed_wishes_are_refused)
{
    static const char *const terms[] = {"{}", "{\"match\":\"\"}", "{\"match\":\"a\",\"x\":1}",
                                        "{\"match\":\"a\",\"lease_ms\":-1}",
                                        "{\"match\":\"a\",\"wait_ms\":3600001}"};
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++)
        assert_int_equal(ask("POST", "/v1/lab/terms", terms[i]), 400);
    assert_int_equal(ask("POST", "/v1/lab/pauses/999", "{}"), 404);
    assert_int_equal(ask("GET", "/v1/lab/locks/account:nobody", NULL), 404);
    assert_int_equal(ask("DELETE", "/v1/lab/locks/item:nobody", NULL), 404);
    assert_int_equal(ask("GET", "/v1/lab/locks/order:1", NULL), 400);
    assert_int_equal(ask("GET", "/v1/lab/locks/", NULL), 400);
    assert_int_equal(ask("POST", "/v1/lab/locks/item:1", "{}"), 405);
}

/* Last: it is another service then. */
TEST_THAT(without_lab_no_lock_is_shown_or_made_free)
{
    char db[SANDBOX_TEXT_MAX + 32];
    snprintf(db, sizeof db, "sqlite:%s/plain.db", sandbox_dir(shop.sandbox));
    struct sandbox_server *plain =
        sandbox_seckilld(shop.sandbox, shop_binary("seckilld"),
                         (const char *const[]){"--db", db, "--guard", "mutex", NULL});
    assert_non_null(plain);
    port = plain->port;
    assert_int_equal(ask("PUT", "/v1/accounts/free", "{\"balance\":1000}"), 201);
    assert_int_equal(ask("GET", "/v1/accounts/free/lock", NULL), 404);
    assert_int_equal(ask("GET", "/v1/lab/locks/account:free", NULL), 404);
    assert_int_equal(ask("DELETE", "/v1/lab/locks/account:free", NULL), 404);
    assert_int_equal(ask("POST", "/v1/lab/terms", "{\"match\":\"a\"}"), 404);
    json_t *guards = client_get(port, "/v1/guards");
    assert_true(json_is_false(json_object_get(guards, "lab")));
    json_decref(guards);
}
