/* Leases much too short for the work: they end under their holders all the time, and two holders
 * believe in the same lock. With a fenced guard nothing is lost all the same: whoever is late is
 * refused, and so is the one who read before the late write came in.
 *
 * This is chance, not script: many changes, so that the unlucky order comes up. */
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLIENTS = 32, BALANCE = 100000000, AMOUNT = 3, TRIES_MAX = 20000 };

static struct shop shop;

static struct {
    const char *path, *prefix;
    int changes;      /* per client */
    atomic_int lost;  /* 503 lock-lost */
    atomic_int wrong; /* never decided, or an answer that should not be */
} load;

static int open_shop(void **state)
{
    (void)state;
    return shop_open(&shop, (const char *const[]){"--lease-ms", "10", "--watchdog", "off",
                                                  "--lanes", "off", "--wait-ms", "20000", NULL});
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static bool change(struct client *client, const char *key, struct reply *reply)
{
    char problem[32];
    for (int i = 0; i < TRIES_MAX; i++) {
        client_call(client, "POST", load.path, key, "{\"amount\":-3}", SHOP_WAIT_MS, reply);
        if (reply->status == 201)
            return true;
        if (reply->status != 503)
            break;
        load.lost += strcmp(reply_problem(reply, problem, sizeof problem), "lock-lost") == 0;
    }
    fprintf(stderr, "key %s: %d %s\n", key, reply->status, reply->body);
    return false;
}

static void *change_many(void *number)
{
    struct client client = {.port = shop.service->port, .fd = -1};
    struct reply *reply = malloc(sizeof *reply);
    char key[64];
    for (int n = 0; reply != NULL && n < load.changes; n++) {
        snprintf(key, sizeof key, "%s-%d-%d", load.prefix, *(int *)number, n);
        if (!change(&client, key, reply))
            load.wrong++;
    }
    client_close(&client);
    free(reply);
    return NULL;
}

static void nothing_is_lost_with(const char *guard)
{
    char path[64], changes[96], body[96];
    int numbers[CLIENTS];
    pthread_t threads[CLIENTS];
    snprintf(path, sizeof path, "/v1/accounts/%s", guard);
    snprintf(changes, sizeof changes, "%s/transactions", path);
    snprintf(body, sizeof body, "{\"balance\":%d,\"guard\":\"%s\"}", BALANCE, guard);
    assert_true(shop_put(&shop, path, body));
    load.path = changes;
    load.prefix = guard;
    load.lost = 0;
    load.changes = (int)test_size(60, 1000);
    for (int i = 0; i < CLIENTS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, change_many, &numbers[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    print_message("%s: %d answers said that the lock was lost\n", guard, load.lost);
    assert_int_equal(load.wrong, 0);
    assert_true(shop_audit_ok(shop.service->port));
    assert_int_equal(client_number(shop.service->port, path, "balance"),
                     BALANCE - AMOUNT * CLIENTS * load.changes);
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(late_and_early_writers_lose_nothing_with_redis_token)
{
    nothing_is_lost_with("redis-token");
}

TEST_THAT(late_and_early_writers_lose_nothing_with_redis_reentrant)
{
    nothing_is_lost_with("redis-reentrant");
}

TEST_THAT(late_and_early_writers_lose_nothing_with_redis_fair)
{
    nothing_is_lost_with("redis-fair");
}

/* Last: cmocka's exit status does not tell of a failed teardown. */
TEST_THAT(service_drains_and_ends_well)
{
    assert_true(shop_stop(shop.service));
}
