/* The lists of columns (db/columns.h) equal those of the tables, and each column is read as it was
 * written, on both engines. */
#include "columns.h"
#include "fixture.h"

static const char *const tables[TABLES] = {"items",  "accounts", "orders",         "idempotency",
                                           "ledger", "carried",  "carried_orders", "archives"};

/* "'id', 'guard', ..." */
static void names_of(const struct row_type *type, char *ret, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < type->n; i++)
        used += (size_t)snprintf(ret + used, size - used, "%s'%s'", i == 0 ? "" : ", ",
                                 type->columns[i].name);
    assert_true(used < size);
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(every_column_of_a_table_is_listed_and_no_other)
{
    struct fixture *fixture = *state;
    for (int table = 0; table < TABLES; table++) {
        char names[512], all[1024], listed[1024];
        const char *source = pg_server ? "SELECT count(*) FROM information_schema.columns"
                                         " WHERE table_name = '%s' AND %scolumn_name IN (%s)"
                                         " AND column_name <> 'txid'" /* given by the server */
                                       : "SELECT count(*) FROM pragma_table_info('%s')"
                                         " WHERE %sname IN (%s)";
        names_of(&row_types[table], names, sizeof names);
        snprintf(listed, sizeof listed, source, tables[table], "", names);
        snprintf(all, sizeof all, source, tables[table], "NOT ", names);
        assert_int_equal((int64_t)row_types[table].n, fixture_sql_int(fixture, listed));
        assert_int_equal(0, fixture_sql_int(fixture, all));
    }
}

/* Gives each column a different value; texts have the greatest length. */
static void fill(const struct row_type *type, void *row)
{
    memset(row, 0, type->size);
    for (size_t i = 0; i < type->n; i++) {
        const struct column *column = &type->columns[i];
        char *at = (char *)row + column->at;
        if (column->kind == COLUMN_TEXT)
            memset(at, 'a' + (int)i, column->size - 1);
        else if (column->kind == COLUMN_INT)
            memcpy(at, &(const int64_t){INT64_MAX - (int64_t)i}, column->size);
        else if (column->kind == COLUMN_STATE)
            memcpy(at, &(const db_order_state){DB_CLOSED}, column->size);
        else if (column->kind == COLUMN_KIND)
            memcpy(at, &(const db_kind){DB_KINDS - 1}, column->size);
        else if (column->kind == COLUMN_HTTP)
            memcpy(at, &(const int32_t){599}, column->size);
        else
            memcpy(at, &(const bool){true}, column->size);
    }
}

/* Compares the members directly, without the code that converts them. */
static void expect_same(const struct row_type *type, const void *row, const void *back)
{
    for (size_t i = 0; i < type->n; i++) {
        const struct column *column = &type->columns[i];
        const char *was = (const char *)row + column->at, *is = (const char *)back + column->at;
        if (column->kind == COLUMN_TEXT ? strcmp(was, is) != 0 : memcmp(was, is, column->size) != 0)
            fail_msg("%s is not what it was", column->name);
    }
}

static db_status work_insert_both(db_tx *tx, void *arg)
{
    const struct {
        db_order order;
        db_answer answer;
    } *rows = arg;
    db_status status = db_tx_insert_order(tx, &rows->order);
    return status == DB_OK ? db_tx_insert_answer(tx, &rows->answer) : status;
}

TEST_THAT(an_inserted_row_comes_back_whole)
{
    struct fixture *fixture = *state;
    struct {
        db_order order;
        db_answer answer;
    } rows, back;
    fill(&row_types[TABLE_ORDERS], &rows.order);
    fill(&row_types[TABLE_ANSWERS], &rows.answer);
    assert_int_equal(DB_OK, db_run(fixture->store, work_insert_both, &rows, NULL));
    assert_int_equal(DB_OK, db_read_order(fixture->reader, rows.order.id, &back.order));
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, rows.answer.key, &back.answer));
    expect_same(&row_types[TABLE_ORDERS], &rows.order, &back.order);
    expect_same(&row_types[TABLE_ANSWERS], &rows.answer, &back.answer);
}

static int keep_row(void *arg, const db_ledger_row *row)
{
    *(db_ledger_row *)arg = *row;
    return 0;
}

static db_status work_append(db_tx *tx, void *arg)
{
    return db_tx_append_ledger(tx, arg);
}

TEST_THAT(a_ledger_row_comes_back_whole)
{
    struct fixture *fixture = *state;
    db_ledger_row row, back;
    const db_feed_place start = {0};
    db_feed_place next;
    bool more;
    fill(&row_types[TABLE_LEDGER], &row);
    row.after = row.before + (row.delta = -7);
    assert_int_equal(DB_OK, db_run(fixture->store, work_append, &row, NULL));
    assert_int_equal(DB_OK,
                     db_read_ledger(fixture->reader, &start, 10, keep_row, &back, &next, &more));
    row.id = next.id; /* chosen by the store */
    expect_same(&row_types[TABLE_LEDGER], &row, &back);
}

/* Written twice: as a new row, and over an existing row. */
TEST_THAT(a_reset_row_comes_back_whole)
{
    struct fixture *fixture = *state;
    db_item item, item_back;
    db_account account, account_back;
    fill(&row_types[TABLE_ITEMS], &item);
    fill(&row_types[TABLE_ACCOUNTS], &account);
    for (int64_t times = 1; times <= 2; times++) {
        item.stock = --item.initial_stock;
        account.balance = --account.initial_balance;
        db_item item_now = item;
        db_account account_now = account;
        assert_int_equal(DB_OK, db_run(fixture->store, work_reset_item, &item_now, NULL));
        assert_int_equal(DB_OK, db_run(fixture->store, work_reset_account, &account_now, NULL));
        item.version = item.epoch = account.version = account.epoch = times;
        item.last_fence = account.last_fence = 0;
        strcpy(item.chain, item_now.chain); /* of the ledger row that the reset wrote */
        strcpy(account.chain, account_now.chain);
        assert_int_equal(DB_OK, db_read_item(fixture->reader, item.id, &item_back));
        assert_int_equal(DB_OK, db_read_account(fixture->reader, account.id, &account_back));
        expect_same(&row_types[TABLE_ITEMS], &item, &item_back);
        expect_same(&row_types[TABLE_ITEMS], &item, &item_now);
        expect_same(&row_types[TABLE_ACCOUNTS], &account, &account_back);
        expect_same(&row_types[TABLE_ACCOUNTS], &account, &account_now);
    }
}
