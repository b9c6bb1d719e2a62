/* The audit of all resources at once: in order, and each judged as if it were alone. */
#include "damage.h"

struct seen {
    int n, stop_after;
    char resources[4][DB_RESOURCE_MAX + 1];
};

static int note(void *arg, const db_audit_row *row)
{
    struct seen *seen = arg;
    memcpy(seen->resources[seen->n++], row->resource, sizeof row->resource);
    return seen->n == seen->stop_after;
}

static void all_resources_come_in_order_until_told_to_stop(void **state)
{
    struct fixture *fixture = *state;
    fixture_item(fixture, "2", 1);
    fixture_item(fixture, "1", 1);
    fixture_account(fixture, "z", 1);
    fixture_account(fixture, "b", 1);
    struct seen seen = {0};
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, note, &seen));
    assert_int_equal(4, seen.n);
    static const char *const expected[] = {"account:b", "account:z", "item:1", "item:2"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(expected[i], seen.resources[i]);
    for (int stop = 1; stop <= 3; stop++) {
        seen = (struct seen){.stop_after = stop};
        assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, note, &seen));
        assert_int_equal(stop, seen.n);
    }
    assert_int_equal(DB_NOT_FOUND, db_audit(fixture->reader, "item:3", note, &seen));
    assert_int_equal(DB_NOT_FOUND, db_audit(fixture->reader, "thing:1", note, &seen));
}

enum { TOGETHER_MAX = 8 };

struct together {
    db_audit_row rows[TOGETHER_MAX];
    int n;
};

static int keep_each_row(void *arg, const db_audit_row *row)
{
    struct together *together = arg;
    assert_true(together->n < TOGETHER_MAX);
    together->rows[together->n++] = *row;
    return 0;
}

static void change_once(struct fixture *fixture, const char *id, const char *txn_id, int64_t delta)
{
    struct change change = {.delta = delta, .txn_id = txn_id, .how = any};
    assert_int_equal(DB_OK, db_read_account(fixture->reader, id, &change.account));
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
}

static void assert_same_verdict(const db_audit_row *a, const db_audit_row *b)
{
    assert_int_equal(a->ok, b->ok);
    assert_int_equal(a->ledger_sum, b->ledger_sum);
    assert_int_equal(a->sold, b->sold);
    assert_int_equal(a->lost_updates, b->lost_updates);
    assert_int_equal(a->lost_amount, b->lost_amount);
    assert_int_equal(a->duplicates, b->duplicates);
    assert_int_equal(a->broken, b->broken);
    assert_int_equal(a->n_forks, b->n_forks);
    for (size_t i = 0; i < a->n_forks; i++)
        for (int side = 0; side < 2; side++)
            assert_int_equal(a->forks[i][side].id, b->forks[i][side].id);
}

/* Names that begin like one another, rows of all of them in turn, one without a ledger, one with a
 * bad past before its reset, and rows of a resource that there is not. */
static void judged_with_all_others_or_alone_a_resource_gets_the_same_verdict(void **state)
{
    static const char *const ids[] = {"1", "1-x", "10", "2", "again", "bare"};
    struct fixture *fixture = *state;
    struct together together = {.n = 0};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        fixture_account(fixture, ids[i], 1000);
    db_account stale;
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "10", &stale));
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
            char txn_id[16];
            snprintf(txn_id, sizeof txn_id, "t%d-%zu", round, i);
            change_once(fixture, ids[i], txn_id, -10);
        }
    struct change late = {.account = stale, .delta = -1, .txn_id = "late", .how = any};
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &late, NULL));
    change_once(fixture, "2", "t0-3", -10);
    change_once(fixture, "again", "t0-4", -10);
    fixture_account(fixture, "again", 500);
    change_once(fixture, "again", "t0-4", -10);
    sale(fixture, 10, 3);
    plant(fixture, "DELETE FROM ledger WHERE resource = 'account:bare';"
                   " UPDATE ledger SET resource = 'account:1-y' WHERE txn_id = 't1-1';"
                   " UPDATE ledger SET txn_id = '' WHERE txn_id = 't1-0'");

    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, keep_each_row, &together));
    assert_int_equal(7, together.n);
    for (int i = 0; i < together.n; i++) {
        db_audit_row alone = fixture_audit(fixture, together.rows[i].resource);
        assert_same_verdict(&alone, &together.rows[i]);
    }
    assert_true(together.rows[0].ok);
    assert_string_equal("account:1-x", together.rows[1].resource);
    assert_int_not_equal(0, together.rows[1].broken);
    assert_string_equal("account:10", together.rows[2].resource);
    assert_int_equal(1, together.rows[2].lost_updates);
    assert_string_equal("account:2", together.rows[3].resource);
    assert_int_equal(1, together.rows[3].duplicates);
    assert_string_equal("account:again", together.rows[4].resource);
    assert_true(together.rows[4].ok);
    assert_string_equal("account:bare", together.rows[5].resource);
    assert_int_not_equal(0, together.rows[5].broken);
    assert_true(together.rows[6].ok);
    assert_int_equal(3, together.rows[6].sold);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_resources_come_in_order_until_told_to_stop),
        TEST(judged_with_all_others_or_alone_a_resource_gets_the_same_verdict),
    };
    return RUN_ON_BOTH_ENGINES(tests);
}
