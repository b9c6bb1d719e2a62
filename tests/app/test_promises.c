/* Every route answers within wait_ms plus one second, whatever delays it. Each instance is quiet
 * and has one connection, so only the request itself can wake it. If the machine was late, late
 * requests are repeated: a broken promise is late each time. */
#include "routes.h"
#include "sandbox_proxy.h"
#include "lateness.h"
#include "process.h"
#include "promises_questions.h"
#include "redis.h"
#include "shop.h"
#include "tests.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_TEXT "300"

enum {
    WAIT_MS = 300,
    LATEST_MS = WAIT_MS + 1000 + 700, /* 700: for a busy test machine */
    BUSY_MS = 10,                     /* a machine with this lateness is busy */
    ROUNDS_MAX = 8,
    BACK_WITHIN_MS = 60000,
    INSTANCES = 6, /* each with one connection */
    PATH_MAX_BYTES = 96
};

static struct shop shop;
static struct sandbox_server *postgres, *instances[INSTANCES];
static struct proxy *to_postgres, *to_redis;
static PGconn *other; /* another client of the database */

static struct late {
    struct question asked;
    char path[PATH_MAX_BYTES], id[16];
    int status, asked_times;
    int64_t took_ms;
} cases[CASES];

/* -- the rig ------------------------------------------------------------------------------------
 */

static int open_shop(void **state)
{
    (void)state;
    char store[100], locks[60];
    shop = (struct shop){.client.fd = -1};
    if (sandbox_open(&shop.sandbox) != 0 || !(shop.redis = sandbox_redis(shop.sandbox, NULL)) ||
        !(postgres = sandbox_postgres(shop.sandbox, NULL)) ||
        !(to_postgres = proxy_open(postgres->port)) || !(to_redis = proxy_open(shop.redis->port)))
        return -1;
    other = PQconnectdb(postgres->url);
    snprintf(store, sizeof store, "postgres://postgres@127.0.0.1:%d/postgres?pool=8",
             proxy_port(to_postgres));
    snprintf(locks, sizeof locks, "redis://127.0.0.1:%d", proxy_port(to_redis));
    for (int i = 0; i < INSTANCES; i++) {
        const char *const args[] = {
            "--redis",           locks,     "--db",       store,  "--wait-ms", WAIT_TEXT,
            "--close-orders-ms", "3600000", "--lease-ms", "2000", NULL};
        instances[i] = sandbox_seckilld(shop.sandbox, shop_binary("seckilld"), args);
        if (!instances[i])
            return -1;
    }
    shop.client.port = instances[0]->port;
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    PQfinish(other);
    proxy_close(to_postgres);
    proxy_close(to_redis);
    shop_close(&shop);
    return 0;
}

static void in_database(const char *sql)
{
    PGresult *result = PQexec(other, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(other));
    PQclear(result);
}

/* Replaces {} of the route, and says whose orders. */
static void fill_path(struct late *late, const char *with)
{
    const char *brace = strstr(late->asked.route, "{}");
    int before = brace ? (int)(brace - late->asked.route) : (int)strlen(late->asked.route);
    snprintf(late->path, sizeof late->path, "%.*s%s%s", before, late->asked.route,
             brace                                          ? with
             : strcmp(late->asked.route, "/v1/orders") == 0 ? "?user=u1"
                                                            : "",
             brace ? brace + 2 : "");
}

static void make_order(struct late *late)
{
    static struct reply reply;
    char path[PATH_MAX_BYTES], key[32];
    json_error_t error;
    snprintf(path, sizeof path, "/v1/items/%s/orders", late->id);
    snprintf(key, sizeof key, "of-%s", late->id);
    assert_int_equal(shop_post(&shop, path, key, "{\"user_id\":\"u1\"}", &reply), 201);
    json_t *answer = json_loads(reply.body, 0, &error);
    fill_path(late, json_string_value(json_object_get(answer, "order_id")));
    json_decref(answer);
}

/* Creates new resources for each case. */
static void make_cases(void)
{
    static int made;
    assert_true(shop_put(&shop, "/v1/accounts/u1", "{\"balance\":1000000}"));
    for (int i = 0; i < CASES; i++) {
        struct late *late = &cases[i];
        char path[PATH_MAX_BYTES], body[96];
        *late = (struct late){.asked = questions[i]};
        snprintf(late->id, sizeof late->id, "r%d", ++made);
        snprintf(path, sizeof path, "/v1/%s/%s", late->asked.item ? "items" : "accounts", late->id);
        snprintf(body, sizeof body, "{\"%s\":100,\"guard\":\"%s\"}",
                 late->asked.item ? "stock" : "balance", late->asked.guard);
        assert_true(shop_put(&shop, path, body));
        fill_path(late, strcmp(late->asked.route, "/web/{}") == 0              ? "page.js"
                        : strcmp(late->asked.route, "/v1/shop/{}/ledger") == 0 ? "revenue"
                                                                               : late->id);
        if (strncmp(late->asked.route, "/v1/orders/", 11) == 0)
            make_order(late);
    }
}

struct asker {
    pthread_t thread;
    int number;
};

static bool is_late(const struct late *late)
{
    return late->status == 0 || late->took_ms > LATEST_MS;
}

static void ask_one(struct client *client, struct late *late, struct reply *reply)
{
    char body[96], key[32];
    snprintf(key, sizeof key, "late-%s-%d", late->id, late->asked_times++);
    snprintf(body, sizeof body, late->asked.body ? late->asked.body : "", late->id);
    client_call(client, late->asked.method, late->path,
                strcmp(late->asked.method, "POST") == 0 ? key : NULL,
                late->asked.body ? body : NULL, SHOP_WAIT_MS, reply);
    late->status = reply->status;
    late->took_ms = reply->took_ms;
}

