/* One effect per Idempotency-Key, whatever clients do: send twice, at once or later, hang up before
 * the answer, reuse a key for something else. */
#include "process.h"
#include "redis.h"
#include "shop.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 8, KEYS_MAX = 10000, DUPLICATES_PCT = 30, ABANDONED_PCT = 5, RETRIES_MAX = 5000 };

static struct shop shop;
static struct reply reply, again; /* of the main thread */

static int open_shop(void **state)
{
    (void)state;
    return shop_open(&shop, (const char *const[]){"--wait-ms", "20000", NULL});
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

/* -- many requests ---------------------------------------------------------------------------- */

static struct {
    int keys, requests;
    atomic_int next; /* request to be sent */
    atomic_int abandoned, sent_again, replayed;
    pthread_mutex_t lock;    /* over the rest */
    char *answers[KEYS_MAX]; /* first answer to each key, status first */
    const char *failure;
} many = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The first answer to a key is kept, every other must equal it. */
static void keep_answer(int key, const struct reply *answer)
{
    char text[CLIENT_BODY_MAX + 8];
    snprintf(text, sizeof text, "%d %s", answer->status, answer->body);
    pthread_mutex_lock(&many.lock);
    if (many.answers[key] == NULL) {
        many.answers[key] = strdup(text);
    } else if (strcmp(many.answers[key], text) != 0) {
        many.failure = "two different answers to one key";
        fprintf(stderr, "key %d:\n%s\n%s\n", key, many.answers[key], text);
    }
    pthread_mutex_unlock(&many.lock);
}

static void fail_many(const char *why, const struct reply *answer)
{
    pthread_mutex_lock(&many.lock);
    many.failure = why;
    pthread_mutex_unlock(&many.lock);
    fprintf(stderr, "%s: %d %s\n", why, answer->status, answer->body);
}

static bool decided(const struct reply *answer)
{
    char problem[32];
    reply_problem(answer, problem, sizeof problem);
    return answer->status == 201 || strcmp(problem, "sold-out") == 0;
}

static bool to_be_repeated(const struct reply *answer)
{
    char problem[32];
    reply_problem(answer, problem, sizeof problem);
    return answer->status == 503 || strcmp(problem, "in-flight") == 0;
}

static void request_body(char *ret, size_t size, int key)
{
    snprintf(ret, size, "{\"user_id\":\"u%d\",\"quantity\":1}", key);
}

static void send_one(struct client *client, int key, bool abandon, struct reply *answer)
{
    static const char path[] = "/v1/items/rush/orders";
    char name[32], body[64];
    snprintf(name, sizeof name, "rush-%d", key);
    request_body(body, sizeof body, key);
    if (abandon) {
        many.abandoned++;
        client_send(client, "POST", path, name, body);
        client_close(client); /* before any answer */
        return;
    }
    for (int i = 0; i < RETRIES_MAX; i++) {
        client_call(client, "POST", path, name, body, SHOP_WAIT_MS, answer);
        many.replayed += answer->replayed;
        if (decided(answer)) {
            keep_answer(key, answer);
            return;
        }
        if (!to_be_repeated(answer)) {
            fail_many("neither decided nor to be repeated", answer);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* a client's retry delay */
    }
    fail_many("never decided", answer);
}

/* Request i of every hundred: 70 new keys, 30 repetitions of a key sent a moment ago, which may
 * well be running still. */
static int key_of(int request)
{
    int block = request / 100, place = request % 100;
    return block * (100 - DUPLICATES_PCT) +
           (place < 100 - DUPLICATES_PCT ? place : (place * 7) % (100 - DUPLICATES_PCT));
}

static void *send_many(void *arg)
{
    (void)arg;
    struct client client = {.port = shop.service->port, .fd = -1};
    struct reply *answer = malloc(sizeof *answer);
    for (int i = many.next++; answer != NULL && i < many.requests; i = many.next++) {
        if (i % 100 >= 100 - DUPLICATES_PCT)
            many.sent_again++;
        send_one(&client, key_of(i), i % (100 / ABANDONED_PCT) == 3, answer);
    }
    client_close(&client);
    free(answer);
    return NULL;
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(duplicates_and_abandoned_connections_end_with_one_effect_per_key)
{
    many.requests = (int)test_size(2000, 10000);
    many.keys = many.requests * (100 - DUPLICATES_PCT) / 100;
    int64_t stock = many.keys * 3 / 4; /* both answers, sold and sold out, are decisions */
    char item[64];
    snprintf(item, sizeof item, "{\"stock\":%d}", (int)stock);
    assert_true(shop_put(&shop, "/v1/items/rush", item));

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_null(many.failure);
    assert_int_equal(many.abandoned, many.requests * ABANDONED_PCT / 100);
    assert_int_equal(many.sent_again, many.requests * DUPLICATES_PCT / 100);

    /* Every key is asked for once more: those abandoned are decided by it. */
    int64_t sold = 0;
    for (int key = 0; key < many.keys; key++) {
        send_one(&shop.client, key, false, &reply);
        assert_null(many.failure);
        char path[64];
        snprintf(path, sizeof path, "/v1/transactions/rush-%d", key);
        client_call(&shop.client, "GET", path, NULL, NULL, SHOP_WAIT_MS, &again);
        assert_int_equal(again.status, 200);
        assert_string_equal(again.body, reply.body);
        sold += reply.status == 201;
    }
    print_message("%d requests, %d keys, %d replays, %d sold\n", many.requests, many.keys,
                  many.replayed, (int)sold);
    assert_true(many.replayed >= many.keys * 9 / 10);
    assert_int_equal(sold, stock);
    assert_int_equal(client_number(shop.service->port, "/v1/items/rush", "sold"), stock);
    assert_int_equal(client_number(shop.service->port, "/v1/items/rush", "stock"), 0);
    assert_true(shop_audit_ok(shop.service->port));
    for (int key = 0; key < many.keys; key++)
        free(many.answers[key]);
}

/* -- single cases ----------------------------------------------------------------------------- */

static const char *problem_of(const struct reply *answer)
{
    static char problem[32];
    return reply_problem(answer, problem, sizeof problem);
}

TEST_THAT(other_payload_under_a_used_key_is_refused)
{
    assert_true(shop_put(&shop, "/v1/items/a", "{\"stock\":10}"));
    assert_true(shop_put(&shop, "/v1/items/b", "{\"stock\":10}"));
    assert_true(shop_put(&shop, "/v1/accounts/a", "{\"balance\":10}"));
    static const struct {
        const char *path, *body;
    } others[] = {
        {"/v1/items/a/orders", "{\"user_id\":\"u1\",\"quantity\":2}"},
        {"/v1/items/a/orders", "{\"user_id\":\"u2\",\"quantity\":1}"},
        {"/v1/items/b/orders", "{\"user_id\":\"u1\",\"quantity\":1}"},
        {"/v1/accounts/a/transactions", "{\"amount\":-1}"},
    };
    assert_int_equal(shop_post(&shop, "/v1/items/a/orders", "one",
                               "{\"user_id\":\"u1\",\"quantity\":1}", &reply),
                     201);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(shop_post(&shop, others[i].path, "one", others[i].body, &again), 422);
        assert_string_equal(problem_of(&again), "key-reused");
    }
    /* The same in other words is the same. */
    assert_int_equal(shop_post(&shop, "/v1/items/a/orders", "\"one\"",
                               "{ \"quantity\" : 1, \"user_id\":\"u1\" }", &again),
                     201);
    assert_true(again.replayed);
    assert_string_equal(again.body, reply.body);
    assert_int_equal(client_number(shop.service->port, "/v1/items/a", "stock"), 9);
    assert_int_equal(client_number(shop.service->port, "/v1/items/b", "stock"), 10);
    assert_int_equal(client_number(shop.service->port, "/v1/accounts/a", "balance"), 10);
}

TEST_THAT(an_order_is_where_its_answer_says_also_a_replayed_one)
{
    static const char path[] = "/v1/items/placed/orders", body[] = "{\"user_id\":\"u1\"}";
    assert_true(shop_put(&shop, "/v1/items/placed", "{\"stock\":1}"));
    assert_int_equal(shop_post(&shop, path, "placed", body, &reply), 201);
    assert_int_equal(shop_post(&shop, path, "placed", body, &again), 201);
    assert_true(again.replayed);
    assert_string_equal(again.location, reply.location);
    assert_int_equal(shop_post(&shop, path, "placed too late", body, &again), 409);
    assert_string_equal(again.location, "");
    json_t *order = client_get(shop.service->port, reply.location);
    assert_string_equal(json_string_value(json_object_get(order, "item_id")), "placed");
    json_decref(order);
}

TEST_THAT(second_request_while_the_first_runs_is_told_so)
{
    static const char path[] = "/v1/items/held/orders", body[] = "{\"user_id\":\"u1\"}";
    assert_true(shop_put(&shop, "/v1/items/held", "{\"stock\":10,\"guard\":\"redis-token\"}"));
    struct redis_watch *watch = redis_watch_open(shop.redis);
    assert_non_null(watch);
    /* Somebody else has the lock, so the first request waits for it. */
    assert_int_equal(redis_do(shop.redis, "SET lock:item:held somebody NX PX 60000"), 1);
    assert_true(redis_watch_sees(watch, "somebody", 10000));
    struct client first = {.port = shop.service->port, .fd = -1};
    assert_int_equal(client_send(&first, "POST", path, "twice", body), 0);
    assert_true(redis_watch_sees(watch, "lock:item:held", 10000));
    redis_watch_close(watch);

    assert_int_equal(shop_post(&shop, path, "twice", body, &reply), 409);
    assert_string_equal(problem_of(&reply), "in-flight");
    assert_true(reply.retry_after_s >= 1);
    assert_int_equal(client_number(shop.service->port, "/v1/items/held", "stock"), 10);

    assert_int_equal(redis_do(shop.redis, "DEL lock:item:held"), 1);
    assert_int_equal(client_read(&first, SHOP_WAIT_MS, &reply), 201);
    assert_false(reply.replayed);
    assert_int_equal(shop_post(&shop, path, "twice", body, &again), 201);
    assert_true(again.replayed);
    assert_string_equal(again.body, reply.body);
    assert_int_equal(client_number(shop.service->port, "/v1/items/held", "stock"), 9);
    client_close(&first);
}

TEST_THAT(a_lock_timeout_is_no_decision)
{
    static const char path[] = "/v1/items/late/orders", body[] = "{\"user_id\":\"u1\"}";
    struct shop hasty;
    assert_int_equal(shop_open(&hasty, (const char *const[]){"--wait-ms", "3000", NULL}), 0);
    assert_true(shop_put(&hasty, "/v1/items/late", "{\"stock\":10,\"guard\":\"redis-token\"}"));
    assert_int_equal(redis_do(hasty.redis, "SET lock:item:late somebody NX PX 60000"), 1);
    assert_int_equal(shop_post(&hasty, path, "late", body, &reply), 503);
    assert_string_equal(problem_of(&reply), "lock-timeout");
    assert_int_equal(redis_do(hasty.redis, "DEL lock:item:late"), 1);
    assert_int_equal(shop_post(&hasty, path, "late", body, &reply), 201);
    assert_false(reply.replayed);
    assert_int_equal(client_number(hasty.service->port, "/v1/items/late", "stock"), 9);
    assert_true(shop_stop(hasty.service));
    shop_close(&hasty);
}

/* Last: cmocka's exit status does not tell of a failed teardown. */
TEST_THAT(service_drains_and_ends_well)
{
    assert_true(shop_stop(shop.service));
}
