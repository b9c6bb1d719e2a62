/* Stores of every version that ever was become stores of this one: the same tables as a new store,
 * the same values, and a ledger that says what the old one knew. On both engines.
 * e2e/test_kill_every_migration kills the command at its system calls. */
#include "fixture.h"
#include "old_stores.h"
#include "schema.h"
#include "upkeep.h"

static const struct old_store {
    const char *name, *tables;
    int version;
    bool postgres;
} stores[] = {
    {"version 1 of SQLite, with an index of the ledger", sqlite_1_with_index, 1, false},
    {"version 1 of SQLite", sqlite_1, 1, false},
    {"version 2 of SQLite", sqlite_2, 2, false},
    {"version 1 of PostgreSQL", postgres_1, 1, true},
    {"version 2 of PostgreSQL", postgres_2, 2, true},
};
enum { STORES = sizeof stores / sizeof *stores };

static const struct old_store *old; /* the one that a test is about */

static void run_sql(struct fixture *fixture, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void run_sql(struct fixture *fixture, const char *format, ...)
{
    char sql[8192];
    va_list args;
    va_start(args, format);
    assert_in_range(vsnprintf(sql, sizeof sql, format, args), 1, sizeof sql - 1);
    va_end(args);
    fixture_sql(fixture, sql);
}

static void make_old(struct fixture *fixture)
{
    fixture_sql(fixture, old->tables);
    if (old->postgres)
        run_sql(fixture, "INSERT INTO seckill_schema VALUES (%d)", old->version);
    else
        run_sql(fixture,
                "PRAGMA journal_mode = WAL; PRAGMA application_id = %d;"
                " PRAGMA user_version = %d",
                SCHEMA_APPLICATION_ID, old->version);
}

static void run_on(void *fixture, const char *sql)
{
    fixture_sql(fixture, sql);
}

static void fill_old(struct fixture *fixture)
{
    old_store_fill(old->version, run_on, fixture);
}

static int set_up(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    make_old(fixture);
    *state = fixture;
    return 0;
}

static void migrate(struct fixture *fixture)
{
    db_error error = {0};
    db_versions versions = {0};
    if (db_migrate(fixture->url, &versions, &error) != DB_OK)
        fail_msg("%s: %s", old->name, error.message);
    assert_int_equal(old->version, versions.from);
}

static void it_is_refused_at_start_with_the_command_to_run(void **state)
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

/* All there is to say about the tables, as one text. */
static char *describe(struct fixture *fixture)
{
    if (old->postgres)
        return pg_value(
            fixture->url,
            "SELECT string_agg(line, E'\\n' ORDER BY line) FROM (SELECT concat_ws(' ', relname,"
            " attname, attnum, format_type(atttypid, atttypmod), attnotnull, attidentity,"
            " attcollation, reloptions, pg_get_expr(adbin, adrelid)) AS line FROM pg_attribute"
            " JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid"
            " AND adnum = attnum WHERE relnamespace = current_schema()::regnamespace AND"
            " attnum > 0 AND relkind IN ('r', 'i', 'S')"
            " UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()"
            " UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname,"
            " pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace ="
            " current_schema()::regnamespace UNION ALL SELECT pg_get_triggerdef(oid)"
            " FROM pg_trigger) AS lines");
    sqlite3 *handle;
    sqlite3_stmt *statement;
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &handle));
    assert_int_equal(SQLITE_OK,
                     sqlite3_prepare_v2(handle,
                                        "SELECT group_concat(type || name || tbl_name || ' ' ||"
                                        " coalesce(sql, ''), char(10)) FROM"
                                        " (SELECT * FROM sqlite_schema ORDER BY name)",
                                        -1, &statement, NULL));
    assert_int_equal(SQLITE_ROW, sqlite3_step(statement));
    char *text = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return text;
}

