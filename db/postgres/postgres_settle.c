/*
 * Finds the outcome of a COMMIT without an answer. Another connection asks by the transaction's
 * number, and ends the transaction if it still runs.
 *
 * A transaction is "in progress" until the server shows its rows to others, or has undone them.
 * This includes the wait for the disk and the wait for a synchronous standby.
 * pg_terminate_backend() ends the wait for a standby ("the transaction has already committed
 * locally"), and a COMMIT that the server has not read yet. It cannot end the wait for the disk.
 *
 * The number alone does not identify the transaction. If a crash loses the end of the server's log,
 * the server gives the same numbers again. Process ids are given again, too. So a process is ended
 * only if its id and start time are those of the connection that ran the work. If another process
 * has the number, the transaction of the work was lost with the log: it is decided.
 */
#include "postgres.h"

enum { PAUSE_US_MIN = 500, PAUSE_US_MAX = 50000 };

/* Ends the transaction. *ret_decided: another process has its number. */
static db_status end(struct session *session, const db_commit_id *commit, bool *ret_decided)
{
    const struct value values[] = {VALUE_INT(commit->transaction), VALUE_INT(commit->backend),
                                   VALUE_INT(commit->backend_start_us)};
    PGresult *result = NULL;
    db_status status =
        session_ask(session, SQL_END_TRANSACTION, values, VALUE_COUNT(values), &result);
    if (status == DB_OK)
        *ret_decided = cell_int(session, result, 0, 0) > 0;
    PQclear(result);
    return status;
}

/* DB_OK: decided. DB_BUSY: not yet; its process, if there is one, has been told to end. */
static db_status ask(struct pg_store *store, const db_commit_id *commit, db_error *error)
{
    struct session *session;
    PGresult *result = NULL;
    bool decided = false;
    db_status status = pool_take(store, PG_READ_MS, &session, error);
    if (status != DB_OK)
        return status;
    status = session_ask(session, SQL_IS_UNDECIDED, &VALUE_INT(commit->transaction), 1, &result);
    if (status == DB_OK)
        decided = cell_int(session, result, 0, 0) == 0;
    PQclear(result);
    if (status == DB_OK && !decided)
        status = end(session, commit, &decided);
    if (session->trouble.status != DB_OK)
        status = db_fail(error, session->trouble.status, "%s", session->trouble.message);
    else if (!decided)
        status = db_fail(error, DB_BUSY, "PostgreSQL: the transaction does not end");
    pool_give(store, session);
    return status == DB_INVALID ? DB_OK : status; /* a number that the server has not given yet */
}

db_status pg_settle(db *base, const db_commit_id *commit, int64_t wait_ms, db_error *error)
{
    int64_t until_us = db_now_us() + wait_ms * 1000;
    if (commit->transaction == 0)
        return DB_OK;
    for (int pauses = 0;; pauses++) {
        db_status status = ask((struct pg_store *)base, commit, error);
        int64_t left_us = until_us - db_now_us();
        if (status == DB_OK || left_us <= 0)
            return status;
        int64_t pause_us = db_backoff_us(PAUSE_US_MIN, PAUSE_US_MAX, pauses);
        db_sleep_us(pause_us < left_us ? pause_us : left_us);
    }
}
