/* "seckilld backup" beside a service that sells: what was answered before the copy began is in it,
 * whole, and a service sells on from it after the store is lost. */
#include "books.h"
#include "program.h"
#include "shop.h"
#include "process.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { CLIENTS = 4, SOME = 200, COPIES = 3, ORDERS_MAX = 400000 };

static struct shop shop;

static struct buyer {
    pthread_t thread;
    int number;
    atomic_int answered; /* keys 0 .. answered - 1 are */
    bool failed;
} buyers[CLIENTS];
static atomic_bool stop;

static const char *key_of(const struct buyer *buyer, int n)
{
    static _Thread_local char key[32];
    snprintf(key, sizeof key, "order-%d-%d", buyer->number, n);
    return key;
}

static void *buy(void *arg)
{
    struct buyer *buyer = arg;
    struct client client = {.port = shop.service->port, .fd = -1};
    struct reply *reply = malloc(sizeof *reply);
    while (reply != NULL && !stop && !buyer->failed && buyer->answered < ORDERS_MAX) {
        client_call(&client, "POST", "/v1/items/1/orders", key_of(buyer, buyer->answered),
                    "{\"user_id\":\"u\",\"quantity\":1}", SHOP_WAIT_MS, reply);
        buyer->failed = reply->status != 201;
        buyer->answered += !buyer->failed;
    }
    client_close(&client);
    free(reply);
    return NULL;
}

static int answered(void)
{
    int sum = 0;
    for (int i = 0; i < CLIENTS; i++)
        sum += buyers[i].answered;
    return sum;
}

static bool has_sold(void *wanted)
{
    return answered() >= *(int *)wanted;
}

static void sell_some(void)
{
    int wanted = answered() + SOME;
    assert_true(wait_until(has_sold, &wanted, SHOP_WAIT_MS));
}

static int run_backup(const char *file)
{
    char db[SANDBOX_TEXT_MAX + 32], log[SANDBOX_TEXT_MAX + 32];
    int status = -1;
    snprintf(db, sizeof db, "--db=sqlite:%s/shop.db", sandbox_dir(shop.sandbox));
    snprintf(log, sizeof log, "%s/backup.log", sandbox_dir(shop.sandbox));
    const char *const argv[] = {shop_binary("seckilld"), "backup", file, db, NULL};
    assert_true(program_ends(program_start(argv, log, NULL), SHOP_WAIT_MS, &status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Serves the copy, and asks it for what was answered before it was made. */
static void expect_restored(const char *file, const int *told)
{
    char db[SANDBOX_TEXT_MAX + 64], path[64];
    struct reply *reply = test_malloc(sizeof *reply);
    snprintf(db, sizeof db, "--db=sqlite:%.290s", file);
    struct sandbox_server *service =
        sandbox_seckilld(shop.sandbox, shop_binary("seckilld"),
                         (const char *const[]){"--redis", shop.redis->url, db, NULL});
    assert_non_null(service);
    struct client client = {.port = service->port, .fd = -1};
    assert_true(shop_audit_ok(service->port));
    for (int i = 0; i < CLIENTS; i++) {
        for (int n = 0; n < told[i]; n++) {
            snprintf(path, sizeof path, "/v1/transactions/%s", key_of(&buyers[i], n));
            assert_int_equal(client_call(&client, "GET", path, NULL, NULL, SHOP_WAIT_MS, reply),
                             200);
        }
    }
    const int64_t sold = client_number(service->port, "/v1/items/1", "sold");
    assert_int_equal(client_call(&client, "POST", "/v1/items/1/orders", "order-after",
                                 "{\"user_id\":\"u\",\"quantity\":1}", SHOP_WAIT_MS, reply),
                     201);
    assert_int_equal(client_number(service->port, "/v1/items/1", "sold"), sold + 1);
    client_close(&client);
    test_free(reply);
    assert_true(shop_stop(service));
}

TEST_THAT(a_service_sells_on_from_a_copy_made_under_load)
{
    char files[COPIES][SANDBOX_TEXT_MAX + 32];
    int told[COPIES][CLIENTS];
    assert_int_equal(shop_open(&shop, NULL), 0);
    assert_true(shop_put(&shop, "/v1/items/1", "{\"stock\":100000000}"));
    for (int i = 0; i < CLIENTS; i++) {
        buyers[i] = (struct buyer){.number = i};
        assert_int_equal(pthread_create(&buyers[i].thread, NULL, buy, &buyers[i]), 0);
    }
    for (int copy = 0; copy < COPIES; copy++) {
        snprintf(files[copy], sizeof files[copy], "%s/copy%d.db", sandbox_dir(shop.sandbox), copy);
        sell_some();
        for (int i = 0; i < CLIENTS; i++)
            told[copy][i] = buyers[i].answered;
        assert_int_equal(run_backup(files[copy]), 0);
        assert_int_equal(run_backup(files[copy]), 2); /* it is there */
    }
    sell_some();
    stop = true;
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(buyers[i].thread, NULL), 0);
        assert_false(buyers[i].failed);
    }
    assert_true(WIFSIGNALED(sandbox_signal(shop.service, SIGKILL)));
    for (int copy = 0; copy < COPIES; copy++) {
        char url[SANDBOX_TEXT_MAX + 64];
        snprintf(url, sizeof url, "sqlite:%.290s", files[copy]);
        assert_true(books_agree(&(struct books){.url = url, .folder = sandbox_dir(shop.sandbox)}));
        expect_restored(files[copy], told[copy]);
    }
    shop_close(&shop);
}
