/* A store of version 3 gets the tables of the archive. Its ledger is not touched. On both engines.
 */
#include "fixture.h"
#include "schema.h"
#include "schema_text.h"
#include "upkeep.h"

static const char sqlite_3[] =
    "DROP TRIGGER ledger_keeps_ids; DROP TABLE archives; DROP TABLE carried;"
    "DROP TABLE carried_orders;"
    "CREATE TRIGGER ledger_keeps_ids BEFORE INSERT ON ledger"
    " WHEN NEW.id > 0 AND EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id) BEGIN"
    " SELECT RAISE(ROLLBACK, 'the ledger is append-only: book a correction instead'); END;"
    "PRAGMA user_version = 3";
static const char postgres_3[] =
    "DROP FUNCTION ledger_moves() CASCADE; DROP TABLE archives; DROP TABLE carried;"
    "DROP TABLE carried_orders;"
    "CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger"
    " FOR EACH ROW EXECUTE FUNCTION ledger_refuses();"
    "UPDATE seckill_schema SET version = 3";

/* A store of version 3 with rows. Returns how a new one is described. */
static char *make_version_3(struct fixture *fixture)
{
    fixture_item(fixture, "1", 10);
    fixture_account(fixture, "a", 100);
    fixture_account(fixture, "a", 90);
    fixture_close(fixture);
    char *text = schema_text(fixture);
    fixture_sql(fixture, pg_server ? postgres_3 : sqlite_3);
    return text;
}

static void migrate(struct fixture *fixture)
{
    db_versions versions;
    db_error error = {.message = ""};
    if (db_migrate(fixture->url, &versions, &error) != DB_OK)
        fail_msg("%s", error.message);
    assert_int_equal(3, versions.from);
    fixture_open(fixture, NULL);
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(its_tables_are_those_of_a_new_store)
{
    char *fresh = make_version_3(*state);
    db *store = NULL;
    db_error error = {.message = ""};
    const db_options options = {.url = ((struct fixture *)*state)->url};
    assert_int_equal(DB_INVALID, db_open(&options, &store, &error));
    assert_non_null(strstr(error.message, "seckilld migrate"));
    migrate(*state);
    char *migrated = schema_text(*state);
    assert_string_equal(fresh, migrated);
    free(fresh);
    free(migrated);
}

TEST_THAT(its_ledger_is_as_it_was)
{
    struct fixture *fixture = *state;
    free(make_version_3(fixture));
    const int64_t rows = fixture_sql_int(fixture, "SELECT count(*) FROM ledger");
    migrate(fixture);
    assert_int_equal(rows, fixture_sql_int(fixture, "SELECT count(*) FROM ledger"));
    assert_true(fixture_audit(fixture, "account:a").ok);
    fixture_account(fixture, "a", 80);
    assert_true(fixture_audit(fixture, "account:a").ok);
}

/* An edit is not sealed anew. */
TEST_THAT(damage_stays_to_be_seen)
{
    struct fixture *fixture = *state;
    free(make_version_3(fixture));
    if (pg_server) {
        fixture_sql(fixture, "ALTER TABLE ledger DISABLE TRIGGER ALL;"
                             "UPDATE ledger SET reason = 'x' WHERE resource = 'item:1';"
                             "ALTER TABLE ledger ENABLE TRIGGER ALL");
    } else {
        fixture_sql(fixture, "DROP TRIGGER ledger_keeps_values;"
                             "UPDATE ledger SET reason = 'x' WHERE resource = 'item:1'");
    }
    migrate(fixture);
    assert_int_equal(1, fixture_audit(fixture, "item:1").unchained);
}