static void *ask_in_turn(void *arg)
{
    const struct asker *asker = arg;
    struct client client = {.port = instances[asker->number]->port, .fd = -1};
    struct reply *reply = calloc(1, sizeof *reply);
    for (int i = asker->number; i < CASES && reply; i += INSTANCES)
        if (is_late(&cases[i]))
            ask_one(&client, &cases[i], reply);
    client_close(&client);
    free(reply);
    return NULL;
}

/* Sends each request that was not yet answered in time. Returns how late the machine was meanwhile.
 */
static int64_t ask_all(void)
{
    struct asker askers[INSTANCES];
    int64_t start_ms = test_now_ms();
    for (int i = 0; i < INSTANCES; i++) {
        askers[i] = (struct asker){.number = i};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_in_turn, &askers[i]), 0);
    }
    for (int i = 0; i < INSTANCES; i++)
        pthread_join(askers[i].thread, NULL);
    return lateness_since(start_ms);
}

static int count_late(void)
{
    int n = 0;
    for (int i = 0; i < CASES; i++)
        n += is_late(&cases[i]);
    return n;
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

/* Starts the obstacle, sends all requests, ends the obstacle. No answer may be late, and some
 * requests must be refused. */
static void all_answer_in_time(const char *what, void (*begin)(void), void (*end)(void))
{
    int late = 0, refused = 0;
    make_cases();
    begin();
    int64_t machine_ms = ask_all();
    for (int i = 1; i < ROUNDS_MAX && machine_ms > BUSY_MS && count_late() > 0; i++)
        machine_ms = ask_all();
    end();
    for (int i = 0; i < CASES; i++) {
        refused += cases[i].status == 503;
        if (!is_late(&cases[i]))
            continue;
        late++;
        print_error("%s: %s %s under %s: %d after %lld ms\n", what, cases[i].asked.method,
                    cases[i].asked.route, cases[i].asked.guard, cases[i].status,
                    (long long)cases[i].took_ms);
    }
    if (late > 0 || refused == 0)
        fail_msg("%s: %d of %d came late, %d were refused; the machine was %d ms late", what, late,
                 CASES, refused, (int)machine_ms);
    assert_true(wait_until(all_are_ready, NULL, BACK_WITHIN_MS));
}

/* -- obstacles -----------------------------------------------------------------------------------
 */

static void lock_rows(void)
{
    in_database("BEGIN");
    in_database("SELECT 1 FROM items FOR UPDATE");
    in_database("SELECT 1 FROM accounts FOR UPDATE");
    in_database("SELECT 1 FROM orders FOR UPDATE");
}

static void lock_tables(void)
{
    in_database("BEGIN");
    in_database("LOCK TABLE items, accounts, orders, idempotency, ledger");
}

static void roll_back(void)
{
    in_database("ROLLBACK");
}

static void silence_database(void)
{
    proxy_drop(to_postgres, PROXY_TO_CLIENT, true);
}

static void hear_database(void)
{
    proxy_drop(to_postgres, PROXY_TO_CLIENT, false);
    proxy_cut(to_postgres);
}

static void silence_redis(void)
{
    proxy_drop(to_redis, PROXY_TO_SERVER, true);
}

static void hear_redis(void)
{
    proxy_drop(to_redis, PROXY_TO_SERVER, false);
    proxy_cut(to_redis);
}

static void take_locks(void)
{
    char id[64];
    for (int i = 0; i < CASES; i++) {
        const char *order = strstr(cases[i].path, "/orders/");
        redis_do(shop.redis, "SET lock:%s:%s foreign", cases[i].asked.item ? "item" : "account",
                 cases[i].id);
        snprintf(id, sizeof id, "%s", order ? order + 8 : "");
        id[strcspn(id, "/")] = '\0';
        if (id[0] != '\0')
            redis_do(shop.redis, "SET lock:order:%s foreign", id);
    }
}

static void free_locks(void)
{
    redis_do(shop.redis, "FLUSHALL");
}

GROUP_FIXTURE(open_shop, close_shop);

/* Exceptions: the audit has ten minutes, see test_http_deadlines.c; events are a stream; these
 * instances have no lessons. */
TEST_THAT(every_other_route_is_asked_for)
{
    for (size_t i = 0; i < n_routes; i++) {
        bool asked = strcmp(routes[i].path, "/v1/audit") == 0 || routes[i].action == ROUTE_EVENTS ||
                     routes[i].lesson;
        for (int j = 0; j < CASES && !asked; j++)
            asked = strcmp(routes[i].path, questions[j].route) == 0 &&
                    strcmp(routes[i].method, questions[j].method) == 0;
        if (!asked)
            fail_msg("%s %s", routes[i].method, routes[i].path);
    }
}

TEST_THAT(nothing_is_late_while_somebody_has_the_rows)
{
    all_answer_in_time("rows locked", lock_rows, roll_back);
}

TEST_THAT(nothing_is_late_while_somebody_has_the_tables)
{
    all_answer_in_time("tables locked", lock_tables, roll_back);
}

TEST_THAT(nothing_is_late_while_the_database_is_silent)
{
    all_answer_in_time("database silent", silence_database, hear_database);
}

TEST_THAT(nothing_is_late_while_somebody_has_the_locks)
{
    all_answer_in_time("locks held", take_locks, free_locks);
}

TEST_THAT(nothing_is_late_while_the_lock_server_is_silent)
{
    all_answer_in_time("lock server silent", silence_redis, hear_redis);
}

TEST_THAT(services_drain_and_end_well)
{
    for (int i = 0; i < INSTANCES; i++)
        assert_true(shop_stop(instances[i]));
}
