/* A store as a whole: opened by its URL's scheme, pinged, settled, closed. */
#include "engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUSY_MS_DEFAULT = 5000, GROUP_MAX_DEFAULT = 256, LOG_PAGES_DEFAULT = 1000 };

/* Written by a ping once a write has failed: four pages for each of GROUP_MAX_DEFAULT works. */
enum { PROBE_BYTES = 4 << 20 };

static const db_engine *const engines[] = {&db_engine_sqlite, &db_engine_postgres};
enum { ENGINES = sizeof engines / sizeof *engines };

const db_engine *db_engine_of(const char *url, const char **ret_address, db_error *error)
{
    for (size_t i = 0; i < ENGINES; i++) {
        size_t length = strlen(engines[i]->scheme);
        if (strncmp(url, engines[i]->scheme, length) == 0 && url[length] == ':') {
            *ret_address = url + length + 1;
            return engines[i];
        }
    }
    db_fail(error, DB_INVALID,
            "%.*s: unknown kind of database; give sqlite:FILE or "
            "postgres://USER@HOST:PORT/DATABASE",
            (int)strnlen(url, strcspn(url, ":")), url);
    return NULL;
}

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
    const char *address;
    const db_engine *engine = db_engine_of(filled.url, &address, error);
    return engine ? engine->open(address, &filled, ret, error) : DB_INVALID;
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
db_status db_settle(db *store, const db_commit_id *commit, int64_t wait_ms, db_error *error)
{
    if (store->engine->settle)
        return store->engine->settle(store, commit, wait_ms, error);
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
    static const char *const texts[] = {"reserved", "paid", "cancelled", "closed", "refunded"};
    size_t i = (size_t)state;
    return i < sizeof texts / sizeof *texts ? texts[i] : "unknown state";
}

const char *db_kind_text(db_kind kind)
{
    static const char *const texts[] = {
#define KIND_TEXT(name, text) text,
        DB_KIND_MAP(KIND_TEXT, KIND_TEXT)
#undef KIND_TEXT
    };
    size_t i = (size_t)kind;
    return i < sizeof texts / sizeof *texts ? texts[i] : "unknown kind";
}
