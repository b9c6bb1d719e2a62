#include "sqlite.h"

#include <assert.h>
#include <stdlib.h>

/* In WAL mode a reader must not be able to write or checkpoint. On a shared file it may have to
 * roll back the commit of a killed process. So it can write there, but its statements cannot. */
db_status conn_open_reading(struct sqlite_store *store, struct conn *conn, db_error *error)
{
    bool shared = store->options.shared_file;
    db_status status =
        conn_open(conn, store->path, shared ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY,
                  shared ? commit_marking_vfs() : NULL, store->options.busy_ms,
                  &store->counters.busy_retries, error);
    if (status != DB_OK)
        return status;
    if (conn_exec(conn, "PRAGMA query_only = ON; PRAGMA cache_size = %d",
                  -SQLITE_READER_CACHE_KB) != DB_OK)
        status = db_fail(error, conn->trouble.status, "%s", conn->trouble.message);
    else
        status = conn_prepare(conn, CONN_READER, error);
    if (status != DB_OK)
        conn_close(conn);
    return status;
}

db_status sqlite_reader_open(db *base, db_reader **ret, db_error *error)
{
    struct sqlite_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return db_fail(error, DB_FAILED, "out of memory");
    reader->base.engine = &db_engine_sqlite;
    reader->store = (struct sqlite_store *)base;
    db_status status = conn_open_reading(reader->store, &reader->conn, error);
    if (status != DB_OK) {
        free(reader);
        return status;
    }
    *ret = &reader->base;
    return DB_OK;
}

/* Returns the reader's connection, its last error cleared. */
static struct conn *conn_of(db_reader *base)
{
    struct conn *conn = &((struct sqlite_reader *)base)->conn;
    conn_clear(conn);
    return conn;
}

db_status sqlite_reader_begin(db_reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    assert(!reader->in_snapshot);
    db_status status = conn_run_plain(conn_of(base), SQL_BEGIN_READ);
    reader->in_snapshot = status == DB_OK;
    return status;
}

void sqlite_reader_end(db_reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    assert(reader->in_snapshot);
    /* An error may have ended the transaction already. */
    if (!sqlite3_get_autocommit(reader->conn.handle))
        conn_run_plain(conn_of(base), SQL_COMMIT);
    reader->in_snapshot = false;
}

void sqlite_reader_close(db_reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    if (reader->in_snapshot)
        sqlite_reader_end(base);
    conn_close(&reader->conn);
    free(reader);
}

db_status sqlite_read_row(db_reader *reader, enum db_table table, const char *key, void *ret)
{
    return conn_read_row(conn_of(reader), table, key, ret);
}

db_status sqlite_find_answers(db_reader *reader, const char *const *keys, size_t n, bool *ret_found)
{
    return conn_find_answers(conn_of(reader), keys, n, ret_found);
}

db_status sqlite_read_bought(db_reader *reader, const db_item *item, const char *const *user_ids,
                             size_t n, int64_t *ret_quantities)
{
    struct conn *conn = conn_of(reader);
    db_status status = DB_OK;
    for (size_t i = 0; i < n && status == DB_OK; i++)
        status = conn_read_bought(conn, item, user_ids[i], &ret_quantities[i]);
    return status;
}

db_status sqlite_read_sold(db_reader *reader, const db_item *item, int64_t *ret_quantity)
{
    return conn_read_sold(conn_of(reader), item, ret_quantity);
}

db_status sqlite_read_expired(db_reader *reader, int64_t now_us, const db_expired *after,
                              db_expired *ret, size_t max, size_t *ret_n)
{
    return conn_read_expired(conn_of(reader), now_us, after, ret, max, ret_n);
}

db_status sqlite_read_bite(db_reader *reader, const char *after, int64_t before_us, db_bite *ret)
{
    return conn_read_bite(conn_of(reader), after, before_us, ret);
}

db_status sqlite_read_refusals(db_reader *reader, int64_t keep, db_refusals *ret)
{
    return conn_read_refusals(conn_of(reader), keep, ret);
}

db_status sqlite_read_list(db_reader *reader, enum db_list list, const struct value *args, size_t n,
                           int (*each)(void *arg, const void *row), void *arg)
{
    return conn_read_list(conn_of(reader), list, args, n, each, arg);
}

db_status sqlite_feed_end(db_reader *reader, db_feed_place *ret)
{
    return conn_feed_end(conn_of(reader), ret);
}

/* SQLite asks while a statement runs; a value other than 0 ends it. */
static int is_stopped(void *arg)
{
    const db_reader *base = arg;
    return base->stop(base->stop_arg);
}

static void ask_whether_to_stop(db_reader *base, bool ask)
{
    enum { STEPS = 10000 }; /* of SQLite's machine, about a millisecond */
    sqlite3 *handle = ((struct sqlite_reader *)base)->conn.handle;
    sqlite3_progress_handler(handle, STEPS, ask && base->stop ? is_stopped : NULL, base);
}

db_status sqlite_read_money(db_reader *base, int (*each)(void *arg, const db_ledger_row *row),
                            void *arg, db_error *error)
{
    ask_whether_to_stop(base, true);
    db_status status = conn_read_money(conn_of(base), each, arg);
    ask_whether_to_stop(base, false);
    return status == DB_OK
               ? DB_OK
               : db_fail(error, status, "%s", ((struct sqlite_reader *)base)->conn.trouble.message);
}

db_status sqlite_read_unpaid(db_reader *base, int64_t *ret)
{
    ask_whether_to_stop(base, true);
    db_status status = conn_read_unpaid(conn_of(base), ret);
    ask_whether_to_stop(base, false);
    return status;
}

db_status sqlite_audit(db_reader *base, const char *resource,
                       int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    bool own_snapshot = !reader->in_snapshot;
    db_status status = own_snapshot ? sqlite_reader_begin(base) : DB_OK;
    ask_whether_to_stop(base, true);
    if (status == DB_OK)
        status = conn_audit(conn_of(base), resource, each, arg);
    ask_whether_to_stop(base, false);
    if (status != DB_OK && status != DB_NOT_FOUND)
        db_fail(error, status, "%s", reader->conn.trouble.message);
    if (own_snapshot && reader->in_snapshot)
        sqlite_reader_end(base);
    return status;
}

/* -- inside a transaction: it has the only write lock, so for_update adds nothing ------------- */

static struct conn *conn_of_tx(db_tx *tx)
{
    return ((struct sqlite_tx *)tx)->conn;
}

db_status sqlite_tx_read_row(db_tx *tx, enum db_table table, const char *id, bool for_update,
                             void *ret)
{
    (void)for_update;
    db_status status = table == TABLE_ORDERS ? tx_insert_new_rows(tx) : DB_OK;
    return status == DB_OK ? conn_read_row(conn_of_tx(tx), table, id, ret) : status;
}

db_status sqlite_tx_read_bought(db_tx *tx, const db_item *item, const char *user_id,
                                int64_t *ret_quantity)
{
    db_status status = tx_insert_new_rows(tx);
    return status == DB_OK ? conn_read_bought(conn_of_tx(tx), item, user_id, ret_quantity) : status;
}
