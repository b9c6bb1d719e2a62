/* Lists that are read page by page: the feed, statements, orders of a user. Each is complete, and
 * each page comes along an index, whatever the size of the table. */
#include "fixture.h"
#include "postgres_sql.h"
#include "sqlite_text.h"

enum { ROWS = 2 * DB_PAGE_MAX + 7 };

struct page {
    size_t n;
    int64_t last; /* id of the last row */
    char resource[DB_RESOURCE_MAX + 1];
    db_chain_place place;
};

static int note_row(void *arg, const db_ledger_row *row)
{
    struct page *page = arg;
    assert_true(row->id > page->last); /* here ids rise in each list */
    page->n++;
    page->last = row->id;
    page->place = (db_chain_place){row->epoch, row->version_before, row->id};
    memcpy(page->resource, row->resource, sizeof page->resource);
    return 0;
}

static void fill_ledger(struct fixture *fixture, const char *resource, int rows)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before,"
             " after, fence, guard, instance, kind, at_us) WITH RECURSIVE n (i) AS (SELECT 1"
             " UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " SELECT '%s', 1, i, 't', 0, 0, 0, 0, '', '', 'change', 0 FROM n",
             rows, resource);
    fixture_sql(fixture, sql);
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

/* Rows of all resources: none twice, none missing, and the end is known. */
TEST_THAT(the_feed_is_read_page_by_page)
{
    static const size_t sizes[] = {DB_PAGE_MAX, DB_PAGE_MAX, 9, 0};
    struct fixture *fixture = *state;
    struct page page = {0};
    db_feed_place place = {0}, end, start = {0};
    bool more = true;
    assert_int_equal(DB_OK,
                     db_read_ledger(fixture->reader, &place, 10, note_row, &page, &place, &more));
    assert_memory_equal(&place, &start, sizeof place);
    assert_int_equal(page.n, 0);
    assert_false(more);
    fill_ledger(fixture, "account:a", ROWS);
    fixture_account(fixture, "last", 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        page.n = 0;
        assert_int_equal(DB_OK, db_read_ledger(fixture->reader, &place, 5 * DB_PAGE_MAX, note_row,
                                               &page, &place, &more));
        assert_int_equal(page.n, sizes[i]);
        assert_int_equal(more, i < 2);
    }
    assert_string_equal(page.resource, "shop:equity"); /* the other leg of the last account */
    assert_int_equal(DB_OK, db_feed_end(fixture->reader, &end));
    fixture_account(fixture, "later", 1);
    page.n = 0;
    assert_int_equal(DB_OK,
                     db_read_ledger(fixture->reader, &end, 10, note_row, &page, &place, &more));
    assert_int_equal(page.n, 2); /* behind the end is only what came later */
    assert_string_equal(page.resource, "shop:equity");
}

TEST_THAT(a_statement_is_read_page_by_page)
{
    struct fixture *fixture = *state;
    struct page page = {0};
    bool more = false;
    fill_ledger(fixture, "account:a", 25);
    fill_ledger(fixture, "account:ab", 25);
    for (size_t i = 0; i < 3; i++) {
        page.n = 0;
        const db_chain_place after = page.place;
        assert_int_equal(DB_OK, db_read_statement(fixture->reader, "account:a", &after, 10,
                                                  note_row, &page, &more));
        assert_int_equal(page.n, i < 2 ? 10 : 5);
        assert_int_equal(more, i < 2);
        assert_string_equal(page.resource, "account:a");
    }
    page.n = 0;
    const db_chain_place start = {0};
    assert_int_equal(DB_OK, db_read_statement(fixture->reader, "account:none", &start, 10, note_row,
                                              &page, &more));
    assert_int_equal(page.n, 0);
    assert_false(more);
}

struct orders {
    size_t n;
    char last[DB_ID_MAX + 1];
};

