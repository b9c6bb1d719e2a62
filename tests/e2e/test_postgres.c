/* Two instances of the service on one PostgreSQL: they sell exactly under every kind of safe guard
 * and lose updates without one; a dead database is told at once, and both go on when it is back. */
#include "lateness.h"
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INSTANCES = 2,
    BUYERS = 12,
    ORDERS = 15, /* of each buyer: more than there is */
    STOCK = 100,
    AT_ONCE_MS = 1500,
    BACK_WITHIN_MS = 15000,
    LOSING_SALES_MAX = 20
};

static const char *const guards[] = {"redis-token", "sql-row", "sql-atomic", "sql-version"};
enum { GUARDS = sizeof guards / sizeof guards[0] };

static struct shop shop;
static struct sandbox_server *postgres, *instances[INSTANCES];
static struct reply reply;
static int next_sale;

static int open_shop(void **state)
{
    (void)state;
    shop = (struct shop){.client.fd = -1};
    if (sandbox_open(&shop.sandbox) != 0 || !(shop.redis = sandbox_redis(shop.sandbox, NULL)) ||
        !(postgres = sandbox_postgres(shop.sandbox, NULL)))
        return -1;
    for (int i = 0; i < INSTANCES; i++) {
        const char *name = i == 0 ? "one" : "two";
        const char *const args[] = {
            "--redis", shop.redis->url, "--db", postgres->url, "--instance", name, NULL};
        instances[i] = sandbox_seckilld(shop.sandbox, shop_binary("seckilld"), args);
        if (!instances[i])
            return -1;
    }
    shop.service = instances[0];
    shop.client.port = instances[0]->port;
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

/* -- sales --------------------------------------------------------------------------------------
 */

struct buyer {
    pthread_t thread;
    int number, sale, accepted, refused, other;
};

/* A 503 is no decision: the same key is sent again until there is one. */
static int buy(struct client *client, const struct buyer *buyer, int order, struct reply *ret)
{
    char path[64], key[48];
    int64_t deadline_ms = test_now_ms() + SHOP_WAIT_MS;
    snprintf(path, sizeof path, "/v1/items/sale-%d/orders", buyer->sale);
    snprintf(key, sizeof key, "sale-%d-%d-%d", buyer->sale, buyer->number, order);
    do
        client_call(client, "POST", path, key, "{\"user_id\":\"u1\"}", SHOP_WAIT_MS, ret);
    while (ret->status == 503 && test_now_ms() < deadline_ms);
    return ret->status;
}

static void *buyer_main(void *arg)
{
    struct buyer *buyer = arg;
    struct client client = {.port = instances[buyer->number % INSTANCES]->port, .fd = -1};
    struct reply *got = calloc(1, sizeof *got);
    for (int i = 0; i < ORDERS && got; i++) {
        int status = buy(&client, buyer, i, got);
        if (status == 201)
            buyer->accepted++;
        else if (status == 409)
            buyer->refused++;
        else
            buyer->other++;
    }
    client_close(&client);
    free(got);
    return NULL;
}

/* Runs a sale of a new item and returns the number of accepted orders. */
static int sell_out(const char *guard)
{
    struct buyer buyers[BUYERS];
    char path[64], body[96];
    int accepted = 0, answered = 0;
    snprintf(path, sizeof path, "/v1/items/sale-%d", ++next_sale);
    snprintf(body, sizeof body, "{\"stock\":%d,\"guard\":\"%s\"}", STOCK, guard);
    assert_true(shop_put(&shop, path, body));
    for (int i = 0; i < BUYERS; i++) {
        buyers[i] = (struct buyer){.number = i, .sale = next_sale};
        assert_int_equal(pthread_create(&buyers[i].thread, NULL, buyer_main, &buyers[i]), 0);
    }
    for (int i = 0; i < BUYERS; i++) {
        pthread_join(buyers[i].thread, NULL);
        accepted += buyers[i].accepted;
        answered += buyers[i].accepted + buyers[i].refused;
    }
    assert_int_equal(answered, BUYERS * ORDERS);
    return accepted;
}

/* One resource of the audit says so. */
static bool sale_is_clean(int64_t *ret_lost)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/audit?resource=item:sale-%d", next_sale);
    json_t *audit = client_get(instances[1]->port, path);
    json_t *row = json_array_get(json_object_get(audit, "resources"), 0);
    bool ok = json_is_true(json_object_get(audit, "ok"));
    *ret_lost = json_integer_value(json_object_get(row, "lost_updates"));
    json_decref(audit);
    return ok;
}

