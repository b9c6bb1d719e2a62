/*
 * The seam between db.h and its engines: one table of functions per engine, one per URL scheme.
 *
 * db_read.c and db_write.c check every argument (text ends within its array, ids are not empty,
 * numbers are in range) and then call the engine's function of the same name; an engine relies on
 * it. The engine's structs begin with the base structs below. What each function must do stands in
 * db.h; how the audit judges ledger rows is common to all engines and stands in audit.h.
 */
#ifndef DB_ENGINE_H
#define DB_ENGINE_H

#include "db.h"

#include <stdatomic.h>

typedef struct db_engine {
    const char *scheme; /* of the URL, without the colon */

    /* address: what follows "scheme:". Options have their defaults filled in. */
    db_status (*open)(const char *address, const db_options *options, db **ret, db_error *error);
    void (*close)(db *db);
    db_status (*ping)(db *db);
    void (*stats)(const db *db, db_stats *ret);

    db_status (*reader_open)(db *db, db_reader **ret, db_error *error);
    void (*reader_close)(db_reader *reader);
    db_status (*reader_begin)(db_reader *reader);
    void (*reader_end)(db_reader *reader);
    db_status (*read_item)(db_reader *reader, const char *id, db_item *ret);
    db_status (*read_account)(db_reader *reader, const char *id, db_account *ret);
    db_status (*read_order)(db_reader *reader, const char *id, db_order *ret);
    db_status (*read_answer)(db_reader *reader, const char *key, db_answer *ret);
    /* Sets those that are true. */
    db_status (*find_answers)(db_reader *reader, const char *const *keys, size_t n,
                              bool *ret_found);
    db_status (*read_bought)(db_reader *reader, const db_item *item, const char *const *user_ids,
                             size_t n, int64_t *ret_quantities);
    db_status (*read_sold)(db_reader *reader, const db_item *item, int64_t *ret_quantity);
    db_status (*read_expired)(db_reader *reader, int64_t now_us, const db_expired *after,
                              db_expired *ret, size_t max, size_t *ret_n);
    db_status (*read_ledger)(db_reader *reader, int64_t after, size_t max,
                             int (*each)(void *arg, const db_ledger_row *row), void *arg,
                             int64_t *ret_last);
    db_status (*audit)(db_reader *reader, const char *resource,
                       int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error);

    bool commits_in_groups;
    void (*run)(db *db, db_job *jobs, size_t n);
    /* NULL: a commit that succeeds decides all before it. */
    db_status (*settle)(db *db, const db_doubt *doubt, int64_t wait_ms, db_error *error);
    db_status (*tx_read_item)(db_tx *tx, const char *id, bool for_update, db_item *ret);
    db_status (*tx_read_account)(db_tx *tx, const char *id, bool for_update, db_account *ret);
    db_status (*tx_read_order)(db_tx *tx, const char *id, bool for_update, db_order *ret);
    db_status (*tx_read_bought)(db_tx *tx, const db_item *item, const char *user_id,
                                int64_t *ret_quantity);
    db_status (*tx_put_item)(db_tx *tx, const db_item *row, const db_put *how);
    db_status (*tx_put_account)(db_tx *tx, const db_account *row, const db_put *how);
    db_status (*tx_put_order)(db_tx *tx, const db_order *row, const db_put *how);
    db_status (*tx_add_item)(db_tx *tx, db_item *row, int64_t delta);
    db_status (*tx_add_account)(db_tx *tx, db_account *row, int64_t delta);
    db_status (*tx_move_order)(db_tx *tx, db_order *row, db_order_state from, db_order_state to);
    db_status (*tx_insert_order)(db_tx *tx, const db_order *row);
    db_status (*tx_append_ledger)(db_tx *tx, const db_ledger_row *row);
    db_status (*tx_insert_answer)(db_tx *tx, const db_answer *row);
    db_status (*tx_reset_item)(db_tx *tx, db_item *row, const char *guard, const char *instance);
    db_status (*tx_reset_account)(db_tx *tx, db_account *row, const char *guard,
                                  const char *instance);
    db_status (*tx_put_task)(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                             int64_t done);
    db_status (*tx_next_fence)(db_tx *tx, const char *resource, int64_t seen, int64_t *ret);
} db_engine;

struct db {
    const db_engine *engine;
    atomic_uint failures; /* writes that met a full or broken disk, a standby, nobody */
    atomic_uint proven;   /* as many of them when db_ping() has last written: it works again */
    atomic_uint room_failures, room_proven; /* those that a full or broken disk may have caused */
};
struct db_reader {
    const db_engine *engine;
};
struct db_tx {
    const db_engine *engine;
};

extern const db_engine db_engine_sqlite;
extern const db_engine db_engine_postgres;

/* Fills *error (may be NULL) and returns status. */
db_status db_fail(db_error *error, db_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends the ledger row of a reset that has given a row this version and epoch. */
db_status db_book_reset(db_tx *tx, const char *kind, const char *id, int64_t value, int64_t version,
                        int64_t epoch, const char *guard, const char *instance);

/* Text that does not fit its array, empty where a name is needed: refused, never truncated. */
bool db_name_ok(const char *name, size_t max);
bool db_text_ok(const char *text, size_t max);

/* Of a stored answer; 0: none that anybody can have stored through db.h. */
static inline int32_t http_status_of(int64_t stored)
{
    return stored >= 100 && stored <= 599 ? (int32_t)stored : 0;
}

#endif
