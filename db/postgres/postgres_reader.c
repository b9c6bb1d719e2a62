/* Readers: one connection for each read, or one for a whole snapshot. */
#include "postgres.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct pg_reader {
    db_reader base;
    struct pg_store *store;
    struct session *session; /* of the snapshot, from its first read on */
    bool in_snapshot;
};

db_status pg_reader_open(db *base, db_reader **ret, db_error *error)
{
    struct pg_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return db_fail(error, DB_FAILED, "out of memory");
    reader->base.engine = &db_engine_postgres;
    reader->store = (struct pg_store *)base;
    *ret = &reader->base;
    return DB_OK;
}

/* BEGIN is sent with the first read. */
db_status pg_reader_begin(db_reader *base)
{
    struct pg_reader *reader = (struct pg_reader *)base;
    assert(!reader->in_snapshot);
    reader->in_snapshot = true;
    return DB_OK;
}

void pg_reader_end(db_reader *base)
{
    struct pg_reader *reader = (struct pg_reader *)base;
    assert(reader->in_snapshot);
    reader->in_snapshot = false;
    if (!reader->session)
        return;
    session_send_end(reader->session, SQL_END_READ);
    pool_give(reader->store, reader->session);
    reader->session = NULL;
}

void pg_reader_close(db_reader *base)
{
    if (((struct pg_reader *)base)->in_snapshot)
        pg_reader_end(base);
    free(base);
}

/* Gives the connection for a read: the snapshot's, or one from the pool. */
static db_status take(struct pg_reader *reader, struct session **ret, db_error *error)
{
    db_status status = DB_OK;
    if (!reader->session) {
        status = pool_take(reader->store, PG_READ_MS, &reader->session, error);
        if (status == DB_OK && reader->in_snapshot)
            session_queue(reader->session, SQL_BEGIN_READ, NULL, 0, false);
    }
    *ret = reader->session;
    return status;
}

/* A snapshot keeps its connection, also after trouble: later reads must see no other snapshot. */
static db_status give(struct pg_reader *reader, db_status status)
{
    if (reader->in_snapshot || !reader->session)
        return status;
    pool_give(reader->store, reader->session);
    reader->session = NULL;
    return status;
}

#define READ(call)                                                                                 \
    struct pg_reader *reader = (struct pg_reader *)base;                                           \
    struct session *session;                                                                       \
    db_status status = take(reader, &session, NULL);                                               \
    return give(reader, status == DB_OK ? (call) : status)

db_status pg_read_row(db_reader *base, enum db_table table, const char *key, void *ret)
{
    READ(session_read_row(session, table, key, false, ret));
}

db_status pg_find_answers(db_reader *base, const char *const *keys, size_t n, bool *ret_found)
{
    READ(session_find_answers(session, keys, n, ret_found));
}

db_status pg_read_bought(db_reader *base, const db_item *item, const char *const *user_ids,
                         size_t n, int64_t *ret_quantities)
{
    READ(session_read_bought(session, item, user_ids, n, ret_quantities));
}

db_status pg_read_sold(db_reader *base, const db_item *item, int64_t *ret_quantity)
{
    READ(session_read_sold(session, item, ret_quantity));
}

db_status pg_read_expired(db_reader *base, int64_t now_us, const db_expired *after, db_expired *ret,
                          size_t max, size_t *ret_n)
{
    READ(session_read_expired(session, now_us, after, ret, max, ret_n));
}

db_status pg_read_bite(db_reader *base, const char *after, int64_t before_us, db_bite *ret)
{
    READ(session_read_bite(session, after, before_us, ret));
}

db_status pg_read_refusals(db_reader *base, int64_t keep, db_refusals *ret)
{
    READ(session_read_refusals(session, keep, ret));
}

db_status pg_read_list(db_reader *base, enum db_list list, const struct value *args, size_t n,
                       int (*each)(void *arg, const void *row), void *arg)
{
    READ(session_read_list(session, list, args, n, each, arg));
}

db_status pg_feed_transaction(db_reader *base, int64_t id, int64_t *ret)
{
    READ(session_read_number(session, SQL_FEED_TRANSACTION, &VALUE_INT(id), 1, ret));
}

db_status pg_feed_end(db_reader *base, db_feed_place *ret)
{
    ret->id = INT64_MAX; /* all rows of the transactions below the horizon */
    READ(session_read_number(session, SQL_FEED_END, NULL, 0, &ret->transaction));
}

static db_status read_waits(struct session *session, bool *ret)
{
    int64_t newest = 0;
    db_status status = session_read_number(session, SQL_FEED_NEWEST, NULL, 0, &newest);
    *ret = newest == 1;
    return status == DB_OK && newest == 2 ? DB_RENUMBERED : status;
}

db_status pg_feed_waits(db_reader *base, bool *ret)
{
    READ(read_waits(session, ret));
}

static db_status read_blocker(struct session *session, char ret[DB_MESSAGE_MAX])
{
    PGresult *result = NULL;
    const db_status status = session_ask(session, SQL_FEED_BLOCKER, NULL, 0, &result);
    const char *text = status == DB_OK ? PQgetvalue(result, 0, 0) : NULL;
    snprintf(ret, DB_MESSAGE_MAX, "%.200s", text != NULL ? text : "");
    PQclear(result);
    return status;
}

db_status pg_feed_blocker(db_reader *base, char ret[DB_MESSAGE_MAX])
{
    READ(read_blocker(session, ret));
}

/* A cursor needs a transaction. */
db_status pg_read_money(db_reader *base, int (*each)(void *arg, const db_ledger_row *row),
                        void *arg, db_error *error)
{
    struct pg_reader *reader = (struct pg_reader *)base;
    struct session *session;
    bool own_snapshot = !reader->in_snapshot;
    if (own_snapshot)
        pg_reader_begin(base);
    db_status status = take(reader, &session, error);
    if (status == DB_OK) {
        status = session_read_money(session, base, each, arg);
        if (status != DB_OK)
            db_fail(error, status, "%s", session->trouble.message);
    }
    if (own_snapshot)
        pg_reader_end(base);
    return status;
}

db_status pg_read_unpaid(db_reader *base, int64_t *ret)
{
    READ(session_read_unpaid(session, base, ret));
}

db_status pg_audit(db_reader *base, const char *resource,
                   int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error)
{
    struct pg_reader *reader = (struct pg_reader *)base;
    struct session *session;
    bool own_snapshot = !reader->in_snapshot;
    if (own_snapshot)
        pg_reader_begin(base);
    db_status status = take(reader, &session, error);
    if (status == DB_OK) {
        status = session_audit(session, base, resource, each, arg);
        if (status != DB_OK && status != DB_NOT_FOUND)
            db_fail(error, status, "%s", session->trouble.message);
    }
    if (own_snapshot)
        pg_reader_end(base);
    return status;
}

/* -- inside a transaction --------------------------------------------------------------------- */

db_status after_writes(const struct session *session, db_status status)
{
    return session->missed ? DB_CONFLICT : status;
}

db_status pg_tx_read_row(db_tx *tx, enum db_table table, const char *id, bool for_update, void *ret)
{
    struct session *session;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_read_row(session, table, id, for_update, ret);
    return after_writes(session, status);
}

db_status pg_tx_read_bought(db_tx *tx, const db_item *item, const char *user_id,
                            int64_t *ret_quantity)
{
    struct session *session;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_read_bought(session, item, &user_id, 1, ret_quantity);
    return after_writes(session, status);
}
