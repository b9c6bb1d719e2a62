/*
 * For the tests of the store: a real file in a folder, or a database of a real server, and minimal
 * business operations: a reset, and one accepted change with its ledger row.
 */
#ifndef TESTS_DB_FIXTURE_H
#define TESTS_DB_FIXTURE_H

#include "db_audit.h"
#include "db.h"
#include "on_postgres.h"

#include <dirent.h>
#include <sqlite3.h>
#include <unistd.h>

struct fixture {
    char folder[64];
    char file[80];
    char url[96];
    db *store;
    db_reader *reader;
};

static inline void fixture_open(struct fixture *fixture, const db_options *options)
{
    db_options filled = options ? *options : (db_options){0};
    db_error error = {0};
    filled.url = fixture->url;
    if (db_open(&filled, &fixture->store, &error) != DB_OK)
        fail_msg("db_open: %s", error.message);
    if (db_reader_open(fixture->store, &fixture->reader, &error) != DB_OK)
        fail_msg("db_reader_open: %s", error.message);
}

static inline void fixture_close(struct fixture *fixture)
{
    db_reader_close(fixture->reader);
    db_close(fixture->store);
    fixture->reader = NULL;
    fixture->store = NULL;
}

/* A folder without a store. */
static inline struct fixture fixture_folder(void)
{
    struct fixture fixture = {.folder = "/var/tmp/test-db-XXXXXX"};
    assert_non_null(mkdtemp(fixture.folder));
    snprintf(fixture.file, sizeof fixture.file, "%s/store.db", fixture.folder);
    snprintf(fixture.url, sizeof fixture.url, "sqlite:%s", fixture.file);
    if (pg_server)
        pg_empty_database(fixture.url, sizeof fixture.url);
    return fixture;
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    fixture_open(fixture, NULL);
    *state = fixture;
    return 0;
}

static inline void fixture_remove(struct fixture *fixture)
{
    if (fixture->store)
        fixture_close(fixture);
    DIR *folder = opendir(fixture->folder);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    assert_int_equal(0, rmdir(fixture->folder));
}

static inline int fixture_teardown(void **state)
{
    fixture_remove(*state);
    free(*state);
    return 0;
}

/* Accesses the database without the store, to plant damage and to read raw rows. */
static inline void fixture_sql(struct fixture *fixture, const char *sql)
{
    sqlite3 *handle;
    char *message = NULL;
    if (pg_server) {
        pg_sql(fixture->url, sql);
        return;
    }
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &handle));
    if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(handle);
}

static inline int64_t fixture_sql_int(struct fixture *fixture, const char *sql)
{
    sqlite3 *handle;
    sqlite3_stmt *statement;
    if (pg_server)
        return pg_sql_int(fixture->url, sql);
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &handle));
    assert_int_equal(SQLITE_OK, sqlite3_prepare_v2(handle, sql, -1, &statement, NULL));
    assert_int_equal(SQLITE_ROW, sqlite3_step(statement));
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return value;
}

/* True if the database itself refuses this statement. */
static inline bool fixture_sql_fails(struct fixture *fixture, const char *sql)
{
    sqlite3 *handle;
    if (pg_server)
        return pg_sql_fails(fixture->url, sql);
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &handle));
    int code = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    sqlite3_close(handle);
    return code == SQLITE_CONSTRAINT;
}

/* -- business operations ---------------------------------------------------------------------- */

static inline db_status work_reset_item(db_tx *tx, void *arg)
{
    return db_tx_reset_item(tx, arg, "none", "test");
}

static inline db_status work_reset_account(db_tx *tx, void *arg)
{
    return db_tx_reset_account(tx, arg, "none", "test");
}

static inline db_item fixture_item(struct fixture *fixture, const char *id, int64_t stock)
{
    db_item item = {.initial_stock = stock, .price = 1999, .reserve_s = 900};
    snprintf(item.id, sizeof item.id, "%s", id);
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_item, &item, NULL));
    return item;
}

static inline db_account fixture_account(struct fixture *fixture, const char *id, int64_t balance)
{
    db_account account = {.initial_balance = balance};
    snprintf(account.id, sizeof account.id, "%s", id);
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_account, &account, NULL));
    return account;
}

/* One change of a balance, computed from a row that was read before: a lock must protect this. */
struct change {
    db_account account; /* as read */
    int64_t delta;
    const char *txn_id;
    db_put how;
    bool with_answer;
};

/* Its ledger row. chain: hash of the row before it, then its own. */
static inline db_ledger_row change_row(const struct change *change, char chain[DB_HASH_LENGTH + 1])
{
    const db_account *account = &change->account;
    db_ledger_row row = {.delta = change->delta,
                         .before = account->balance,
                         .after = account->balance + change->delta,
                         .version_before = account->version,
                         .epoch = account->epoch,
                         .fence = change->how.fence,
                         .guard = "none",
                         .instance = "test"};
    snprintf(row.resource, sizeof row.resource, "account:%s", account->id);
    snprintf(row.txn_id, sizeof row.txn_id, "%s", change->txn_id);
    db_ledger_seal(&row, chain);
    return row;
}

static inline db_status work_change(db_tx *tx, void *arg)
{
    const struct change *change = arg;
    db_account account = change->account;
    db_ledger_row row = change_row(change, account.chain);
    account.balance += change->delta;
    account.version++;
    db_status status = db_tx_put_account(tx, &account, &change->how);
    if (status == DB_OK)
        status = db_tx_append_ledger(tx, &row);
    if (status == DB_OK && change->with_answer) {
        db_answer answer = {.http_status = 201, .request = "change", .body = "{}"};
        snprintf(answer.key, sizeof answer.key, "%s", change->txn_id);
        status = db_tx_insert_answer(tx, &answer);
    }
    return status;
}

/* True if the answer of the i-th change is stored, under the key "ki". */
static inline bool fixture_is_stored(struct fixture *fixture, int i)
{
    char key[16];
    db_answer answer;
    snprintf(key, sizeof key, "k%d", i);
    db_status status = db_read_answer(fixture->reader, key, &answer);
    assert_true(status == DB_OK || status == DB_NOT_FOUND);
    return status == DB_OK;
}

/* Copies the row of an audit of one resource. */
static inline int keep_audit_row(void *arg, const db_audit_row *row)
{
    *(db_audit_row *)arg = *row;
    return 0;
}

static inline db_audit_row fixture_audit(struct fixture *fixture, const char *resource)
{
    db_audit_row row;
    memset(&row, 0, sizeof row);
    assert_int_equal(DB_OK, db_audit(fixture->reader, resource, keep_audit_row, &row, NULL));
    assert_string_equal(resource, row.resource);
    return row;
}

/* Returns full if TEST_FULL=1, else small: every push runs the tests four times. */
static inline int full_or(int full, int small)
{
    const char *value = getenv("TEST_FULL");
    return value && strcmp(value, "1") == 0 ? full : small;
}

#endif
