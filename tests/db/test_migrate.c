/* Stores of every version that ever was become stores of this one: the same tables as a new store,
 * the same values. On both engines. test_migrate_ledger is about the ledger.
 * e2e/test_kill_every_migration kills the command at its system calls. */
#include "migrate_rig.h"
#include "schema_text.h"

TEST_FIXTURE(set_up, fixture_teardown);

TEST_THAT(it_is_refused_at_start_with_the_command_to_run)
{
    struct fixture *fixture = *state;
    db *store = NULL;
    db_error error = {0};
    assert_int_equal(DB_INVALID, db_open(&(db_options){.url = fixture->url}, &store, &error));
    assert_non_null(strstr(error.message, "seckilld migrate"));
    migrate(fixture);
    fixture_open(fixture, NULL);
}

/* -- tables ----------------------------------------------------------------------------------- */

TEST_THAT(its_tables_are_those_of_a_new_store)
{
    struct fixture *fixture = *state;
    fill_old(fixture);
    migrate(fixture);
    char *migrated = schema_text(fixture);
    fixture_remove(fixture);
    *fixture = fixture_folder(); /* empties the database, too */
    fixture_open(fixture, NULL);
    fixture_close(fixture);
    char *fresh = schema_text(fixture);
    assert_true(strlen(fresh) > 1000);
    assert_string_equal(migrated, fresh);
    free(migrated);
    free(fresh);
}

/* -- rows ------------------------------------------------------------------------------------- */

TEST_THAT(values_orders_and_answers_are_as_they_were)
{
    struct fixture *fixture = *state;
    db_item item;
    db_account account;
    db_order order;
    db_answer answer;
    int64_t bought, fence;
    const char *user = "u1";
    fill_old(fixture);
    migrate(fixture);
    fixture_open(fixture, NULL);
    assert_int_equal(DB_OK, db_read_item(fixture->reader, "1", &item));
    assert_true(item.stock == 7 && item.initial_stock == 10 && item.price == 5 && item.fence);
    assert_true(item.version == 9 && item.epoch == 2 && item.last_fence == 7);
    assert_int_equal(DB_OK, db_read_bought(fixture->reader, &item, &user, 1, &bought));
    assert_int_equal(2, bought);
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "u2", &account));
    assert_true(account.balance == 85 && account.version == 3 && account.fence);
    for (size_t i = 0; i < sizeof old_orders / sizeof *old_orders; i++) {
        char id[8];
        snprintf(id, sizeof id, "o%d", (int)i + 1);
        assert_int_equal(DB_OK, db_read_order(fixture->reader, id, &order));
        assert_int_equal(old_orders[i].counted_user[0] != '\0', order.limited);
        assert_int_equal(1000, order.created_us);
    }
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "k8", &answer));
    assert_string_equal("transfer from=u1 to=u2 amount=30", answer.request);
    assert_int_equal(DB_OK, db_next_fence(fixture->store, "item:1", 0, &fence, NULL));
    assert_int_equal(13, fence);
    assert_int_equal(OLD_ROWS, fixture_sql_int(fixture, "SELECT done FROM tasks"
                                                        " WHERE name = 'migrated'"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT done FROM tasks"
                                                 " WHERE name = 'close-orders'"));
}

/* -- the command's edges ---------------------------------------------------------------------- */

TEST_THAT(a_second_migration_has_nothing_to_do)
{
    struct fixture *fixture = *state;
    static struct rows rows;
    db_versions versions = {0};
    fill_old(fixture);
    migrate(fixture);
    assert_int_equal(DB_OK, db_migrate(fixture->url, &versions, NULL));
    assert_int_equal(SCHEMA_VERSION, versions.from);
    fixture_open(fixture, NULL);
    read_rows(fixture, &rows);
    assert_int_equal(OLD_ROWS + OLD_LEGS, rows.n);
}

static void expect_refused(struct fixture *fixture, db_status expected, const char *says)
{
    db_error error = {0};
    db_versions versions = {0};
    assert_int_equal(expected, db_migrate(fixture->url, &versions, &error));
    if (strstr(error.message, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, says);
}

TEST_THAT(what_cannot_be_migrated_stays_as_it_is)
{
    struct fixture *fixture = *state;
    fill_old(fixture);
    fixture_sql(fixture, "CREATE TABLE old_orders (theirs int)");
    expect_refused(fixture, DB_FAILED, "old_");
    fixture_sql(fixture, "DROP TABLE old_orders");
    if (old->postgres)
        fixture_sql(fixture, "UPDATE seckill_schema SET version = 99");
    else
        fixture_sql(fixture, "PRAGMA user_version = 99");
    expect_refused(fixture, DB_INVALID, "version 99");
    if (old->postgres)
        run_sql(fixture, "UPDATE seckill_schema SET version = %d", old->version);
    else
        run_sql(fixture, "PRAGMA user_version = %d", old->version);
    migrate(fixture); /* nothing was lost or renamed */
    fixture_open(fixture, NULL);
    assert_true(fixture_audit(fixture, "item:1").ok);
}

TEST_THAT(a_store_of_somebody_else_is_left_alone)
{
    struct fixture *fixture = *state;
    fixture_sql(fixture, old->postgres ? "DROP TABLE seckill_schema" : "PRAGMA application_id = 7");
    expect_refused(fixture, DB_INVALID, "not a database of this service");
}

TEST_THAT(a_store_in_use_is_refused)
{
    struct fixture *fixture = *state;
    migrate(fixture);
    fixture_open(fixture, NULL);
    if (old->postgres)
        run_sql(fixture, "UPDATE seckill_schema SET version = %d", old->version);
    expect_refused(fixture, DB_UNAVAILABLE, old->postgres ? "stop all instances" : "already open");
}

int main(void)
{
    return run_on_old_stores();
}
