/*
 * Write transactions, on the caller's thread.
 *
 * What is known when a transaction fails:
 *   - Before COMMIT is sent: the server rolls it back, also when the connection breaks.
 *   - After COMMIT is sent, an error on a connection that goes on: the server has rolled it back.
 *   - After COMMIT is sent, a broken connection, or an error that ends it: the outcome is unknown.
 *
 * The server's number of the transaction is read before COMMIT, with the last answers of the work.
 * With it another connection can ask for the outcome (postgres_settle.c).
 */
#include "postgres.h"

#include <sys/random.h>

enum { BACK_OFF_US_MIN = 200, BACK_OFF_US_MAX = 20000 };

/* -- inside ----------------------------------------------------------------------------------- */

static db_status begin(db_tx *base, enum postgres_sql how, struct session **ret)
{
    struct pg_tx *tx = (struct pg_tx *)base;
    if (!tx->begun)
        session_queue(tx->session, how, NULL, 0, false);
    tx->begun = true;
    *ret = tx->session;
    return tx->session->trouble.status;
}

db_status tx_session(db_tx *tx, struct session **ret)
{
    return begin(tx, SQL_BEGIN_WRITE, ret);
}

db_status tx_session_to_hold(db_tx *tx, struct session **ret)
{
    return begin(tx, SQL_BEGIN_HOLD, ret);
}

db_status tx_write(db_tx *base, enum postgres_sql sql, const struct value *args, size_t n,
                   bool expects_one)
{
    struct session *session;
    db_status status = tx_session(base, &session);
    if (status != DB_OK)
        return status;
    session_queue(session, sql, args, n, expects_one);
    if (!((struct pg_tx *)base)->one_by_one)
        return session->trouble.status;
    status = session_sync(session);
    if (status == DB_OK && session->missed) {
        session->missed = false;
        status = DB_REFUSED;
    }
    return status;
}

/* -- around ----------------------------------------------------------------------------------- */

static void roll_back(struct pg_store *store, struct pg_tx *tx)
{
    db_count(&store->counters.rollbacks, 1);
    session_send_end(tx->session, SQL_ROLLBACK);
}

static db_status commit(struct pg_store *store, struct session *session)
{
    int64_t start_us = db_now_us();
    session_queue(session, SQL_COMMIT, NULL, 0, false);
    db_status status = session_sync(session);
    db_count(&store->counters.commit_us_total, (uint64_t)(db_now_us() - start_us));
    if (status == DB_OK)
        db_count(&store->counters.commits, 1);
    else if (session->lost)
        status = session->trouble.status = DB_UNKNOWN;
    return status;
}

/* Reads all answers, and what db_settle() needs. The transaction's number is 0 if it has written
 * nothing. */
static void sync_with_number(struct session *session, db_commit_id *ret)
{
    PGresult *result = NULL;
    ret->backend = session->backend;
    ret->backend_start_us = session->backend_start_us;
    if (session_ask(session, SQL_TRANSACTION, NULL, 0, &result) == DB_OK)
        ret->transaction = cell_int(session, result, 0, 0);
    PQclear(result);
}

/* Runs the work once. *ret_missed: a write was refused; run the work again one by one. */
static db_status run_once(struct pg_store *store, struct session *session, db_job *job,
                          bool one_by_one, bool *ret_missed)
{
    struct pg_tx tx = {.base = {&db_engine_postgres}, .session = session, .one_by_one = one_by_one};
    session_clear(session);
    db_status status = job->work(&tx.base, job->arg);
    *ret_missed = false;
    if (!tx.begun)
        return status;
    if (status == DB_OK)
        sync_with_number(session, &job->commit_id);
    *ret_missed = session->missed &&
                  (session->trouble.status == DB_OK || session->trouble.status == DB_CONFLICT);
    if (session->trouble.status != DB_OK)
        status = session->trouble.status;
    if (status == DB_OK && !*ret_missed)
        return commit(store, session);
    roll_back(store, &tx);
    return status;
}

/* Random, so that two works that collided do not collide again. */
static void back_off(int rerun)
{
    int64_t most_us = db_backoff_us(BACK_OFF_US_MIN, BACK_OFF_US_MAX, rerun);
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0)
        random = (uint32_t)db_now_us();
    db_sleep_us(BACK_OFF_US_MIN + (int64_t)random % most_us);
}

static db_status run_job(struct pg_store *store, db_job *job)
{
    struct session *session;
    int64_t answer_ms = store->options.busy_ms + PG_READ_MS + PG_ANSWER_SLACK_MS;
    db_status status = pool_take(store, answer_ms, &session, job->error);
    if (status != DB_OK)
        return status;
    bool one_by_one = false, missed;
    for (int reruns = 0;;) {
        status = run_once(store, session, job, one_by_one, &missed);
        if (missed) {
            one_by_one = true;
        } else if (session->again && !session->lost && reruns < PG_RERUNS_MAX) {
            db_count(&store->counters.reruns, 1);
            back_off(reruns++);
        } else {
            break;
        }
    }
    db_count(&store->counters.runs, 1);
    if (status != DB_OK)
        db_fail(job->error, status, "%s",
                session->trouble.status != DB_OK ? session->trouble.message
                                                 : db_status_text(status));
    pool_give(store, session);
    return status;
}

void pg_run(db *base, db_job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        jobs[i].status = run_job((struct pg_store *)base, &jobs[i]);
}
