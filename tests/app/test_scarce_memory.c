/* The service's Nth allocation fails, for many N. Every request is answered, accepted orders are
 * stored, and the process goes on. */
#include "json_room.h"
#include "parse.h"
#include "scarce.h"
#include "service_rig.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 20000, ORDERS = 3 };

/* The steps between N grow: later allocations of a run are mostly alike. */
static int next(int n)
{
    return n + 1 + n / 5;
}

static struct op ops[ORDERS + 6];
enum { OPS = sizeof ops / sizeof ops[0] };

/* Called while there is memory. */
static void make_questions(void)
{
    struct op *op = ops;
    for (int i = 0; i < ORDERS; i++)
        op_order(op++, i);
    op_make(op++, OP_CHANGE_BALANCE, "a", "", -1, 100);
    op_make(op++, OP_TRANSFER, "a", "b", 1, 101);
    op_make(op++, OP_GET_ITEM, "1", "", 0, 0);
    op_make(op++, OP_AUDIT, "", "", 0, 0);
    op_make(op++, OP_GUARDS, "", "", 0, 0);
    op_make(op++, OP_READY, "", "", 0, 0);
}

/* One after the other. Returns how many orders were accepted. */
static int serve(void)
{
    for (int i = 0; i < OPS; i++) {
        char *room = ops[i].answer.body;
        op_run(rig.service, &ops[i]);
        if (ops[i].answer.body != room)
            free(ops[i].answer.body); /* a long one */
        ops[i].answer.body = room;
    }
    return (int)ops_count(ops, ORDERS, 201);
}

GROUP_FIXTURE(rig_open, rig_close);

TEST_THAT_WITH(service_without_memory_answers_and_lives_on, NULL, rig_clear)
{
    static const char *const guards[] = {"redis-token", "sql-row"};
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        int refused = 1;
        for (int n = 1; refused > 0 && n < PIECES_MAX; n = next(n)) {
            struct op op;
            rig_reset(guards[i]);
            rig.config.lease_ms = 200; /* ends a lock whose release had no memory */
            assert_int_equal(rig_start(), 0);
            assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 10, "")), 200);
            assert_int_equal(op_run(rig.service, op_put_account(&op, "a", 10, "")), 200);
            assert_int_equal(op_run(rig.service, op_put_account(&op, "b", 10, "")), 200);
            make_questions();
            scarce_from(n, n % 4 == 0);
            int accepted = serve();
            refused = scarce_end();
            assert_int_equal(rig_stock(), 10 - accepted);
            assert_true(audit_is_clean(rig.service));
            rig_stop();
        }
        assert_int_equal(refused, 0);
    }
}

TEST_THAT_WITH(service_that_cannot_start_without_memory_says_so, NULL, rig_clear)
{
    int refused = 1, failures = 0;
    for (int n = 1; refused > 0 && n < PIECES_MAX; n = next(n)) {
        rig_reset("redis-token");
        scarce_from(n, n % 4 == 0);
        bool started = rig_start() == 0;
        refused = scarce_end();
        failures += !started;
        if (started)
            rig_stop();
    }
    assert_int_equal(refused, 0);
    assert_true(failures > 10);
}

/* Returns what a body that is no order is answered, when its nth allocation fails. */
static enum problem problem_of(const char *body, int n, bool goes_on, int *ret_refused)
{
    static const struct route order = {.fields = {{.name = "quantity", .type = FIELD_BOOL}}};
    struct op op;
    op_make(&op, OP_PLACE_ORDER, "1", "u1", 1, 0);
    scarce_from(n, goes_on);
    assert_false(parse_body(&order, body, strlen(body), &op));
    *ret_refused = scarce_end();
    return op.answer.problem;
}

/* jansson itself reads beyond a text that finds no memory. */
TEST_THAT(a_body_without_memory_is_not_the_clients_fault)
{
    enum { LONG = 12000 };
    static const char *const units[] = {"a", "\\\"", "\\u20ac", "\",\"", "\",{},\""};
    char *body = malloc(LONG + 64);
    assert_non_null(body);
    json_room_set_up();
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        strcpy(body, "{\"list\":[\"");
        for (size_t at = strlen(body); at < LONG; at += strlen(units[i]))
            strcpy(body + at, units[i]);
        strcat(body, "\"]}");
        for (int n = 1, refused = 1; refused > 0; n++) {
            for (int goes_on = 0; goes_on < 2; goes_on++) {
                enum problem problem = problem_of(body, n, goes_on, &refused);
                assert_int_equal(problem, refused > 0 ? PROBLEM_OVERLOADED : PROBLEM_BAD_REQUEST);
            }
            assert_true(refused > 0 || n > 1); /* it is more than its room holds */
        }
    }
    free(body);
}