/* -- the limit per user -------------------------------------------------------------------------
 */

struct twin {
    pthread_t thread;
    int instance, status;
};

static void *twin_main(void *arg)
{
    struct twin *twin = arg;
    struct client client = {.port = instances[twin->instance]->port, .fd = -1};
    struct reply *got = calloc(1, sizeof *got);
    char key[32];
    snprintf(key, sizeof key, "twin-%d-%d", next_sale, twin->instance);
    client_call(&client, "POST", "/v1/items/limited/orders", key, "{\"user_id\":\"u1\"}",
                SHOP_WAIT_MS, got);
    twin->status = got->status;
    client_close(&client);
    free(got);
    return NULL;
}

static void ask(PGconn *handle, const char *sql, char ret[16])
{
    PGresult *result = PQexec(handle, sql);
    assert_true(PQresultStatus(result) == PGRES_TUPLES_OK ||
                PQresultStatus(result) == PGRES_COMMAND_OK);
    snprintf(ret, 16, "%s", PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(safe_guards_sell_exactly_on_two_instances)
{
    for (size_t i = 0; i < GUARDS; i++) {
        int64_t lost = -1;
        int accepted = sell_out(guards[i]);
        if (accepted != STOCK || !sale_is_clean(&lost) || lost != 0)
            fail_msg("%s: %d of %d sold, %d lost updates", guards[i], accepted, STOCK, (int)lost);
    }
}

/* Somebody else has the item's row until both orders wait for it. */
TEST_THAT(two_orders_of_one_user_at_once_do_not_pass_his_limit)
{
    static const char *const inside[] = {"sql-row", "sql-atomic"};
    PGconn *handle = PQconnectdb(postgres->url);
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        struct twin twins[INSTANCES];
        char body[96], got[16] = "";
        int64_t deadline_ms = test_now_ms() + SHOP_WAIT_MS;
        next_sale++;
        snprintf(body, sizeof body, "{\"stock\":10,\"per_user_limit\":1,\"guard\":\"%s\"}",
                 inside[i]);
        assert_true(shop_put(&shop, "/v1/items/limited", body));
        ask(handle, "BEGIN", got);
        ask(handle, "SELECT stock FROM items WHERE id = 'limited' FOR UPDATE", got);
        for (int k = 0; k < INSTANCES; k++) {
            twins[k] = (struct twin){.instance = k};
            assert_int_equal(pthread_create(&twins[k].thread, NULL, twin_main, &twins[k]), 0);
        }
        while (strcmp(got, "2") != 0 && test_now_ms() < deadline_ms)
            ask(handle, "SELECT count(*)::text FROM pg_locks WHERE NOT granted", got);
        assert_string_equal("2", got);
        ask(handle, "COMMIT", got);
        for (int k = 0; k < INSTANCES; k++)
            pthread_join(twins[k].thread, NULL);
        assert_int_equal(201 + 409, twins[0].status + twins[1].status);
    }
    PQfinish(handle);
}

/* Nothing in the store hides the race. */
TEST_THAT(no_guard_loses_updates_on_two_instances)
{
    int64_t lost = 0;
    for (int i = 0; i < LOSING_SALES_MAX && lost == 0; i++) {
        sell_out("none");
        assert_true(sale_is_clean(&lost) == (lost == 0));
    }
    assert_true(lost > 0);
}

/* -- the database goes away ---------------------------------------------------------------------
 */

static int post_order(const char *guard)
{
    static int number;
    char path[64], key[32];
    snprintf(path, sizeof path, "/v1/items/away-%s/orders", guard);
    snprintf(key, sizeof key, "away-%d", ++number);
    return shop_post(&shop, path, key, "{\"user_id\":\"u1\"}", &reply);
}

static bool all_sell(void *arg)
{
    bool all = true;
    (void)arg;
    for (size_t i = 0; i < GUARDS; i++)
        all = all && post_order(guards[i]) == 201;
    return all;
}

static bool readiness_is(void *status)
{
    client_call(&shop.client, "GET", "/readyz", NULL, NULL, SHOP_WAIT_MS, &reply);
    return reply.status == *(int *)status;
}

static bool all_are_ready(void *arg)
{
    bool all = true;
    (void)arg;
    for (int i = 0; i < INSTANCES; i++) {
        json_t *ready = client_get(instances[i]->port, "/readyz");
        all = all && ready != NULL;
        json_decref(ready);
    }
    return all;
}

static void expect_clean_audit(struct client *client, const char *guard)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/audit?resource=item:away-%s", guard);
    client_call(client, "GET", path, NULL, NULL, SHOP_WAIT_MS, &reply);
    json_t *audit = json_loads(reply.body, 0, NULL);
    const bool ok = reply.status == 200 && json_is_true(json_object_get(audit, "ok"));
    json_decref(audit);
    if (!ok)
        fail_msg("%s: %d %s", guard, reply.status, reply.body);
}

