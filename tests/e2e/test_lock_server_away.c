/* The lock server is dead, stopped, or something else entirely: every answer comes within wait_ms
 * and a second, says so, and nothing is written; resources under other guards go on; and when the
 * lock server is back, so is the service, without a restart. */
#include "impostor.h"
#include "lateness.h"
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WAIT_MS = 1000,
    LATEST_MS = WAIT_MS + 1000,
    BACK_WITHIN_MS = 15000,
    PER_GUARD = 3, /* requests at the same time */
    STOCK = 1000
};

/* redis-setnx and redis-setnx-expire are left out: a command that a stopped server executes after
 * its client has gone leaves a lock without a lease behind. That is what they are known for. */
static const char *const guards[] = {"redis-set", "redis-getset", "redis-token", "redis-reentrant",
                                     "redis-fair"};
enum { GUARDS = sizeof guards / sizeof guards[0], ASKERS = GUARDS * PER_GUARD };

static struct shop shop;
static struct reply reply;
static int next_key;

struct asker {
    pthread_t thread;
    const char *guard;
    char path[64], key[32];
    struct reply reply;
};

static int open_shop(void **state)
{
    (void)state;
    if (shop_open(&shop, (const char *const[]){"--wait-ms", "1000", "--lease-ms", "10000",
                                               "--workers", "32", NULL}) != 0)
        return -1;
    for (size_t i = 0; i < GUARDS; i++) {
        char path[64], body[96];
        snprintf(path, sizeof path, "/v1/items/%s", guards[i]);
        snprintf(body, sizeof body, "{\"stock\":%d,\"guard\":\"%s\"}", STOCK, guards[i]);
        if (!shop_put(&shop, path, body))
            return -1;
    }
    return shop_put(&shop, "/v1/items/local", "{\"stock\":1000,\"guard\":\"sql-atomic\"}") ? 0 : -1;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static void *ask(void *arg)
{
    struct asker *asker = arg;
    struct client client = {.port = shop.service->port, .fd = -1};
    client_call(&client, "POST", asker->path, asker->key, "{\"user_id\":\"u1\"}", SHOP_WAIT_MS,
                &asker->reply);
    client_close(&client);
    return NULL;
}

/* The HTTP side gives up what no worker answered by the latest time: a worker may have been ready
 * to refuse it, on a machine that runs threads that late. */
static bool machine_was_late(const struct reply *got)
{
    return lateness_of_call(got->took_ms + LATEST_MS) >= LATEST_MS - WAIT_MS;
}

/* Several at once per guard, since they share connections and lanes; the sql-atomic item is asked
 * meanwhile. */
static void all_guards_refuse_in_time(void)
{
    struct asker *askers = test_calloc(ASKERS, sizeof *askers);
    char problem[32];
    for (int i = 0; i < ASKERS; i++) {
        askers[i].guard = guards[i % GUARDS];
        snprintf(askers[i].path, sizeof askers[i].path, "/v1/items/%s/orders", askers[i].guard);
        snprintf(askers[i].key, sizeof askers[i].key, "away-%d", next_key++);
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    char key[32];
    snprintf(key, sizeof key, "away-%d", next_key++);
    int status = shop_post(&shop, "/v1/items/local/orders", key, "{\"user_id\":\"u1\"}", &reply);
    for (int i = 0; i < ASKERS; i++)
        pthread_join(askers[i].thread, NULL);
    assert_int_equal(status, 201);
    assert_true(took_at_most(reply.took_ms, LATEST_MS));
    for (int i = 0; i < ASKERS; i++) {
        const struct reply *got = &askers[i].reply;
        reply_problem(got, problem, sizeof problem);
        bool said = strcmp(problem, "unavailable") == 0 || strcmp(problem, "lock-timeout") == 0;
        bool given_up = strstr(got->body, "not answered in time") != NULL && !machine_was_late(got);
        if (got->status != 503 || !said || given_up || !took_at_most(got->took_ms, LATEST_MS) ||
            got->retry_after_s < 1)
            fail_msg("%s: %d after %d ms, %s", askers[i].guard, got->status, (int)got->took_ms,
                     got->body);
    }
    test_free(askers);
}

static bool readiness_is(void *status)
{
    client_call(&shop.client, "GET", "/readyz", NULL, NULL, SHOP_WAIT_MS, &reply);
    return reply.status == *(int *)status;
}

/* One order, asked for until it is accepted. */
struct order {
    const char *guard;
    char key[32];
};

static bool sells(void *arg)
{
    const struct order *order = arg;
    char path[64];
    snprintf(path, sizeof path, "/v1/items/%s/orders", order->guard);
    return shop_post(&shop, path, order->key, "{\"user_id\":\"u1\"}", &reply) == 201;
}

static int64_t stock_of(const char *guard)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/items/%s", guard);
    return client_number(shop.service->port, path, "stock");
}

static void is_away(int64_t *ret_stocks)
{
    int not_ready = 503;
    struct process service = process_of(shop.service->pid);
    for (size_t i = 0; i < GUARDS; i++)
        ret_stocks[i] = stock_of(guards[i]);
    all_guards_refuse_in_time();
    assert_true(readiness_is(&not_ready));
    assert_true(took_at_most(reply.took_ms, LATEST_MS));
    client_call(&shop.client, "GET", "/livez", NULL, NULL, SHOP_WAIT_MS, &reply);
    assert_int_equal(reply.status, 200);
    assert_true(process_runs(service));
    for (size_t i = 0; i < GUARDS; i++)
        assert_int_equal(stock_of(guards[i]), ret_stocks[i]);
}

/* Refused requests had no effect, not even a late one. */
static void is_back(const int64_t *stocks)
{
    int ready = 200;
    assert_true(comes_within(readiness_is, &ready, BACK_WITHIN_MS));
    for (size_t i = 0; i < GUARDS; i++) {
        struct order order = {.guard = guards[i]};
        snprintf(order.key, sizeof order.key, "away-%d", next_key++);
        if (!comes_within(sells, &order, BACK_WITHIN_MS))
            fail_msg("%s does not come back: %s", guards[i], reply.body);
        assert_int_equal(stock_of(guards[i]), stocks[i] - 1);
    }
    assert_true(shop_audit_ok(shop.service->port));
}

/* Clients are not told where the lock server is; whoever runs the service is. */
static void log_says_why(int64_t away_since_ms)
{
    char reason[96], line[1024];
    int lines = 0;
    bool with_reason = false;
    snprintf(reason, sizeof reason,
             "reason=\"cannot connect to Redis at 127.0.0.1:%d: ", shop.redis->port);
    FILE *log = fopen(shop.service->log, "re");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL) {
        lines += strstr(line, "level=error event=unavailable what=\"redis-") != NULL;
        with_reason = with_reason || strstr(line, reason) != NULL;
    }
    fclose(log);
    assert_in_range(lines, 1, (test_now_ms() - away_since_ms) / 1000 + 1); /* one a second */
    assert_true(with_reason);
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(killed_redis_is_told_in_time_and_comes_back)
{
    int64_t stocks[GUARDS];
    const int64_t away_since_ms = test_now_ms();
    assert_true(WIFSIGNALED(sandbox_signal(shop.redis, SIGKILL)));
    is_away(stocks);
    log_says_why(away_since_ms);
    assert_int_equal(sandbox_restart(shop.redis), 0);
    is_back(stocks);
}

static bool log_has(void *text)
{
    char line[1024];
    bool has = false;
    FILE *log = fopen(shop.service->log, "re");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL)
        has = has || strstr(line, text) != NULL;
    fclose(log);
    return has;
}