static void its_tables_are_those_of_a_new_store(void **state)
{
    struct fixture *fixture = *state;
    fill_old(fixture);
    migrate(fixture);
    char *migrated = describe(fixture);
    fixture_remove(fixture);
    *fixture = fixture_folder(); /* empties the database, too */
    fixture_open(fixture, NULL);
    fixture_close(fixture);
    char *fresh = describe(fixture);
    assert_true(strlen(fresh) > 1000);
    assert_string_equal(migrated, fresh);
    free(migrated);
    free(fresh);
}

/* -- rows ------------------------------------------------------------------------------------- */

static void values_orders_and_answers_are_as_they_were(void **state)
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

struct rows {
    db_ledger_row rows[OLD_ROWS + OLD_LEGS + 4];
    int n;
};

static int keep_row(void *arg, const db_ledger_row *row)
{
    struct rows *rows = arg;
    assert_true(rows->n < (int)(sizeof rows->rows / sizeof *rows->rows));
    rows->rows[rows->n++] = *row;
    return 0;
}

static void read_rows(struct fixture *fixture, struct rows *ret)
{
    db_feed_place place = {0};
    bool more;
    ret->n = 0;
    assert_int_equal(
        DB_OK, db_read_ledger(fixture->reader, &place, DB_PAGE_MAX, keep_row, ret, &place, &more));
}

static void the_ledger_says_what_the_old_one_knew(void **state)
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

static void the_chain_is_whole_and_goes_on(void **state)
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

static void each_movement_of_money_has_two_legs(void **state)
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

static void its_audit_is_clean(void **state)
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

/* A lost update does not vanish by a migration. */
/* A sale that lost an update and was reset since: history, and no damage of the chain. */
static void a_fork_of_a_former_sale_is_no_damage(void **state)
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

static void damage_stays_to_be_seen(void **state)
{
    struct fixture *fixture = *state;
    fill_old(fixture);
    fixture_sql(fixture, "UPDATE accounts SET balance = 84 WHERE id = 'u2'");
    migrate(fixture);
    fixture_open(fixture, NULL);
    assert_false(fixture_audit(fixture, "account:u2").ok);
    assert_int_equal(1, fixture_audit(fixture, "account:u2").lost_amount);
}

/* -- the command's edges ---------------------------------------------------------------------- */

static void a_second_migration_has_nothing_to_do(void **state)
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

static void what_cannot_be_migrated_stays_as_it_is(void **state)
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

static void a_store_of_somebody_else_is_left_alone(void **state)
{
    struct fixture *fixture = *state;
    fixture_sql(fixture, old->postgres ? "DROP TABLE seckill_schema" : "PRAGMA application_id = 7");
    expect_refused(fixture, DB_INVALID, "not a database of this service");
}

static void a_store_in_use_is_refused(void **state)
{
    struct fixture *fixture = *state;
    migrate(fixture);
    fixture_open(fixture, NULL);
    if (old->postgres)
        run_sql(fixture, "UPDATE seckill_schema SET version = %d", old->version);
    expect_refused(fixture, DB_UNAVAILABLE, old->postgres ? "stop all instances" : "already open");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_teardown)

static const struct CMUnitTest tests[] = {
    TEST(it_is_refused_at_start_with_the_command_to_run),
    TEST(its_tables_are_those_of_a_new_store),
    TEST(values_orders_and_answers_are_as_they_were),
    TEST(the_ledger_says_what_the_old_one_knew),
    TEST(the_chain_is_whole_and_goes_on),
    TEST(each_movement_of_money_has_two_legs),
    TEST(its_audit_is_clean),
    TEST(a_fork_of_a_former_sale_is_no_damage),
    TEST(damage_stays_to_be_seen),
    TEST(a_second_migration_has_nothing_to_do),
    TEST(what_cannot_be_migrated_stays_as_it_is),
    TEST(a_store_of_somebody_else_is_left_alone),
    TEST(a_store_in_use_is_refused),
};

int main(void)
{
    int failed = 0;
    for (old = stores; old < stores + STORES; old++)
        failed += cmocka_run_group_tests_name(old->name, tests, old->postgres ? pg_start : NULL,
                                              old->postgres ? pg_stop : NULL);
    return failed;
}
