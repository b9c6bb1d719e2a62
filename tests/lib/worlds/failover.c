#include "failover.h"
#include "lateness.h"
#include "shop_client.h"
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    INSTANCES = 2,
    BUYERS_PER_GUARD = 4, /* two of each instance */
    GUARDS_MAX = 12,
    BUYERS_MAX = GUARDS_MAX * BUYERS_PER_GUARD,
    WAIT_MS = 2000, /* of a request for its lock */
    LATEST_MS = WAIT_MS + 1000,
    REPLACED_WITHIN_MS = 120000,
    RECOVERS_WITHIN_MS = 5000, /* once there is a new master */
    SELLS_WITHIN_MS = 240000,
    ORDERS = 20, /* of each guard, before and after */
    PAUSE_MS = 10
};

struct buyer {
    pthread_t thread;
    int number;
    const char *guard;
    struct client client;
    atomic_int accepted;
    int refused;
    bool decided;          /* the last order */
    int other, unanswered; /* unexpected statuses; requests without an answer */
    int64_t slowest_ms;
    char slowest[256]; /* the slowest answer */
    char refusal[256]; /* the last one */
};

static const struct failover *failover;
static struct sandbox *sandbox;
static struct sandbox_server *postgres, *instances[INSTANCES];
static struct buyer buyers[BUYERS_MAX];
static int n_guards, n_buyers;
static atomic_bool stopping;
static atomic_int_fast64_t give_up_ms; /* no order is sent again after this */

static bool put_item(const char *guard)
{
    struct shop shop = {.client = {.port = instances[0]->port, .fd = -1}};
    char path[64], body[96];
    snprintf(path, sizeof path, "/v1/items/%s", guard);
    snprintf(body, sizeof body, "{\"stock\":1000000,\"guard\":\"%s\"}", guard);
    bool put = shop_put(&shop, path, body);
    client_close(&shop.client);
    return put;
}

