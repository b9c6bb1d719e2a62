/* The SQL that db/README.md gives to accountants: on sound books it finds nothing, and it finds
 * each kind of damage. On both engines. Run at the top of the checkout. */
#include "archive.h"
#include "fixture.h"
#include "old_stores.h"
#include "schema.h"
#include "upkeep.h"

enum { STATEMENTS_MAX = 16, PAGE_MAX = 65536 };

static struct page {
    char text[PAGE_MAX];
    char *checks[STATEMENTS_MAX], *answers[STATEMENTS_MAX], *hashes[STATEMENTS_MAX];
} page;

/* Cuts the statements of a block out of the text. Returns what follows the block. */
static char *take_block(char *at, const char *fence, char *ret[STATEMENTS_MAX])
{
    at = strstr(at, fence);
    assert_non_null(at);
    at += strlen(fence);
    char *end = strstr(at, "```");
    assert_non_null(end);
    *end = '\0';
    int n = 0;
    char *rest = NULL;
    for (char *one = strtok_r(at, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) {
        assert_true(n < STATEMENTS_MAX);
        if (strstr(one, "SELECT") != NULL)
            ret[n++] = one;
    }
    assert_true(n > 0);
    return end + 1;
}

static void read_page(void)
{
    memset(&page, 0, sizeof page);
    FILE *file = fopen("db/README.md", "r");
    assert_non_null(file);
    size_t n = fread(page.text, 1, sizeof page.text - 1, file);
    fclose(file);
    assert_in_range(n, 1, sizeof page.text - 2);
    char *at = strstr(page.text, "## For accountants and operators");
    assert_non_null(at);
    at = take_block(at, "```sql\n", page.checks);
    at = take_block(at, "```psql\n", page.hashes);
    take_block(at, "```sql\n", page.answers);
}

static void run_on(void *fixture, const char *sql)
{
    fixture_sql(fixture, sql);
}

/* Books with every kind of row. */
static int set_up(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    char sql[128];
    db_versions versions;
    db_error error = {0};
    assert_non_null(fixture);
    *fixture = fixture_folder();
    snprintf(sql, sizeof sql, "PRAGMA user_version = 2; PRAGMA application_id = %d",
             SCHEMA_APPLICATION_ID);
    fixture_sql(fixture, pg_server ? postgres_2 : sqlite_2);
    fixture_sql(fixture, pg_server ? "INSERT INTO seckill_schema VALUES (2)" : sql);
    old_store_fill(2, run_on, fixture);
    if (db_migrate(fixture->url, &versions, &error) != DB_OK)
        fail_msg("%s", error.message);
    *state = fixture;
    read_page();
    return 0;
}

static int64_t rows_of(struct fixture *fixture, const char *statement)
{
    char sql[4096];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM (%s\n) AS found", statement);
    return fixture_sql_int(fixture, sql);
}

static int count(char *const statements[STATEMENTS_MAX])
{
    int n = 0;
    while (n < STATEMENTS_MAX && statements[n] != NULL)
        n++;
    return n;
}

TEST_FIXTURE(set_up, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(sound_books_give_no_row)
{
    for (int i = 0; page.checks[i] != NULL; i++)
        assert_int_equal(0, rows_of(*state, page.checks[i]));
    for (int i = 0; pg_server && page.hashes[i] != NULL; i++)
        assert_int_equal(0, rows_of(*state, page.hashes[i]));
}

/* All months but what holds the newest rows. */
TEST_THAT(they_give_no_row_after_an_archive)
{
    struct fixture *fixture = *state;
    const db_options options = {.url = fixture->url};
    char file[128];
    archive_moved moved;
    db_error error = {.message = ""};
    snprintf(file, sizeof file, "%s/archive.db", fixture->folder);
    if (archive_move(&options, INT64_MAX, file, &moved, &error) != DB_OK)
        fail_msg("%s", error.message);
    assert_true(moved.rows > 5);
    sound_books_give_no_row(state);
    fixture_sql(fixture, "UPDATE carried SET total = total + 1, restocked = restocked + 1");
    assert_true(rows_of(fixture, page.checks[0]) > 0 && rows_of(fixture, page.checks[2]) > 0);
}

#define RESTOCK(version, reason)                                                                   \
    "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after, fence,"    \
    " guard, instance, kind, reason, at_us) VALUES ('item:1', 2, " version ", 'k-" version         \
    "', 1, 0, 1, 0, '', 'x', 'restock', '" reason "', 1)"

TEST_THAT(answers_are_given)
{
    static const int rows[] = {4, 3, 2, 2};
    fixture_sql(*state, RESTOCK("8", "delivery"));
    fixture_sql(*state, RESTOCK("9", "delivery"));
    fixture_sql(*state, RESTOCK("10", "loss"));
    assert_int_equal(4, count(page.answers));
    for (int i = 0; page.answers[i] != NULL; i++)
        assert_int_equal(rows[i], rows_of(*state, page.answers[i]));
}

#define FORGED(resource, epoch, version, delta, counterpart)                                       \
    "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after, fence,"    \
    " guard, instance, kind, counterpart, at_us) VALUES ('" resource "', " epoch ", " version      \
    ", 'forged', " delta ", 0, " delta ", 0, '', 'x', 'change', '" counterpart "', 1)"

/* One for each statement of the page, in their order. */
static const char *const damages[] = {
    "UPDATE items SET stock = stock + 1 WHERE id = '1'",
    "UPDATE accounts SET balance = balance - 1 WHERE id = 'u2'",
    RESTOCK("8", "delivery"), /* without the pieces */
    FORGED("shop:cash", "0", "0", "5", "account:u1"),
    FORGED("shop:cash", "0", "0", "5", "account:u1"),
    "UPDATE orders SET state = 1 WHERE id = 'o5'",
    FORGED("item:1", "2", "8", "0", ""),
};
enum { DAMAGES = sizeof damages / sizeof *damages };

TEST_THAT(each_kind_of_damage_is_found)
{
    assert_int_equal(DAMAGES, count(page.checks));
    for (int i = 0; i < DAMAGES; i++) {
        fixture_remove(*state);
        free(*state);
        set_up(state);
        fixture_sql(*state, damages[i]);
        assert_int_equal(1, rows_of(*state, page.checks[i]));
    }
}

ON_POSTGRES;

/* The page gives no such statement for SQLite. */
TEST_THAT(a_row_that_was_edited_is_found_by_its_hash)
{
    fixture_sql(*state, "ALTER TABLE ledger DISABLE TRIGGER ALL");
    fixture_sql(*state, "UPDATE ledger SET at_us = at_us + 1 WHERE id = 4");
    assert_int_equal(1, rows_of(*state, page.hashes[0]));
}
