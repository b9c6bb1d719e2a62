/* kill -9 of the service at random moments under load: what was answered is there after the
 * restart, unchanged and once; what was not answered can be decided by asking again with its key.
 * At the end two auditors that are not ours accept its books.
 * 30 kills, 500 with TEST_FULL=1. Failures name the seed; SEED=n repeats its choices. */
#include "journal_judges.h"
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    CLIENTS = 8,
    SENT_MAX = 400000, /* per client */
    STOCK = 100000000,
    AMOUNT = 7,
    ROUND_MS_MAX = 60000, /* for the answers that a kill waits for */
    ANSWERS_MAX = 60,     /* answers before a kill: 1 to this many */
    DELAY_US_MAX = 4000,  /* and then a delay of up to this long */
    LAST = 25 /* answers of each client that are read after each kill; at the end, all */
};

struct client_thread {
    pthread_t thread;
    int number, port;
    const char *path, *body; /* what it sends over and over, each with a new key */
    char **answers;          /* [n]: the body answered to key n */
    atomic_int answered;     /* keys 0 .. answered - 1 are decided */
    const char *failure;     /* read after joining */
};

static atomic_bool stop;
static atomic_long total_answered;

static void make_key(char *ret, size_t size, int client, int n)
{
    snprintf(ret, size, "k%d-%d", client, n);
}