/* Its clean-ups are owed meanwhile, each for a lease: long enough for a busy machine to come to the
 * end of this. */
TEST_THAT(stopped_redis_is_told_in_time_and_comes_back)
{
    int64_t stocks[GUARDS];
    assert_int_equal(sandbox_signal(shop.redis, SIGSTOP), 0);
    is_away(stocks);
    assert_true(log_has("level=warning event=release-pending guard=\"redis-"));
    assert_int_equal(sandbox_signal(shop.redis, SIGCONT), 0);
    is_back(stocks);
    assert_true(
        comes_within(log_has, "level=info event=release-done guard=\"redis-", BACK_WITHIN_MS));
}

static void something_else_in_its_place(enum impostor_manner manner)
{
    int64_t stocks[GUARDS];
    assert_true(WIFSIGNALED(sandbox_signal(shop.redis, SIGKILL)));
    struct impostor *impostor = impostor_open(shop.redis->port, manner);
    assert_non_null(impostor);
    is_away(stocks);
    assert_true(impostor_close(impostor) > 0); /* it was asked */
    assert_int_equal(sandbox_restart(shop.redis), 0);
    is_back(stocks);
}

TEST_THAT(garbage_for_redis_is_told_in_time)
{
    something_else_in_its_place(IMPOSTOR_GARBAGE);
}

TEST_THAT(wrong_types_for_redis_are_told_in_time)
{
    something_else_in_its_place(IMPOSTOR_BAD_TYPE);
}

TEST_THAT(huge_answers_for_redis_are_told_in_time)
{
    something_else_in_its_place(IMPOSTOR_HUGE);
}

TEST_THAT(endless_answers_for_redis_are_told_in_time)
{
    something_else_in_its_place(IMPOSTOR_ENDLESS);
}

TEST_THAT(silence_for_redis_is_told_in_time)
{
    something_else_in_its_place(IMPOSTOR_SILENT);
}

TEST_THAT(hanging_up_for_redis_is_told_in_time)
{
    something_else_in_its_place(IMPOSTOR_HANGS_UP);
}

/* Last: cmocka's exit status does not tell of a failed teardown. */
TEST_THAT(service_drains_and_ends_well)
{
    assert_true(shop_stop(shop.service));
}