static bool comes_up(void *arg)
{
    (void)arg;
    return sandbox_restart(postgres) == 0;
}

TEST_THAT(killed_database_is_told_at_once_and_comes_back)
{
    char path[64], body[96], problem[32];
    int not_ready = 503;
    for (size_t i = 0; i < GUARDS; i++) {
        snprintf(path, sizeof path, "/v1/items/away-%s", guards[i]);
        snprintf(body, sizeof body, "{\"stock\":1000,\"guard\":\"%s\"}", guards[i]);
        assert_true(shop_put(&shop, path, body));
    }
    assert_true(all_sell(NULL));
    struct process services[INSTANCES];
    for (int i = 0; i < INSTANCES; i++)
        services[i] = process_of(instances[i]->pid);

    assert_true(WIFSIGNALED(sandbox_signal(postgres, SIGKILL)));
    /* Its processes go on for a moment, until they notice that their parent is dead. */
    assert_true(comes_within(readiness_is, &not_ready, BACK_WITHIN_MS));
    for (size_t i = 0; i < GUARDS; i++) {
        assert_int_equal(post_order(guards[i]), 503);
        reply_problem(&reply, problem, sizeof problem);
        assert_string_equal(problem, "unavailable");
        assert_true(took_at_most(reply.took_ms, AT_ONCE_MS));
        assert_true(reply.retry_after_s >= 1);
    }
    assert_true(readiness_is(&not_ready));
    assert_true(took_at_most(reply.took_ms, AT_ONCE_MS));

    /* Those that have not noticed keep the new one from starting. */
    assert_true(comes_within(comes_up, NULL, BACK_WITHIN_MS));
    assert_true(comes_within(all_are_ready, NULL, BACK_WITHIN_MS));
    assert_true(comes_within(all_sell, NULL, BACK_WITHIN_MS));
    for (int i = 0; i < INSTANCES; i++)
        assert_true(process_runs(services[i]));
    struct client second = {.port = instances[1]->port, .fd = -1};
    for (size_t i = 0; i < GUARDS; i++)
        expect_clean_audit(&second, guards[i]);
    client_close(&second);
}

/* Last: cmocka's exit status does not tell of a failed teardown. */
TEST_THAT(services_drain_and_end_well)
{
    for (int i = 0; i < INSTANCES; i++)
        assert_true(shop_stop(instances[i]));
}
