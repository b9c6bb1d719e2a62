/* The feed on PostgreSQL: a row waits for every transaction that began to write before its own, so
 * none appears later in front of it. */
#include "fixture.h"

#define ROW                                                                                        \
    "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after, fence,"    \
    " guard, instance, kind, at_us) VALUES ('account:%s', 1, 1, 't', 0, 0, 0, 0, '', '',"          \
    " 'change', 0)"

struct page {
    size_t n;
    char names[4][DB_RESOURCE_MAX + 1];
};

static int note(void *arg, const db_ledger_row *row)
{
    struct page *page = arg;
    assert_in_range(page->n, 0, 3);
    strcpy(page->names[page->n++], row->resource);
    return 0;
}

static struct page read_page(struct fixture *fixture, db_feed_place *place, bool *ret_more)
{
    struct page page = {0};
    assert_int_equal(DB_OK,
                     db_read_ledger(fixture->reader, place, 4, note, &page, place, ret_more));
    return page;
}

static void run(PGconn *handle, const char *format, const char *name)
{
    char sql[512];
    snprintf(sql, sizeof sql, format, name);
    PGresult *result = PQexec(handle, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s", PQerrorMessage(handle));
    PQclear(result);
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_POSTGRES;

TEST_THAT(a_row_waits_for_transactions_that_began_before)
{
    struct fixture *fixture = *state;
    PGconn *early = pg_connect(fixture->url), *late = pg_connect(fixture->url);
    db_feed_place place = {0};
    bool more = false;
    run(early, "BEGIN;" ROW, "early");
    run(late, ROW, "late");
    assert_int_equal(read_page(fixture, &place, &more).n, 0);
    assert_int_equal(place.id, 0);
    assert_true(more); /* there is one, and it has to wait */
    run(early, ROW, "second");
    run(early, "COMMIT", "");
    const struct page page = read_page(fixture, &place, &more);
    assert_int_equal(page.n, 3);
    assert_string_equal(page.names[0], "account:early");
    assert_string_equal(page.names[1], "account:second"); /* its id is above that of late */
    assert_string_equal(page.names[2], "account:late");
    assert_false(more);
    PQfinish(early);
    PQfinish(late);
}

TEST_THAT(a_row_that_is_taken_back_holds_nothing_up)
{
    struct fixture *fixture = *state;
    PGconn *early = pg_connect(fixture->url), *late = pg_connect(fixture->url);
    db_feed_place place = {0}, end = {0};
    bool more = false;
    run(early, "BEGIN;" ROW, "early");
    run(late, ROW, "late");
    assert_int_equal(DB_OK, db_feed_end(fixture->reader, &end));
    run(early, "ROLLBACK", "");
    assert_int_equal(read_page(fixture, &place, &more).n, 1);
    assert_false(more);
    assert_int_equal(read_page(fixture, &end, &more).n, 1); /* it was not in the feed then */
    PQfinish(early);
    PQfinish(late);
}

/* A dump that was restored to another server. */
TEST_THAT(a_ledger_of_another_server_has_no_feed)
{
    struct fixture *fixture = *state;
    PGconn *handle = pg_connect(fixture->url);
    struct page page = {0};
    db_feed_place place = {0};
    bool more = false;
    run(handle, ROW, "old");
    run(handle,
        "ALTER TABLE ledger DISABLE TRIGGER ledger_keeps_values;"
        "UPDATE ledger SET txid = '4294967296'",
        "");
    run(handle, ROW, "new");
    assert_int_equal(DB_RENUMBERED,
                     db_read_ledger(fixture->reader, &place, 4, note, &page, &place, &more));
    assert_int_equal(page.n, 0);
    PQfinish(handle);
}
