/* The store's front: engines by URL scheme, and the reading half of db.h. Writing: db_write.c. */
#include "engine.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUSY_MS_DEFAULT = 5000, GROUP_MAX_DEFAULT = 256, LOG_PAGES_DEFAULT = 1000 };

/* Written by a ping once a write has failed: four pages for each of GROUP_MAX_DEFAULT works. */
enum { PROBE_BYTES = 4 << 20 };

static const db_engine *const engines[] = {&db_engine_sqlite, &db_engine_postgres};
enum { ENGINES = sizeof engines / sizeof *engines };

db_status db_open(const db_options *options, db **ret, db_error *error)
{
    assert(options && options->url && ret);
    db_options filled = *options;
    if (filled.busy_ms == 0)
        filled.busy_ms = BUSY_MS_DEFAULT;
    if (filled.group_max == 0)
        filled.group_max = GROUP_MAX_DEFAULT;
    if (filled.log_pages == 0)
        filled.log_pages = LOG_PAGES_DEFAULT;
    if (filled.busy_ms < 0 || filled.busy_ms > DB_BUSY_MS_MAX || filled.group_max < 0 ||
        filled.log_pages < 0)
        return db_fail(error, DB_INVALID,
                       "busy_ms must be 1 to %d, group_max and log_pages positive", DB_BUSY_MS_MAX);
    for (size_t i = 0; i < ENGINES; i++) {
        size_t length = strlen(engines[i]->scheme);
        if (strncmp(filled.url, engines[i]->scheme, length) == 0 && filled.url[length] == ':')
            return engines[i]->open(filled.url + length + 1, &filled, ret, error);
    }
    return db_fail(error, DB_INVALID,
                   "%.*s: unknown kind of database; give sqlite:FILE or "
                   "postgres://USER@HOST:PORT/DATABASE",
                   (int)strnlen(filled.url, strcspn(filled.url, ":")), filled.url);
}

void db_close(db *store)
{
    if (store)
        store->engine->close(store);
}

/* -- the ping --------------------------------------------------------------------------------- */

/* In the row of a task that does not run. By the engine itself: the text is longer than a name. */
static db_status write_probe(db_tx *tx, void *arg)
{
    return tx->engine->tx_put_task(tx, "write-probe", arg, (int64_t)time(NULL) * 1000000, 0);
}

/* Letters that no database can compress (Knuth, MMIX). */
static void fill_probe(char *text)
{
    uint64_t random = (uint64_t)time(NULL);
    for (size_t i = 0; i < PROBE_BYTES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        text[i] = (char)('A' + (random >> 33) % 26);
    }
    text[PROBE_BYTES] = '\0';
}

/* A small write proves that commits are answered again. It proves little about room: it fits where
 * no order does. So as much as the largest commit is written, and then its room given back. */
static db_status prove_writing(db *store, bool room)
{
    if (!room)
        return db_run(store, write_probe, "", NULL);
    char *text = malloc(PROBE_BYTES + 1);
    if (text == NULL)
        return DB_FAILED;
    fill_probe(text);
    db_status status = db_run(store, write_probe, text, NULL);
    free(text);
    return status == DB_OK ? db_run(store, write_probe, "", NULL) : status;
}

db_status db_ping(db *store)
{
    const unsigned failures = atomic_load(&store->failures);
    const unsigned room_failures = atomic_load(&store->room_failures);
    db_status status = store->engine->ping(store);
    if (status != DB_OK || failures == atomic_load(&store->proven))
        return status;
    status = prove_writing(store, room_failures != atomic_load(&store->room_proven));
    if (status != DB_OK)
        return status;
    atomic_store(&store->proven, failures); /* what has failed meanwhile is not forgotten */
    atomic_store(&store->room_proven, room_failures);
    return DB_OK;
}

/* SQLite keeps a log, or a journal, in which a commit that succeeds leaves nothing open. */
db_status db_settle(db *store, const db_doubt *doubt, int64_t wait_ms, db_error *error)
{
    if (store->engine->settle)
        return store->engine->settle(store, doubt, wait_ms, error);
    return db_run(store, write_probe, "", error);
}

void db_get_stats(const db *store, db_stats *ret)
{
    store->engine->stats(store, ret);
}

/* -- text ------------------------------------------------------------------------------------- */

const char *db_status_text(db_status status)
{
    static const char *const texts[] = {
#define STATUS_TEXT(name, text) text,
        DB_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    };
    size_t i = (size_t)status;
    return i < sizeof texts / sizeof *texts ? texts[i] : "unknown status";
}

