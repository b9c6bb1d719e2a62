/*
 * What became of a commit that nobody answered: another connection asks by the transaction's
 * number, and ends the transaction if it still runs.
 *
 * A transaction is "in progress" until the server shows its rows to others, or has taken them back;
 * so also while it waits for the disk, or for a synchronous standby. pg_terminate_backend() ends
 * the second wait ("the transaction has already committed locally") and a COMMIT that has not been
 * read yet; it cannot end the first. The number, not the process id, says whose process it is: ids
 * are given again.
 */
#include "postgres.h"

#include <time.h>

enum { PAUSE_US_MIN = 500, PAUSE_US_MAX = 50000 };

/* DB_OK: decided. DB_BUSY: its process has been told to end. */
static db_status ask(struct pg_store *store, int64_t transaction, db_error *error)
{
    const struct value args[] = {VALUE_INT(transaction)};
    struct session *session;
    PGresult *result = NULL;
    int64_t undecided = 0;
    db_status status = pool_take(store, PG_READ_MS, &session, error);
    if (status != DB_OK)
        return status;
    status = session_ask(session, SQL_IS_UNDECIDED, args, VALUE_COUNT(args), &result);
    if (status == DB_OK)
        undecided = cell_int(session, result, 0, 0);
    PQclear(result);
    result = NULL;
    if (status == DB_OK && undecided)
        status = session_ask(session, SQL_END_TRANSACTION, args, VALUE_COUNT(args), &result);
    PQclear(result);
    if (session->trouble.status != DB_OK)
        status = db_fail(error, session->trouble.status, "%s", session->trouble.message);
    else if (undecided)
        status = db_fail(error, DB_BUSY, "PostgreSQL: the transaction does not end");
    pool_give(store, session);
    return status == DB_INVALID ? DB_OK : status; /* of the future: never seen by this server */
}

db_status pg_settle(db *base, const db_doubt *doubt, int64_t wait_ms, db_error *error)
{
    int64_t until_us = db_now_us() + wait_ms * 1000, pause_us = PAUSE_US_MIN;
    if (doubt->transaction == 0)
        return DB_OK;
    for (;;) {
        db_status status = ask((struct pg_store *)base, doubt->transaction, error);
        int64_t left_us = until_us - db_now_us();
        if (status == DB_OK || left_us <= 0)
            return status;
        int64_t sleep_us = pause_us < left_us ? pause_us : left_us;
        nanosleep(&(struct timespec){.tv_nsec = sleep_us * 1000}, NULL);
        pause_us = 2 * pause_us < PAUSE_US_MAX ? 2 * pause_us : PAUSE_US_MAX;
    }
}
