/* The ledger of an older store after its migration: it says what the old one knew, its chain is
 * whole, and its audit finds what was wrong before, and nothing else. On both engines. */
#include "migrate_rig.h"

TEST_FIXTURE(set_up, fixture_teardown);

TEST_THAT(the_ledger_says_what_the_old_one_knew)
{
    struct fixture *fixture = *state;
    static struct rows rows;
    fill_old(fixture);
    migrate(fixture);
    fixture_open(fixture, NULL);
    read_rows(fixture, &rows);
    assert_int_equal(OLD_ROWS + OLD_LEGS, rows.n);
    for (int i = 0; i < OLD_ROWS; i++) {
        const db_ledger_row *row = &rows.rows[i];
        assert_int_equal(i + 1, row->id);
        assert_string_equal(old_ledger[i].resource, row->resource);
        assert_string_equal(old_ledger[i].txn_id, row->txn_id);
        assert_string_equal(old_ledger[i].kind, db_kind_text(row->kind));
        assert_string_equal(old_ledger[i].order_id, row->order_id);
        assert_string_equal(old_ledger[i].counterpart, row->counterpart);
        assert_int_equal(old_ledger[i].delta_now, row->delta);
        assert_int_equal(old_ledger[i].after, row->after);
        assert_int_equal(old_ledger[i].version_before, row->version_before);
        assert_true(row->fence == 3 && row->at_us == 1000 + i);
        assert_string_equal("sql-row", row->guard);
        assert_string_equal("i1", row->instance);
    }
}

/* Index of the row that comes before, for a row of an item or account; of the other leg. */
static const char *predecessor(const struct rows *rows, int at)
{
    const db_ledger_row *row = &rows->rows[at];
    const bool shop = strncmp(row->resource, "shop:", 5) == 0;
    for (int i = at - 1; i >= 0; i--) {
        const db_ledger_row *other = &rows->rows[i];
        if (shop ? strcmp(other->txn_id, row->txn_id) == 0 &&
                       strcmp(other->resource, row->counterpart) == 0
                 : strcmp(other->resource, row->resource) == 0)
            return other->hash;
    }
    return "";
}

static void expect_sealed(const struct rows *rows)
{
    char hash[DB_HASH_LENGTH + 1];
    for (int i = 0; i < rows->n; i++) {
        db_ledger_hash(&rows->rows[i], predecessor(rows, i), hash);
        assert_string_equal(hash, rows->rows[i].hash);
    }
}

TEST_THAT(the_chain_is_whole_and_goes_on)
{
    struct fixture *fixture = *state;
    static struct rows rows;
    fill_old(fixture);
    migrate(fixture);
    fixture_open(fixture, NULL);
    read_rows(fixture, &rows);
    expect_sealed(&rows);
    fixture_account(fixture, "u1", 7); /* a reset and its leg */
    fixture_item(fixture, "2", 9);
    read_rows(fixture, &rows);
    assert_int_equal(OLD_ROWS + OLD_LEGS + 3, rows.n);
    expect_sealed(&rows);
}

TEST_THAT(each_movement_of_money_has_two_legs)
{
    struct fixture *fixture = *state;
    fill_old(fixture);
    migrate(fixture);
    assert_int_equal(0, fixture_sql_int(fixture,
                                        "SELECT count(*) FROM (SELECT txn_id FROM ledger WHERE"
                                        " counterpart <> '' GROUP BY txn_id HAVING sum(delta)"
                                        " <> 0 OR count(*) <> 2) AS broken"));
    static const struct {
        const char *resource;
        int sum;
    } sums[] = {{"shop:revenue", 10},
                {"shop:cash", -5},
                {"shop:equity", -590},
                {"account:u1", 500},
                {"account:u2", 85}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        char sql[96];
        snprintf(sql, sizeof sql, "SELECT sum(delta) FROM ledger WHERE resource = '%s'",
                 sums[i].resource);
        assert_int_equal(sums[i].sum, fixture_sql_int(fixture, sql));
    }
}

static int expect_ok(void *arg, const db_audit_row *row)
{
    ++*(int *)arg;
    if (!row->ok)
        fail_msg("%s is not ok after the migration from %s", row->resource, old->name);
    return 0;
}

TEST_THAT(its_audit_is_clean)
{
    struct fixture *fixture = *state;
    int resources = 0;
    fill_old(fixture);
    migrate(fixture);
    fixture_open(fixture, NULL);
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, expect_ok, &resources, NULL));
    assert_int_equal(4, resources);
    assert_int_equal(3, fixture_audit(fixture, "item:1").sold);
}

/* A sale that lost an update and was reset since: history, and no damage of the chain. */
TEST_THAT(a_fork_of_a_former_sale_is_no_damage)
{
    struct fixture *fixture = *state;
    fill_old(fixture);
    fixture_sql(fixture, "INSERT INTO items VALUES ('3', 'none', 5, 5, 5, 0, 900, 0, 4, 0, 2);"
                         "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta,"
                         " before, after, fence, guard, instance, at_us) VALUES"
                         " ('item:3', 1, 0, 'reset\titem:3:1', 0, 5, 5, 0, 'none', 'i1', 1),"
                         " ('item:3', 1, 1, 'f1', -1, 5, 4, 0, 'none', 'i1', 2),"
                         " ('item:3', 1, 1, 'f2', -1, 5, 4, 0, 'none', 'i2', 3),"
                         " ('item:3', 1, 2, 'f3', -1, 4, 3, 0, 'none', 'i1', 4),"
                         " ('item:3', 2, 3, 'reset\titem:3:2', 0, 5, 5, 0, 'none', 'i1', 5)");
    migrate(fixture);
    fixture_open(fixture, NULL);
    size_t resources = 0;
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, expect_ok, &resources, NULL));
    assert_int_equal(0, fixture_audit(fixture, "item:3").unchained);
}

/* A lost update does not vanish by a migration. */
TEST_THAT(damage_stays_to_be_seen)
{
    struct fixture *fixture = *state;
    fill_old(fixture);
    fixture_sql(fixture, "UPDATE accounts SET balance = 84 WHERE id = 'u2'");
    migrate(fixture);
    fixture_open(fixture, NULL);
    assert_false(fixture_audit(fixture, "account:u2").ok);
    assert_int_equal(1, fixture_audit(fixture, "account:u2").lost_amount);
}

int main(void)
{
    return run_on_old_stores();
}