static int note_order(void *arg, const db_order *order)
{
    struct orders *orders = arg;
    assert_true(orders->last[0] == '\0' || strcmp(order->id, orders->last) < 0);
    assert_string_equal(order->user_id, "u1");
    strcpy(orders->last, order->id);
    orders->n++;
    return 0;
}

static void fill_orders(struct fixture *fixture, int orders)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "INSERT INTO orders (id, item_id, user_id, quantity, amount, state, version,"
             " item_epoch, created_us, expires_us, counted_user) WITH RECURSIVE n (i) AS (SELECT 1"
             " UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT 'o' || (100000 + i), '1',"
             " 'u' || (i %% 10), 1, 1, 0, 1, 1, 0, 0, '' FROM n",
             orders);
    fixture_sql(fixture, sql);
}

/* One in ten is a refusal. */
static void fill_answers(struct fixture *fixture, int answers)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "INSERT INTO idempotency (key, request, http_status, body, at_us) WITH RECURSIVE n (i)"
             " AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT 'k' || i, 'r',"
             " CASE WHEN i %% 10 = 0 THEN 409 ELSE 201 END, '{}', i FROM n",
             answers);
    fixture_sql(fixture, sql);
}

TEST_THAT(the_orders_of_a_user_are_read_page_by_page)
{
    struct fixture *fixture = *state;
    struct orders orders = {0};
    bool more = false;
    fill_orders(fixture, 250);
    for (size_t i = 0; i < 3; i++) {
        char before[DB_ID_MAX + 1];
        orders.n = 0;
        strcpy(before, orders.last);
        assert_int_equal(DB_OK, db_read_orders(fixture->reader, "u1", i > 0 ? before : NULL, 10,
                                               note_order, &orders, &more));
        assert_int_equal(orders.n, i < 2 ? 10 : 5);
        assert_int_equal(more, i < 2);
    }
    assert_string_equal(orders.last, "o100001");
}

/* -- plans ---------------------------------------------------------------------------------------
 */

static const struct plan {
    const char *name, *types, *arguments; /* of PostgreSQL */
    const char *sqlite[3], *postgres[3];  /* what the plan says */
} plans[] = {
    {"FEED",
     "bigint, bigint, bigint",
     "3, 5, 10",
     {"SEARCH ledger USING INTEGER PRIMARY KEY (rowid>?)"},
     {"Index Scan using ledger_feed on ledger", "Index Cond: ((ROW(txid, id) >"}},
    {"STATEMENT",
     "text, bigint, bigint, bigint, bigint",
     "'account:a', 1, 5, 5, 10",
     {"SEARCH ledger USING INDEX ledger_chain (resource=? AND (epoch,version_before)>"},
     {"Index Scan using ledger_chain on ledger", "(ROW(epoch, version_before, id) >"}},
    {"ORDERS_OF_USER",
     "text, text, bigint",
     "'u1', 'o100100', 10",
     {"SEARCH orders USING INDEX orders_of_user (user_id=? AND id<?)"},
     {"Index Scan Backward using orders_of_user on orders", "(ROW(user_id, id) < "}},
};

static const struct plan of_refusals[] = {
    {"READ_REFUSALS",
     "bigint",
     "100",
     {"SEARCH idempotency USING COVERING INDEX idempotency_refusals (at_us<?)",
      "SCAN idempotency USING COVERING INDEX idempotency_refusals"},
     {"Index Only Scan Backward using idempotency_refusals on idempotency",
      "Index Only Scan using idempotency_refusals on idempotency"}},
    {"PRUNE_OLDEST_REFUSALS",
     "bigint",
     "2000",
     {"SEARCH idempotency USING COVERING INDEX idempotency_refusals (at_us<?)"},
     {"Index Scan using idempotency_refusals on idempotency", "Index Cond: (at_us <"}},
};

