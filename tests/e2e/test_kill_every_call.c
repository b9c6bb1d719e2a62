/* kill -9 of the service at each of its system calls, from a request on until its answer. Started
 * again, the service gives the key its one answer. lib/shop/kill_rig.h says what else must hold,
 * and which share of the calls is tried. */
#include "journal_judges.h"
#include "kill_rig.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>

enum { STEP = 11 }; /* usually */

static struct reply reply;

/* A request for an order that is placed first. */
static struct kill_request make_follow_up(const char *name)
{
    char path[96];
    struct kill_request order = kill_order();
    kill_decide(&order, &reply);
    kill_rig.decided++;
    json_t *answer = json_loads(reply.body, 0, NULL);
    const char *id = json_string_value(json_object_get(answer, "order_id"));
    assert_non_null(id);
    snprintf(path, sizeof path, "/v1/orders/%s/%s", id, name);
    json_decref(answer);
    return kill_request(name, path, NULL);
}

static struct kill_request make_payment(void)
{
    return make_follow_up("payment");
}

static struct kill_request make_cancellation(void)
{
    return make_follow_up("cancellation");
}

static struct kill_request make_transfer(void)
{
    return kill_request("transfer", "/v1/transfers",
                        "{\"from\":\"u1\",\"to\":\"u2\",\"amount\":1}");
}

static struct kill_request make_stock_change(void)
{
    return kill_request("stock-change", "/v1/items/1/stock-changes",
                        "{\"delta\":-3,\"reason\":\"damage\"}");
}

static const struct operation {
    const char *name;
    struct kill_request (*make)(void);
    bool has_answer; /* before the request: in kill_rig.answer */
} operations[] = {
    {"order", kill_order, false},
    {"payment", make_payment, false},
    {"cancellation", make_cancellation, false},
    {"transfer", make_transfer, false},
    {"stock-change", make_stock_change, false},
    {"replay", kill_answered_order, true},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* -- kills --------------------------------------------------------------------------------------
 */

static bool kill_at(const void *arg, int n)
{
    const struct operation *operation = arg;
    struct sandbox_server *service = kill_rig.shop.service;
    struct kill_request request = operation->make();
    struct kill_call *killer = kill_call_attach(service->pid, n);
    assert_non_null(killer);
    int status = shop_post(&kill_rig.shop, request.path, request.key, request.body, &reply);
    struct killed killed = kill_call_end(killer);
    assert_false(killed.by_itself);
    assert_false(sandbox_alive(service));
    client_close(&kill_rig.shop.client);
    bool answered = status == 201;
    if (!answered && status != 0 && status != 503)
        fail_msg("%s: %d %s", request.key, status, reply.body);
    if (answered && operation->has_answer)
        assert_string_equal(reply.body, kill_rig.answer.body);
    if (answered && !operation->has_answer)
        kill_rig.answer = reply;
    kill_judge(&request, answered || operation->has_answer);
    assert_int_equal(sandbox_restart(service), 0);
    kill_decide(&request, &reply);
    if (answered || operation->has_answer)
        assert_string_equal(reply.body, kill_rig.answer.body);
    kill_rig.decided += !operation->has_answer;
    return killed.at_call;
}

static void a_request_killed_at_any_call_has_one_effect(void **state)
{
    (void)state;
    for (int i = 0; i < OPERATIONS; i++) {
        int kills = kill_at_each(operations[i].name, STEP, kill_at, &operations[i]);
        assert_true(kills > 0);
    }
    sandbox_signal(kill_rig.shop.service, SIGKILL);
    kill_judge(NULL, false);
    assert_true(journal_accepted(kill_rig.books.url, kill_rig.books.folder));
}

static int open_sqlite_lanes(void **state)
{
    (void)state;
    return kill_open(false, "on", "redis-token");
}

static int open_sqlite_row(void **state)
{
    (void)state;
    return kill_open(false, "off", "sql-row");
}

static int open_postgres_lanes(void **state)
{
    (void)state;
    return kill_open(true, "on", "redis-token");
}

static int open_postgres_row(void **state)
{
    (void)state;
    return kill_open(true, "off", "sql-row");
}

#define TEST(world)                                                                                \
    cmocka_unit_test_setup_teardown(a_request_killed_at_any_call_has_one_effect, open_##world,     \
                                    kill_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sqlite_lanes),
        TEST(sqlite_row),
        TEST(postgres_lanes),
        TEST(postgres_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
