#include "sqlite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* SQLite would let everybody read a new file. It gives the log, its index and the journal the mode
 * of the file. A file that is there keeps its mode. If this fails, SQLite says why. */
static void create_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* Opens, locks and sets up the writing connection and the one for pings. */
static db_status open_connections(struct sqlite_store *store, const char *path, db_error *error)
{
    const bool shared = store->options.shared_file, existing = store->options.existing;
    bool alone;
    if (existing && access(path, F_OK) != 0)
        return db_fail(error, DB_INVALID, "%.150s: there is no store; check --db", path);
    if (!existing)
        create_private(path);
    db_status status =
        conn_open(&store->conn, path, SQLITE_OPEN_READWRITE | (existing ? 0 : SQLITE_OPEN_CREATE),
                  shared ? commit_marking_vfs() : log_gathering_vfs(), store->options.busy_ms,
                  &store->counters.busy_retries, error);
    if (status != DB_OK)
        return status;
    /* SQLite has made the path absolute: it stays valid if the working directory changes. */
    snprintf(store->path, sizeof store->path, "%s",
             sqlite3_db_filename(store->conn.handle, "main"));
    if ((status = file_lock_open(&store->lock, store->path, shared, &alone, error)) != DB_OK)
        goto close_writer;
    if ((alone && (status = reflush_file(&store->conn, store->path, error)) != DB_OK) ||
        (status = setup_file(store, alone, error)) != DB_OK ||
        (status = conn_prepare(&store->conn, CONN_WRITER, error)) != DB_OK ||
        (status = conn_open_reading(store, &store->ping, error)) != DB_OK)
        goto unlock;
    if (shared && alone && (status = file_lock_share(&store->lock, error)) != DB_OK)
        goto close_ping;
    return DB_OK;
close_ping:
    conn_close(&store->ping);
unlock: /* the connection ends before another process may open the file */
    conn_close(&store->conn);
    file_lock_close(&store->lock);
close_writer:
    conn_close(&store->conn);
    return status;
}

static void close_connections(struct sqlite_store *store)
{
    conn_close(&store->ping);
    if (atomic_load(&store->flush_failed))
        sqlite3_db_config(store->conn.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    conn_close(&store->conn); /* the last connection: SQLite checkpoints and removes the log */
    file_lock_close(&store->lock);
}

static db_status sqlite_open(const char *address, const db_options *options, db **ret,
                             db_error *error)
{
    if (address[0] == '\0' || address[0] == ':' || strncmp(address, "file:", 5) == 0)
        return db_fail(error, DB_INVALID,
                       "sqlite:%.100s: give the path of a file; in memory, or as a file: URI, "
                       "the connections of one store would not see the same data",
                       address);
    if (strlen(address) >= PATH_MAX - sizeof "-journal")
        return db_fail(error, DB_INVALID, "sqlite:%.60s...: path too long", address);
    struct sqlite_store *store = calloc(1, sizeof *store);
    if (!store)
        return db_fail(error, DB_FAILED, "out of memory");
    store->base.engine = &db_engine_sqlite;
    store->options = *options;
    store->options.url = NULL; /* borrowed for this call only */
    pthread_mutex_init(&store->ping_mutex, NULL);

    db_status status = open_connections(store, address, error);
    if (status == DB_OK && (status = writer_start(store, error)) != DB_OK)
        close_connections(store);
    if (status != DB_OK) {
        pthread_mutex_destroy(&store->ping_mutex);
        free(store);
        return status;
    }
    if (options->shared_file)
        fprintf(stderr,
                "warning: %s is open for several processes (rollback journal, several disk "
                "flushes per commit): for lessons only, not for service\n",
                store->path);
    *ret = &store->base;
    return DB_OK;
}

static void sqlite_close(db *base)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    writer_stop(store);
    close_connections(store);
    pthread_mutex_destroy(&store->ping_mutex);
    free(store);
}

static db_status sqlite_ping(db *base)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (flush_has_failed(store, NULL))
        return DB_FAILED;
    pthread_mutex_lock(&store->ping_mutex);
    conn_clear(&store->ping);
    db_status status = conn_run_plain(&store->ping, SQL_PING);
    pthread_mutex_unlock(&store->ping_mutex);
    return status;
}

static void sqlite_stats(const db *base, db_stats *ret)
{
    const struct counters *counters = &((const struct sqlite_store *)base)->counters;
    *ret = (db_stats){.commits = atomic_load(&counters->commits),
                      .runs = atomic_load(&counters->runs),
                      .rollbacks = atomic_load(&counters->rollbacks),
                      .busy_retries = atomic_load(&counters->busy_retries),
                      .checkpoints = atomic_load(&counters->checkpoints),
                      .group_largest = atomic_load(&counters->group_largest),
                      .commit_us_total = atomic_load(&counters->commit_us_total),
                      .waiting = atomic_load(&counters->waiting)};
}

/* -- the engine ------------------------------------------------------------------------------- */

const db_engine db_engine_sqlite = {
    .scheme = "sqlite",
    .open = sqlite_open,
    .backup = sqlite_backup,
    .migrate = sqlite_migrate,
    .close = sqlite_close,
    .ping = sqlite_ping,
    .stats = sqlite_stats,
    .reader_open = sqlite_reader_open,
    .reader_close = sqlite_reader_close,
    .reader_begin = sqlite_reader_begin,
    .reader_end = sqlite_reader_end,
    .read_row = sqlite_read_row,
    .find_answers = sqlite_find_answers,
    .read_bought = sqlite_read_bought,
    .read_sold = sqlite_read_sold,
    .read_expired = sqlite_read_expired,
    .read_bite = sqlite_read_bite,
    .read_refusals = sqlite_read_refusals,
    .read_money = sqlite_read_money,
    .read_unpaid = sqlite_read_unpaid,
    .read_list = sqlite_read_list,
    .feed_transaction = sqlite_feed_transaction,
    .feed_end = sqlite_feed_end,
    .audit = sqlite_audit,
    .commits_in_groups = true,
    .run = writer_run,
    .tx_read_row = sqlite_tx_read_row,
    .tx_read_bought = sqlite_tx_read_bought,
    .tx_hold_epoch = sqlite_hold_epoch,
    .tx_hold_item = sqlite_hold_item,
    .tx_set_item = sqlite_set_item,
    .tx_set_account = sqlite_set_account,
    .tx_clear_fences = sqlite_clear_fences,
    .tx_most_bought = sqlite_most_bought,
    .tx_put = sqlite_put,
    .tx_add = sqlite_add,
    .tx_chain = sqlite_chain,
    .tx_move_order = sqlite_move_order,
    .tx_insert = sqlite_insert,
    .tx_reset = sqlite_reset,
    .tx_put_task = sqlite_put_task,
    .tx_prune_bite = sqlite_prune_bite,
    .tx_prune_refusals = sqlite_prune_refusals,
    .tx_put_carried = sqlite_put_carried,
    .tx_carry_order = sqlite_carry_order,
    .tx_move_part = sqlite_move_part,
    .tx_now_us = sqlite_now_us,
    .tx_next_fence = sqlite_next_fence,
};