/* A client as it should be: the same key until the answer is a decision. */
static const char *decide(struct client_thread *self, struct client *client, int n,
                          struct reply *reply)
{
    char key[32], problem[32];
    make_key(key, sizeof key, self->number, n);
    for (int64_t deadline_ms = test_now_ms() + ROUND_MS_MAX; test_now_ms() < deadline_ms;) {
        int status = client_call(client, "POST", self->path, key, self->body, ROUND_MS_MAX, reply);
        if (status == 201)
            return NULL;
        reply_problem(reply, problem, sizeof problem);
        if (status != 0 && status != 503 && strcmp(problem, "in-flight") != 0) {
            fprintf(stderr, "key %s: %d %s\n", key, status, reply->body);
            return "an answer that is neither a success nor a reason to retry";
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* a client's retry delay */
    }
    return "no decision within the time limit";
}

static void *send_for_ever(void *arg)
{
    struct client_thread *self = arg;
    struct client client = {.port = self->port, .fd = -1};
    struct reply *reply = malloc(sizeof *reply);
    for (int n = 0; reply != NULL && !stop && n < SENT_MAX && self->failure == NULL; n++) {
        self->failure = decide(self, &client, n, reply);
        if (self->failure != NULL)
            break;
        self->answers[n] = strdup(reply->body);
        self->answered = n + 1;
        total_answered++;
    }
    client_close(&client);
    free(reply);
    return NULL;
}

/* Keys from..to of a client have the answers that the client got. */
static void check_answers(const struct client_thread *client, int from, int to)
{
    struct client reader = {.port = client->port, .fd = -1};
    struct reply *reply = test_malloc(sizeof *reply);
    for (int n = from; n < to; n++) {
        char path[64] = "/v1/transactions/";
        size_t length = strlen(path);
        make_key(path + length, sizeof path - length, client->number, n);
        client_call(&reader, "GET", path, NULL, NULL, SHOP_WAIT_MS, reply);
        if (reply->status != 200)
            print_error("%s: %d %s\n", path, reply->status, reply->body);
        assert_int_equal(reply->status, 200);
        assert_string_equal(reply->body, client->answers[n]);
    }
    client_close(&reader);
    test_free(reply);
}

static bool answered_enough(void *wanted)
{
    return total_answered >= *(long *)wanted;
}

static unsigned int choose_seed(void)
{
    unsigned int seed = 0;
    const char *given = getenv("SEED");
    if (given != NULL)
        return (unsigned int)strtoul(given, NULL, 10);
    assert_int_equal(getrandom(&seed, sizeof seed, 0), sizeof seed);
    return seed;
}

/* One kill: after some answers and some microseconds, wherever the service is then. */
static void kill_and_restart(struct shop *shop, unsigned int *seed)
{
    long wanted = total_answered + 1 + rand_r(seed) % ANSWERS_MAX;
    assert_true(wait_until(answered_enough, &wanted, ROUND_MS_MAX));
    nanosleep(&(struct timespec){.tv_nsec = rand_r(seed) % DELAY_US_MAX * 1000L}, NULL);
    assert_true(sandbox_alive(shop->service)); /* it has not died by itself */
    assert_true(WIFSIGNALED(sandbox_signal(shop->service, SIGKILL)));
    assert_int_equal(sandbox_restart(shop->service), 0);
}

static void check_totals(struct shop *shop, const struct client_thread *clients)
{
    int port = shop->service->port;
    int64_t answered[CLIENTS / 2] = {0};
    for (int i = 0; i < CLIENTS; i++)
        answered[i / 2] += clients[i].answered;
    assert_true(shop_audit_ok(port)); /* first: it shows what went wrong */
    assert_int_equal(client_number(port, "/v1/items/hot", "stock"), STOCK - answered[0]);
    assert_int_equal(client_number(port, "/v1/items/hot", "sold"), answered[0]);
    assert_int_equal(client_number(port, "/v1/items/atomic", "stock"), STOCK - answered[1]);
    assert_int_equal(client_number(port, "/v1/accounts/locked", "balance"),
                     STOCK - AMOUNT * answered[2]);
    assert_int_equal(client_number(port, "/v1/accounts/atomic", "balance"),
                     STOCK - AMOUNT * answered[3]);
}

static void kills_under_load(const char *lanes)
{
    static struct client_thread clients[CLIENTS];
    static const struct {
        const char *path, *body;
    } work[CLIENTS / 2] = {
        {"/v1/items/hot/orders", "{\"user_id\":\"u1\",\"quantity\":1}"},
        {"/v1/items/atomic/orders", "{\"user_id\":\"u2\",\"quantity\":1}"},
        {"/v1/accounts/locked/transactions", "{\"amount\":-7}"},
        {"/v1/accounts/atomic/transactions", "{\"amount\":-7}"},
    };
    unsigned int seed = choose_seed();
    int rounds = (int)test_size(15, 250);
    print_message("seed %u, %d kills, lanes %s\n", seed, rounds, lanes);
    struct shop shop;
    assert_int_equal(shop_open(&shop, (const char *const[]){"--lanes", lanes, "--lease-ms", "150",
                                                            "--wait-ms", "5000", NULL}),
                     0);
    assert_true(
        shop_put(&shop, "/v1/items/hot", "{\"stock\":100000000,\"guard\":\"redis-token\"}"));
    assert_true(
        shop_put(&shop, "/v1/items/atomic", "{\"stock\":100000000,\"guard\":\"sql-atomic\"}"));
    assert_true(shop_put(&shop, "/v1/accounts/locked",
                         "{\"balance\":100000000,\"guard\":\"redis-token\"}"));
    assert_true(
        shop_put(&shop, "/v1/accounts/atomic", "{\"balance\":100000000,\"guard\":\"sql-atomic\"}"));
    stop = false;
    total_answered = 0;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client_thread){.number = i,
                                            .port = shop.service->port,
                                            .path = work[i / 2].path,
                                            .body = work[i / 2].body,
                                            .answers = calloc(SENT_MAX, sizeof(char *))};
        assert_non_null(clients[i].answers);
        assert_int_equal(pthread_create(&clients[i].thread, NULL, send_for_ever, &clients[i]), 0);
    }
    for (int round = 0; round < rounds; round++) {
        kill_and_restart(&shop, &seed);
        for (int i = 0; i < CLIENTS; i++) {
            const int answered = clients[i].answered;
            check_answers(&clients[i], answered > LAST ? answered - LAST : 0, answered);
        }
    }
    stop = true;
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        if (clients[i].failure != NULL)
            fail_msg("client %d: %s", i, clients[i].failure);
    }
    for (int i = 0; i < CLIENTS; i++) /* all of them again: later kills harmed no earlier answer */
        check_answers(&clients[i], 0, clients[i].answered);
    check_totals(&shop, clients);
    print_message("%ld answers, each there once\n", total_answered);
    for (int i = 0; i < CLIENTS; i++) {
        for (int n = 0; n < clients[i].answered; n++)
            free(clients[i].answers[n]);
        free(clients[i].answers);
    }
    assert_true(shop_stop(shop.service));
    char url[SANDBOX_TEXT_MAX + 32];
    snprintf(url, sizeof url, "sqlite:%s/shop.db", sandbox_dir(shop.sandbox));
    assert_true(journal_accepted(url, sandbox_dir(shop.sandbox)));
    shop_close(&shop);
}

TEST_THAT(killed_service_keeps_every_answered_change_once_lanes_on)
{
    kills_under_load("on");
}

TEST_THAT(killed_service_keeps_every_answered_change_once_lanes_off)
{
    kills_under_load("off");
}