static int open_all(void **state)
{
    (void)state;
    const char *url;
    if (sandbox_open(&sandbox) != 0 || !(postgres = sandbox_postgres(sandbox, NULL)) ||
        !failover->start(sandbox, &url))
        return -1;
    char wait[16], lease[16];
    snprintf(wait, sizeof wait, "%d", WAIT_MS);
    snprintf(lease, sizeof lease, "%d", failover->lease_ms);
    for (int i = 0; i < INSTANCES; i++) {
        const char *const args[] = {failover->flag,
                                    url,
                                    "--db",
                                    postgres->url,
                                    "--guard",
                                    failover->guards[0],
                                    "--instance",
                                    i == 0 ? "one" : "two",
                                    "--wait-ms",
                                    wait,
                                    "--lease-ms",
                                    lease,
                                    "--fence-source",
                                    "database",
                                    "--workers",
                                    "64",
                                    NULL};
        instances[i] = sandbox_seckilld(sandbox, shop_binary("seckilld"), args);
        if (!instances[i])
            return -1;
    }
    while (failover->guards[n_guards])
        if (n_guards == GUARDS_MAX || !put_item(failover->guards[n_guards++]))
            return -1;
    n_buyers = n_guards * BUYERS_PER_GUARD;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

/* -- buyers ------------------------------------------------------------------------------------ */

/* Neither is a decision: 503, or 409 while a former sending of the same key still runs. */
static bool is_for_later(const struct reply *reply)
{
    char problem[64];
    return reply->status == 503 ||
           strcmp(reply_problem(reply, problem, sizeof problem), "in-flight") == 0;
}

static void note(struct buyer *buyer, const struct reply *reply)
{
    if (reply->status == 201)
        atomic_fetch_add(&buyer->accepted, 1);
    if (is_for_later(reply)) {
        buyer->refused++;
        snprintf(buyer->refusal, sizeof buyer->refusal, "%.255s", reply->body);
    }
    buyer->unanswered += reply->status == 0;
    buyer->other += reply->status != 201 && reply->status != 0 && !is_for_later(reply);
    if (reply->took_ms > buyer->slowest_ms) {
        buyer->slowest_ms = reply->took_ms;
        snprintf(buyer->slowest, sizeof buyer->slowest, "%d %.200s", reply->status, reply->body);
    }
}

/* The same key is sent again until there is a decision, even after the sale. */
static void *buy(void *arg)
{
    struct buyer *buyer = arg;
    struct reply *reply = calloc(1, sizeof *reply);
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
    char path[64], key[64];
    snprintf(path, sizeof path, "/v1/items/%s/orders", buyer->guard);
    for (int i = 0; reply && !atomic_load(&stopping); i++) {
        snprintf(key, sizeof key, "order-%d-%d", buyer->number, i);
        do {
            client_call(&buyer->client, "POST", path, key, "{\"user_id\":\"u1\"}", SHOP_WAIT_MS,
                        reply);
            note(buyer, reply);
            if (is_for_later(reply))
                nanosleep(&pause, NULL);
            buyer->decided = reply->status != 0 && !is_for_later(reply);
        } while (!buyer->decided && test_now_ms() < atomic_load(&give_up_ms));
    }
    client_close(&buyer->client);
    free(reply);
    return NULL;
}

static void buyers_start(void)
{
    atomic_store(&stopping, false);
    atomic_store(&give_up_ms, INT64_MAX);
    for (int i = 0; i < n_buyers; i++) {
        struct buyer *buyer = &buyers[i];
        *buyer = (struct buyer){
            .number = i,
            .guard = failover->guards[i % n_guards],
            .client = {.port = instances[i / n_guards % INSTANCES]->port, .fd = -1},
        };
        assert_int_equal(pthread_create(&buyer->thread, NULL, buy, buyer), 0);
    }
}

static void buyers_stop(void)
{
    atomic_store(&give_up_ms, test_now_ms() + SELLS_WITHIN_MS);
    atomic_store(&stopping, true);
    for (int i = 0; i < n_buyers; i++)
        pthread_join(buyers[i].thread, NULL);
}

static int accepted_under(int guard)
{
    int accepted = 0;
    for (int i = guard; i < n_buyers; i += n_guards)
        accepted += atomic_load(&buyers[i].accepted);
    return accepted;
}

/* Reached when every guard has sold `more` pieces more than in seen[]. */
struct goal {
    int seen[GUARDS_MAX], more;
};

static struct goal goal_from_now(int more)
{
    struct goal goal = {.more = more};
    for (int i = 0; i < n_guards; i++)
        goal.seen[i] = accepted_under(i);
    return goal;
}

static bool is_reached(void *arg)
{
    const struct goal *goal = arg;
    for (int i = 0; i < n_guards; i++)
        if (accepted_under(i) < goal->seen[i] + goal->more)
            return false;
    return true;
}

static void show_goal(const struct goal *goal)
{
    for (int i = 0; i < n_guards; i++)
        print_error("%s: %d sold\n", failover->guards[i], accepted_under(i) - goal->seen[i]);
}

static bool reaches(struct goal goal, int64_t within_ms)
{
    bool reached = wait_until(is_reached, &goal, within_ms);
    if (!reached)
        show_goal(&goal);
    return reached;
}

/* Every guard sells again within RECOVERS_WITHIN_MS of a machine that is never late. */
static bool recovers(void)
{
    struct goal goal = goal_from_now(1);
    int64_t start_ms = test_now_ms();
    bool reached = reaches(goal, SELLS_WITHIN_MS);
    print_message("sells again under all guards %d ms after the new master\n",
                  (int)(test_now_ms() - start_ms));
    return reached && ended_within(start_ms, RECOVERS_WITHIN_MS);
}

static int refused_in_all(void)
{
    int refused = 0;
    for (int i = 0; i < n_buyers; i++)
        refused += buyers[i].refused;
    return refused;
}

/* True if a request was refused, or waited for half of the time without a master. */
static bool was_felt(int64_t away_ms)
{
    int64_t slowest_ms = 0;
    for (int i = 0; i < n_buyers; i++)
        if (buyers[i].slowest_ms > slowest_ms)
            slowest_ms = buyers[i].slowest_ms;
    return refused_in_all() > 0 || slowest_ms > away_ms / 2;
}

/* -- tests ------------------------------------------------------------------------------------- */

static void every_answer_came_in_time(int64_t start_ms)
{
    int64_t latest_ms = LATEST_MS + lateness_of_call(test_now_ms() - start_ms);
    for (int i = 0; i < n_buyers; i++) {
        const struct buyer *buyer = &buyers[i];
        if (buyer->slowest_ms > latest_ms || buyer->other > 0 || buyer->unanswered > 0 ||
            !buyer->decided)
            fail_msg("%s: slowest after %d ms: %s; %d other answers, %d without", buyer->guard,
                     (int)buyer->slowest_ms, buyer->slowest, buyer->other, buyer->unanswered);
    }
}

/* The stored sales equal the accepted answers, and the audit passes. */
static void nothing_was_lost(void)
{
    for (int i = 0; i < n_guards; i++) {
        char path[64];
        snprintf(path, sizeof path, "/v1/items/%s", failover->guards[i]);
        assert_int_equal(client_number(instances[i % INSTANCES]->port, path, "sold"),
                         accepted_under(i));
    }
    assert_true(shop_audit_ok(instances[0]->port));
}

static void sale_goes_on_with_the_new_master_and_nothing_is_lost(void **state)
{
    (void)state;
    struct process services[INSTANCES];
    for (int i = 0; i < INSTANCES; i++)
        services[i] = process_of(instances[i]->pid);
    int64_t start_ms = test_now_ms();
    buyers_start();
    bool sold = reaches(goal_from_now(ORDERS), SELLS_WITHIN_MS);
    int64_t killed_ms = test_now_ms();
    if (sold)
        failover->kill();
    bool replaced = sold && wait_until(failover->is_replaced, NULL, REPLACED_WITHIN_MS);
    int64_t replaced_ms = test_now_ms();
    bool recovered = replaced && recovers();
    bool sold_again = recovered && reaches(goal_from_now(ORDERS), SELLS_WITHIN_MS);
    buyers_stop();
    if (!sold_again)
        for (int i = 0; i < n_buyers; i++)
            print_error("%s: %d refused, the last: %s\n", buyers[i].guard, buyers[i].refused,
                        buyers[i].refusal);
    assert_true(sold);
    assert_true(replaced);
    assert_true(recovered);
    assert_true(sold_again);
    every_answer_came_in_time(start_ms);
    assert_true(was_felt(replaced_ms - killed_ms) || !failover->is_felt);
    nothing_was_lost();
    for (int i = 0; i < INSTANCES; i++)
        assert_true(process_runs(services[i]));
}

/* Runs last, as a test: cmocka's exit status ignores a failed tear-down. */
static void services_drain_and_end_well(void **state)
{
    (void)state;
    for (int i = 0; i < INSTANCES; i++)
        assert_true(shop_stop(instances[i]));
}

int failover_main(const struct failover *what)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sale_goes_on_with_the_new_master_and_nothing_is_lost),
        cmocka_unit_test(services_drain_and_end_well),
    };
    failover = what;
    return cmocka_run_group_tests(tests, open_all, close_all);
}
