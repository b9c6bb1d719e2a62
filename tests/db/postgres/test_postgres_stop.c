/* The server does not go on with the statement of an audit that its caller has ended. */
#include "damage.h"
#include "process.h"

enum { WAIT_MS = 20000 }; /* less than the statement_timeout of an audit */

static int backends_waiting(struct fixture *fixture)
{
    return (int)fixture_sql_int(fixture,
                                "SELECT count(*) FROM pg_stat_activity WHERE application_name ="
                                " 'seckilld' AND wait_event_type = 'Lock'");
}

static bool nobody_waits(void *fixture)
{
    return backends_waiting(fixture) == 0;
}

/* It waits until its statement waits at the server. */
static bool stop_when_waiting(void *arg)
{
    return backends_waiting(arg) > 0;
}

ON_POSTGRES;

/* The audit's statement waits for a table that stays locked. Only the end of its connection can end
 * it: the store's limit for locks is an hour. */
TEST_THAT_WITH(the_server_ends_what_nobody_waits_for, fixture_setup, fixture_teardown)
{
    struct fixture *fixture = *state;
    db_audit_row row;
    fixture_close(fixture);
    fixture_open(fixture, &(db_options){.busy_ms = DB_BUSY_MS_MAX});
    fixture_account(fixture, "a", 100);
    PGconn *other = pg_connect(fixture->url);
    PQclear(PQexec(other, "BEGIN"));
    PGresult *locked = PQexec(other, "LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE");
    assert_int_equal(PGRES_COMMAND_OK, PQresultStatus(locked));
    PQclear(locked);

    db_reader_stop_when(fixture->reader, stop_when_waiting, fixture);
    assert_int_equal(DB_INTERRUPTED, db_audit(fixture->reader, NULL, keep_audit_row, &row, NULL));
    assert_true(wait_until(nobody_waits, fixture, WAIT_MS));
    PQfinish(other);

    db_reader_stop_when(fixture->reader, NULL, NULL);
    assert_true(fixture_audit(fixture, "account:a").ok);
}
