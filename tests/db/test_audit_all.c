/* The audit of all resources at once: in order, with the same verdicts as single audits. */
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

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(all_resources_come_in_order_until_told_to_stop)
{
    struct fixture *fixture = *state;
    fixture_item(fixture, "2", 1);
    fixture_item(fixture, "1", 1);
    fixture_account(fixture, "z", 1);
    fixture_account(fixture, "b", 1);
    struct seen seen = {0};
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, note, &seen, NULL));
    assert_int_equal(4, seen.n);
    static const char *const expected[] = {"account:b", "account:z", "item:1", "item:2"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(expected[i], seen.resources[i]);
    for (int stop = 1; stop <= 3; stop++) {
        seen = (struct seen){.stop_after = stop};
        assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, note, &seen, NULL));
        assert_int_equal(stop, seen.n);
    }
    assert_int_equal(DB_NOT_FOUND, db_audit(fixture->reader, "item:3", note, &seen, NULL));
    assert_int_equal(DB_NOT_FOUND, db_audit(fixture->reader, "thing:1", note, &seen, NULL));
    static const char *const alike[] = {"ITEM:1", "ACCOUNT:z", "account:1", "item:z"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(DB_NOT_FOUND, db_audit(fixture->reader, alike[i], note, &seen, NULL));
}

TEST_THAT(an_empty_store_is_no_trouble)
{
    struct fixture *fixture = *state;
    struct seen seen = {0};
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, note, &seen, NULL));
    assert_int_equal(0, seen.n);
}

enum { TOGETHER_MAX = 9 };

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
    assert_int_equal(a->missing, b->missing);
    assert_int_equal(a->ledger_sum, b->ledger_sum);
    assert_int_equal(a->sold, b->sold);
    assert_int_equal(a->over_limit, b->over_limit);
    assert_int_equal(a->lost_updates, b->lost_updates);
    assert_int_equal(a->lost_amount, b->lost_amount);
    assert_int_equal(a->duplicates, b->duplicates);
    assert_int_equal(a->broken, b->broken);
    assert_int_equal(a->n_forks, b->n_forks);
    for (size_t i = 0; i < a->n_forks; i++)
        for (int side = 0; side < 2; side++)
            assert_int_equal(a->forks[i][side].id, b->forks[i][side].id);
}

/* Resources whose names share prefixes and whose ledger rows alternate. One has no ledger, one was
 * damaged before its reset, and some rows belong to resources that do not exist. */
TEST_THAT(judged_with_all_others_or_alone_a_resource_gets_the_same_verdict)
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
                   " UPDATE ledger SET resource = 'thing' WHERE txn_id = 't2-1';"
                   " UPDATE ledger SET txn_id = '' WHERE txn_id = 't1-0'");

    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, keep_each_row, &together, NULL));
    assert_int_equal(9, together.n);
    for (int i = 0; i < together.n; i++) {
        db_audit_row alone = fixture_audit(fixture, together.rows[i].resource);
        assert_same_verdict(&alone, &together.rows[i]);
    }
    assert_int_equal(1, together.rows[0].unchained); /* its txn_id was changed */
    assert_int_equal(0, together.rows[0].broken);
    assert_string_equal("account:1-x", together.rows[1].resource);
    assert_int_not_equal(0, together.rows[1].broken);
    assert_string_equal("account:1-y", together.rows[2].resource);
    assert_int_equal(1, together.rows[2].missing);
    assert_string_equal("account:10", together.rows[3].resource);
    assert_int_equal(1, together.rows[3].lost_updates);
    assert_string_equal("account:2", together.rows[4].resource);
    assert_int_equal(1, together.rows[4].duplicates);
    assert_string_equal("account:again", together.rows[5].resource);
    assert_true(together.rows[5].ok);
    assert_string_equal("account:bare", together.rows[6].resource);
    assert_int_not_equal(0, together.rows[6].broken);
    assert_true(together.rows[7].ok);
    assert_int_equal(3, together.rows[7].sold);
    assert_string_equal("thing", together.rows[8].resource);
    assert_int_equal(1, together.rows[8].missing);
}

