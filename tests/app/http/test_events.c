/* Events of operations are recorded and counted; nothing sends them here. */
#include "events.h"
#include "point.h"
#include "tests.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *const items[] = {"x", "x", "y", "x"};
enum { OPS = sizeof items / sizeof items[0], ROUNDS = 2 * EVENTS_OPS_BURST / OPS };

static void make_batch(struct op *ops, struct op **ret)
{
    memset(ops, 0, OPS * sizeof *ops);
    for (int i = 0; i < OPS; i++) {
        ops[i].kind = OP_PLACE_ORDER;
        ops[i].amount = 1;
        strcpy(ops[i].id, items[i]);
        ret[i] = &ops[i];
    }
}

static int listen_now(void **state)
{
    (void)state;
    const struct event *list;
    struct event_counts counts[EVENTS_RESOURCES_MAX];
    uint64_t lost, unnoted;
    events_listen(1, now_us());
    events_take(&list, &lost, &unnoted);
    events_counts(counts);
    return 0;
}

TEST_FIXTURE(listen_now, NULL);

TEST_THAT(a_batch_is_noted_and_counted_each_under_its_own_item)
{
    struct op ops[OPS], *batch[OPS];
    const struct event *list;
    uint64_t lost, unnoted;
    make_batch(ops, batch);
    op_pass_all(batch, OPS, OP_SUBMITTED);
    op_pass_all(batch, OPS, OP_READ);
    op_pass_all(batch, OPS, OP_COMMITTED);
    assert_int_equal(events_take(&list, &lost, &unnoted), 3 * OPS);
    for (size_t i = 0; i < 3 * OPS; i++)
        assert_string_equal(list[i].resource + strlen("item:"), items[i % OPS]);
    struct event_counts counts[EVENTS_RESOURCES_MAX];
    assert_int_equal(events_counts(counts), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(counts[i].accepted, strcmp(counts[i].resource, "item:x") == 0 ? 3 : 1);
}

/* Runs after the test above and continues its counts. */
TEST_THAT(all_are_counted_also_those_that_are_not_noted)
{
    struct op ops[OPS], *batch[OPS];
    const struct event *list;
    uint64_t lost, unnoted;
    size_t noted = 0, seen = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make_batch(ops, batch);
        op_pass_all(batch, OPS, OP_SUBMITTED);
        for (int i = 0; i < OPS; i++)
            noted += ops[i].noted != 0;
        op_pass_all(batch, OPS, OP_READ);
        op_pass_all(batch, OPS, OP_COMMITTED);
        seen += events_take(&list, &lost, &unnoted);
    }
    assert_in_range(noted, 1, ROUNDS * OPS - 1);
    assert_int_equal(seen, 3 * noted);
    assert_int_equal(unnoted, ROUNDS * OPS - noted);
    struct event_counts counts[EVENTS_RESOURCES_MAX];
    assert_int_equal(events_counts(counts), 2);
    assert_int_equal(counts[0].accepted + counts[1].accepted, (ROUNDS + 1) * OPS);
}

TEST_THAT(sums_stay_at_the_limit)
{
    static const struct {
        int64_t amount;
        int kind;
        int64_t sum;
    } steps[] = {{INT64_MAX, OP_CHANGE_BALANCE, INT64_MAX},
                 {1, OP_CHANGE_BALANCE, INT64_MAX},
                 {INT64_MAX, OP_TRANSFER, 0},
                 {INT64_MAX, OP_TRANSFER, -INT64_MAX},
                 {2, OP_TRANSFER, INT64_MIN},
                 {-INT64_MAX, OP_CHANGE_BALANCE, INT64_MIN}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        static struct op op;
        struct event_counts counts[EVENTS_RESOURCES_MAX];
        op = (struct op){.kind = (enum op_kind)steps[i].kind, .amount = steps[i].amount};
        strcpy(op.id, "limits");
        op_pass(&op, OP_COMMITTED);
        assert_int_equal(events_counts(counts), 1);
        assert_true(counts[0].amount == steps[i].sum);
    }
}

/* What was sold less what came: first value less this sum is what should be left. */
TEST_THAT(a_stock_change_is_counted_with_the_orders_of_its_item)
{
    static const struct {
        enum op_kind kind;
        int64_t amount, sum;
    } steps[] = {{OP_PLACE_ORDER, 3, 3}, {OP_CHANGE_STOCK, 10, -7}, {OP_CHANGE_STOCK, -4, -3}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        static struct op op;
        struct event_counts counts[EVENTS_RESOURCES_MAX];
        op = (struct op){.kind = steps[i].kind, .amount = steps[i].amount};
        strcpy(op.id, "restocked");
        op_pass(&op, OP_COMMITTED);
        assert_int_equal(events_counts(counts), 1);
        assert_string_equal(counts[0].resource, "item:restocked");
        assert_int_equal(counts[0].amount, steps[i].sum);
    }
}