static const char *postgres_text(const char *name)
{
    static const struct {
        const char *name, *text;
    } texts[] = {
#define TEXT_OF(name, types, text) {#name, text},
        POSTGRES_SQL_MAP(TEXT_OF)
#undef TEXT_OF
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].name, name) == 0)
            return texts[i].text;
    fail_msg("no statement %s", name);
    return NULL;
}

static void append(char *text, size_t size, const char *line)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s\n", line);
}

/* The plan that serves a prepared statement, whatever its arguments. */
static void explain_postgres(const struct fixture *fixture, const struct plan *plan, char *ret,
                             size_t size)
{
    char sql[4096];
    PGconn *handle = pg_connect(fixture->url);
    snprintf(sql, sizeof sql,
             "SET plan_cache_mode = force_generic_plan; PREPARE p (%s) AS %s;"
             "EXPLAIN EXECUTE p (%s)",
             plan->types, postgres_text(plan->name), plan->arguments);
    PGresult *result = PQexec(handle, sql);
    for (int i = 0; i < PQntuples(result); i++)
        append(ret, size, PQgetvalue(result, i, 0));
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(handle));
    PQclear(result);
    PQfinish(handle);
}

static void explain_sqlite(const struct fixture *fixture, const struct plan *plan, char *ret,
                           size_t size)
{
    char sql[4096];
    sqlite3 *handle;
    sqlite3_stmt *at;
    snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", sqlite_text(plan->name));
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &handle));
    assert_int_equal(SQLITE_OK, sqlite3_prepare_v2(handle, sql, -1, &at, NULL));
    while (sqlite3_step(at) == SQLITE_ROW)
        append(ret, size, (const char *)sqlite3_column_text(at, 3));
    sqlite3_finalize(at);
    sqlite3_close(handle);
}

/* Fails unless the plan is as expected. It sorts nothing, and reads no table from end to end. */
static void check_plan(const struct fixture *fixture, const struct plan *plan, char *ret,
                       size_t size)
{
    if (pg_server)
        explain_postgres(fixture, plan, ret, size);
    else
        explain_sqlite(fixture, plan, ret, size);
    for (const char *const *says = pg_server ? plan->postgres : plan->sqlite; *says; says++)
        if (strstr(ret, *says) == NULL)
            fail_msg("%s: not \"%s\" but\n%s", plan->name, *says, ret);
    assert_null(strstr(ret, "Seq Scan"));
    assert_null(strstr(ret, "Sort"));
    assert_null(strstr(ret, "TEMP B-TREE"));
}

TEST_THAT(pages_come_along_an_index)
{
    struct fixture *fixture = *state;
    fill_ledger(fixture, "account:a", 20000);
    fill_ledger(fixture, "account:b", 20000);
    fill_orders(fixture, 20000);
    if (pg_server)
        fixture_sql(fixture, "ANALYZE");
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char plan[4096] = "";
        check_plan(fixture, &plans[i], plan, sizeof plan);
        assert_null(strstr(plan, "SCAN"));
    }
}

static int scans_of_refusals(const char *plan)
{
    int n = 0;
    for (const char *at = plan; (at = strstr(at, "idempotency_refusals")) != NULL; at++)
        n += strncmp(at, "idempotency_refusals'", 21) != 0; /* no text in quotes */
    return n;
}

/* Each entry is read once. */
TEST_THAT(refusals_are_found_by_their_own_index)
{
    struct fixture *fixture = *state;
    fill_answers(fixture, 20000);
    if (pg_server)
        fixture_sql(fixture, "VACUUM ANALYZE");
    for (size_t i = 0; i < sizeof of_refusals / sizeof of_refusals[0]; i++) {
        char plan[4096] = "";
        check_plan(fixture, &of_refusals[i], plan, sizeof plan);
        int scans = 0;
        const char *const *says = pg_server ? of_refusals[i].postgres : of_refusals[i].sqlite;
        for (; *says; says++)
            scans += scans_of_refusals(*says);
        assert_int_equal(scans, scans_of_refusals(plan));
    }
}