struct counted {
    int n, duplicates, bad;
};

static int count_bad(void *arg, const db_audit_row *row)
{
    struct counted *seen = arg;
    seen->n++;
    seen->duplicates += (int)row->duplicates;
    seen->bad += !row->ok;
    return 0;
}

/* Each list is longer than a page of an answer. */
TEST_THAT(what_fills_several_pages_is_seen_to_its_end)
{
    struct fixture *fixture = *state;
    struct counted seen = {0};
    sale(fixture, 2000, 0);
    plant(fixture,
          "INSERT INTO items WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n"
          " WHERE i < 2500) SELECT CAST(i AS text), guard, initial_stock, stock, price,"
          " per_user_limit, reserve_s, fence, version + 1, last_fence, epoch, chain"
          " FROM n, items;"
          " INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after,"
          " fence, guard, instance, kind, at_us) SELECT 'item:' || items.id, ledger.epoch,"
          " ledger.version_before + 1, 'reset' || substr(txn_id, 6, 1) || 'item:' || items.id"
          " || ':1', delta, before, after, ledger.fence, ledger.guard, instance,"
          " kind, at_us"
          " FROM items, ledger WHERE items.id <> '1';"
          " INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after,"
          " fence, guard, instance, kind, at_us) SELECT resource, epoch, version_before + 1,"
          " txn_id, 0, after, after, fence, guard, instance, 'order', at_us FROM ledger WHERE "
          "resource <>"
          " 'item:1'; UPDATE items SET version = version + 1 WHERE id <> '1'");
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, count_bad, &seen, NULL));
    assert_int_equal(2500, seen.n);
    assert_int_equal(2499, seen.duplicates);
    assert_int_equal(2499, seen.bad);
}

/* The service audits so: in a reader's snapshot. */
TEST_THAT(audits_of_one_snapshot_agree)
{
    struct fixture *fixture = *state;
    struct seen seen = {0};
    fixture_account(fixture, "a", 1);
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    assert_true(fixture_audit(fixture, "account:a").ok);
    fixture_account(fixture, "b", 1);
    seen.stop_after = 1;
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, note, &seen, NULL));
    assert_int_equal(DB_NOT_FOUND, db_audit(fixture->reader, "account:b", note, &seen, NULL));
    db_reader_end(fixture->reader);
    assert_true(fixture_audit(fixture, "account:b").ok);
}

/* Sums the paid orders of the item's former epochs. */
TEST_THAT(what_payments_of_former_epochs_moved_is_counted)
{
    struct fixture *fixture = *state;
    fixture_item(fixture, "1", 10);
    fixture_item(fixture, "2", 10);
    fixture_sql(fixture,
                "INSERT INTO orders (id, item_id, user_id, quantity, amount, state, version,"
                " item_epoch, created_us, expires_us, counted_user) VALUES"
                " ('a', '1', 'u', 1, 100, 1, 1, 1, 0, 0, ''), ('b', '1', 'u', 1, 20, 1, 1, 1, 0, 0,"
                " ''), ('c', '1', 'u', 1, 3, 0, 1, 1, 0, 0, ''), ('d', '2', 'u', 1, 7, 1, 1, 1, 0,"
                " 0, '')");
    assert_int_equal(0, fixture_audit(fixture, "item:1").former_paid);
    fixture_item(fixture, "1", 10);
    assert_int_equal(120, fixture_audit(fixture, "item:1").former_paid);
    assert_true(fixture_audit(fixture, "item:1").ok);
    assert_int_equal(0, fixture_audit(fixture, "item:2").former_paid);
    fixture_sql(fixture, "UPDATE orders SET state = 1 WHERE id = 'c'"); /* too late */
    assert_int_equal(123, fixture_audit(fixture, "item:1").former_paid);
}