const char *db_order_state_text(db_order_state state)
{
    static const char *const texts[] = {"reserved", "paid", "cancelled", "closed"};
    size_t i = (size_t)state;
    return i < sizeof texts / sizeof *texts ? texts[i] : "unknown state";
}

db_status db_fail(db_error *error, db_status status, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
        error->status = status;
    }
    return status;
}

bool db_text_ok(const char *text, size_t max)
{
    return strnlen(text, max + 1) <= max;
}

bool db_name_ok(const char *name, size_t max)
{
    return name[0] != '\0' && db_text_ok(name, max);
}

/* -- reading ---------------------------------------------------------------------------------- */

db_status db_reader_open(db *store, db_reader **ret, db_error *error)
{
    return store->engine->reader_open(store, ret, error);
}

void db_reader_close(db_reader *reader)
{
    if (reader)
        reader->engine->reader_close(reader);
}

db_status db_reader_begin(db_reader *reader)
{
    return reader->engine->reader_begin(reader);
}

void db_reader_end(db_reader *reader)
{
    reader->engine->reader_end(reader);
}

/* A name that could not have been stored is not found. */
db_status db_read_item(db_reader *reader, const char *id, db_item *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? reader->engine->read_item(reader, id, ret) : DB_NOT_FOUND;
}

db_status db_read_account(db_reader *reader, const char *id, db_account *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? reader->engine->read_account(reader, id, ret) : DB_NOT_FOUND;
}

db_status db_read_order(db_reader *reader, const char *id, db_order *ret)
{
    return db_name_ok(id, DB_ID_MAX) ? reader->engine->read_order(reader, id, ret) : DB_NOT_FOUND;
}

db_status db_read_answer(db_reader *reader, const char *key, db_answer *ret)
{
    return db_name_ok(key, DB_KEY_MAX) ? reader->engine->read_answer(reader, key, ret)
                                       : DB_NOT_FOUND;
}

db_status db_find_answers(db_reader *reader, const char *const *keys, size_t n, bool *ret_found)
{
    assert(n >= 1 && n <= DB_KEYS_MAX);
    memset(ret_found, 0, n * sizeof *ret_found);
    return reader->engine->find_answers(reader, keys, n, ret_found);
}

db_status db_read_bought(db_reader *reader, const db_item *item, const char *const *user_ids,
                         size_t n, int64_t *ret_quantities)
{
    assert(n >= 1 && n <= DB_KEYS_MAX);
    bool ok = db_name_ok(item->id, DB_ID_MAX);
    for (size_t i = 0; i < n && ok; i++)
        ok = db_name_ok(user_ids[i], DB_ID_MAX);
    return ok ? reader->engine->read_bought(reader, item, user_ids, n, ret_quantities)
              : DB_NOT_FOUND;
}

db_status db_read_sold(db_reader *reader, const db_item *item, int64_t *ret_quantity)
{
    if (!db_name_ok(item->id, DB_ID_MAX))
        return DB_NOT_FOUND;
    return reader->engine->read_sold(reader, item, ret_quantity);
}

db_status db_read_expired(db_reader *reader, int64_t now_us, const db_expired *after,
                          db_expired *ret, size_t max, size_t *ret_n)
{
    const db_expired oldest = {.expires_us = INT64_MIN};
    if (max > DB_EXPIRED_MAX)
        max = DB_EXPIRED_MAX;
    return reader->engine->read_expired(reader, now_us, after ? after : &oldest, ret, max, ret_n);
}

db_status db_read_ledger(db_reader *reader, int64_t after, size_t max,
                         int (*each)(void *arg, const db_ledger_row *row), void *arg,
                         int64_t *ret_last)
{
    if (max > DB_LEDGER_MAX)
        max = DB_LEDGER_MAX;
    db_status status = reader->engine->reader_begin(reader);
    if (status != DB_OK)
        return status;
    status = reader->engine->read_ledger(reader, after, max, each, arg, ret_last);
    reader->engine->reader_end(reader);
    return status;
}

db_status db_audit(db_reader *reader, const char *resource,
                   int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error)
{
    if (resource && !db_name_ok(resource, DB_RESOURCE_MAX))
        return DB_NOT_FOUND;
    db_status status = reader->engine->audit(reader, resource, each, arg, error);
    return status == DB_NOT_FOUND && !resource ? DB_OK : status; /* an empty store is no trouble */
}
