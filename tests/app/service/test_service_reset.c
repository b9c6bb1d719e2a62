/* A reset (PUT) is answered while a payment or a cancellation of the former sale is running. The
 * payment or cancellation is refused under every guard and changes nothing. */
#include "redis.h"
#include "service_rig.h"
#include "tests.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <libpq-fe.h>
#include <stdlib.h>

enum { BALANCE = 1000, STOCK = 100 };

static struct sandbox_server *postgres;

static int open_all(void **state)
{
    if (rig_open(state) != 0)
        return -1;
    postgres = sandbox_postgres(rig.sandbox, NULL);
    return postgres ? 0 : -1;
}

/* On a busy machine a server may answer too late; after a 503 the operation is repeated. */
static void must_run(struct op *op, int status)
{
    while (op_run(rig.service, op) == 503)
        sched_yield();
    if (op->answer.status != status)
        fail_msg("%s: answered %d: %s", rig.config.guard, op->answer.status,
                 op->answer.body ? op->answer.body : "");
}

/* Starts the service and places an order of item "1" for a user who can pay. ret_id gets its id. */
static void start(const char *guard, bool on_postgres, const char *user, char *ret_id)
{
    struct op op;
    redis_do(rig.redis, "FLUSHALL");
    rig_reset(guard);
    if (on_postgres)
        snprintf(rig.config.db, sizeof rig.config.db, "%s", postgres->url);
    assert_int_equal(rig_start(), 0);
    op_put_item(&op, "1", STOCK, "");
    op.price = 10;
    must_run(&op, 200);
    must_run(op_put_account(&op, user, BALANCE, ""), 200);
    op_make(&op, OP_PLACE_ORDER, "1", user, 1, 1);
    snprintf(op.key, sizeof op.key, "%s-%s", guard, user);
    must_run(&op, 201);
    assert_true(answer_text(&op, "order_id", ret_id, DB_ID_MAX + 1));
}

/* The item is reset while op stands at the point. */
static void reset_meanwhile(struct op *op, enum op_point point)
{
    struct op put;
    gate_set(0, point, op->request_id);
    ops_submit(rig.service, op, 1);
    gate_wait(0);
    op_put_item(&put, "1", STOCK, "");
    must_run(&put, 200);
    gate_open(0);
    ops_wait(op, 1);
}

static void payment_is_refused(const char *guard, bool on_postgres, enum op_point point)
{
    struct op payment, op;
    char id[DB_ID_MAX + 1], user[32];
    snprintf(user, sizeof user, "u-%s", guard);
    start(guard, on_postgres, user, id);
    op_make(&payment, OP_PAY_ORDER, id, "", 0, 2);
    snprintf(payment.key, sizeof payment.key, "%s-payment", guard);
    reset_meanwhile(&payment, point);
    if (payment.answer.problem != PROBLEM_ORDER_CLOSED)
        fail_msg("%s: the payment was answered %d", guard, payment.answer.status);
    op_run(rig.service, op_make(&op, OP_GET_ACCOUNT, user, "", 0, 0));
    assert_int_equal(answer_number(&op, "balance"), BALANCE);
    assert_int_equal(audit_number(rig.service, "item:1", "former_paid"), 0);
    assert_true(audit_is_clean(rig.service));
    rig_stop();
    points_clear();
}

GROUP_FIXTURE(open_all, rig_close);
TEST_FIXTURE(NULL, rig_clear);

TEST_THAT(payment_that_was_decided_before_a_reset_is_refused)
{
    static const char *const guards[] = {"none", "mutex", "redis-token", "sql-version"};
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++)
        payment_is_refused(guards[i], false, OP_DECIDED);
}

/* The payment stands in its transaction before its first write; sql-atomic writes as it decides. */
TEST_THAT(payment_that_has_not_written_before_a_reset_is_refused_on_postgres)
{
    static const struct {
        const char *guard;
        enum op_point point;
    } cases[] = {{"none", OP_CHECKED},        {"redis-token", OP_CHECKED},
                 {"pg-advisory", OP_CHECKED}, {"sql-version", OP_CHECKED},
                 {"sql-row", OP_CHECKED},     {"sql-atomic", OP_READ}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        payment_is_refused(cases[i].guard, true, cases[i].point);
}

/* Only these guards: under the others a reset waits for the cancellation. */
TEST_THAT(cancellation_that_was_decided_before_a_reset_is_refused)
{
    static const char *const guards[] = {"none", "sql-version"};
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        struct op cancel;
        char id[DB_ID_MAX + 1];
        start(guards[i], false, "u1", id);
        op_make(&cancel, OP_CANCEL_ORDER, id, "", 0, 2);
        reset_meanwhile(&cancel, OP_DECIDED);
        assert_int_equal(cancel.answer.problem, PROBLEM_ORDER_CLOSED);
        assert_int_equal(rig_stock(), STOCK);
        assert_true(audit_is_clean(rig.service));
        rig_stop();
        points_clear();
    }
}

static int64_t deadlocks(void)
{
    PGconn *handle = PQconnectdb(postgres->url);
    PGresult *result = PQexec(handle, "SELECT sum(deadlocks)::text FROM pg_stat_database");
    assert_int_equal(PQntuples(result), 1);
    int64_t n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    PQfinish(handle);
    return n;
}

/* Each order is paid and cancelled at the same time, beside new orders and resets of its item. Each
 * deadlock would cost a second. */
TEST_THAT(payments_cancellations_and_resets_wait_in_no_circle)
{
    enum { ORDERS = 40, RESETS = 6, OPS = 3 * ORDERS + RESETS };
    static const char *const guards[] = {"sql-row", "sql-atomic", "sql-version", "redis-token"};
    static struct op ops[OPS];
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        char id[DB_ID_MAX + 1], user[16];
        snprintf(user, sizeof user, "c%zu", i);
        start(guards[i], true, user, id);
        for (int n = 0; n < ORDERS; n++) {
            struct op order;
            op_make(&order, OP_PLACE_ORDER, "1", user, 1, 1000 + n);
            snprintf(order.key, sizeof order.key, "%s-%d", guards[i], n);
            must_run(&order, 201);
            assert_true(answer_text(&order, "order_id", id, sizeof id));
            op_make(&ops[3 * n], OP_PAY_ORDER, id, "", 0, 0);
            op_make(&ops[3 * n + 1], OP_CANCEL_ORDER, id, "", 0, 0);
            op_make(&ops[3 * n + 2], OP_PLACE_ORDER, "1", user, 1, 0);
        }
        for (int n = 0; n < RESETS; n++)
            op_put_item(&ops[3 * ORDERS + n], "1", STOCK, "");
        for (int n = 0; n < 3 * ORDERS; n++)
            snprintf(ops[n].key, sizeof ops[n].key, "%s-op-%d", guards[i], n);
        for (int n = 0; n < RESETS; n++) { /* among the others */
            struct op put = ops[3 * ORDERS + n];
            ops[3 * ORDERS + n] = ops[n * OPS / RESETS];
            ops[n * OPS / RESETS] = put;
        }
        int64_t before = deadlocks();
        ops_run(rig.service, ops, OPS);
        size_t done = ops_count(ops, OPS, 200) + ops_count(ops, OPS, 201);
        size_t refused = ops_count_problem(ops, OPS, PROBLEM_ORDER_CLOSED) +
                         ops_count(ops, OPS, 503); /* on a busy machine */
        bool clean = audit_is_clean(rig.service);
        rig_stop();
        assert_int_equal(done + refused, OPS);
        assert_true(done > 0);
        assert_true(clean);
        assert_int_equal(deadlocks(), before);
    }
}
