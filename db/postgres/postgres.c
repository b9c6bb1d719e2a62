#include "postgres.h"

#include <stdlib.h>

static db_status pg_open(const char *address, const db_options *options, db **ret, db_error *error)
{
    struct pg_store *store = calloc(1, sizeof *store);
    struct session *session = NULL;
    if (!store)
        return db_fail(error, DB_FAILED, "out of memory");
    store->base.engine = &db_engine_postgres;
    store->options = *options;
    store->options.url = NULL; /* borrowed for this call only */
    pool_open(&store->pool);

    db_status status = DB_OK;
    if (options->shared_file)
        status = db_fail(error, DB_INVALID,
                         "postgres: is shared by nature; the option is for a SQLite file");
    if (status == DB_OK)
        status = pg_target_parse(address, &store->target, error);
    if (status == DB_OK)
        status = session_open(store, true, &session, error);
    if (status != DB_OK) {
        pool_close(store);
        free(store);
        return status;
    }
    store->pool.n_open = 1;
    pool_give(store, session);
    *ret = &store->base;
    return DB_OK;
}

static void pg_close(db *base)
{
    struct pg_store *store = (struct pg_store *)base;
    pool_close(store);
    free(store);
}

static db_status pg_ping(db *base)
{
    struct pg_store *store = (struct pg_store *)base;
    struct session *session;
    PGresult *result = NULL;
    db_status status = pool_take(store, PG_READ_MS, &session, NULL);
    if (status != DB_OK)
        return status;
    status = session_ask(session, SQL_PING, NULL, 0, &result);
    PQclear(result);
    pool_give(store, session);
    return status;
}

static void pg_stats(const db *base, db_stats *ret)
{
    const struct pg_counters *counters = &((const struct pg_store *)base)->counters;
    *ret = (db_stats){.commits = atomic_load(&counters->commits),
                      .runs = atomic_load(&counters->runs),
                      .rollbacks = atomic_load(&counters->rollbacks),
                      .busy_retries = atomic_load(&counters->reruns),
                      .group_largest = 1,
                      .commit_us_total = atomic_load(&counters->commit_us_total),
                      .waiting = atomic_load(&counters->waiting)};
}

/* PostgreSQL copies a database with its own program, while it is in use. */
static db_status pg_backup(const char *address, const char *file, db_error *error)
{
    (void)address;
    return db_fail(error, DB_INVALID,
                   "PostgreSQL has a program for this: pg_dump --format=custom --file='%.80s' "
                   "--dbname='postgres://USER@HOST:PORT/DATABASE'",
                   file);
}

/* -- the engine ------------------------------------------------------------------------------- */

const db_engine db_engine_postgres = {
    .scheme = "postgres",
    .open = pg_open,
    .backup = pg_backup,
    .migrate = pg_migrate,
    .close = pg_close,
    .ping = pg_ping,
    .stats = pg_stats,
    .reader_open = pg_reader_open,
    .reader_close = pg_reader_close,
    .reader_begin = pg_reader_begin,
    .reader_end = pg_reader_end,
    .read_row = pg_read_row,
    .find_answers = pg_find_answers,
    .read_bought = pg_read_bought,
    .read_sold = pg_read_sold,
    .read_expired = pg_read_expired,
    .read_bite = pg_read_bite,
    .read_refusals = pg_read_refusals,
    .read_money = pg_read_money,
    .read_unpaid = pg_read_unpaid,
    .read_list = pg_read_list,
    .feed_transaction = pg_feed_transaction,
    .feed_end = pg_feed_end,
    .feed_waits = pg_feed_waits,
    .feed_blocker = pg_feed_blocker,
    .audit = pg_audit,
    .run = pg_run,
    .settle = pg_settle,
    .tx_read_row = pg_tx_read_row,
    .tx_read_bought = pg_tx_read_bought,
    .tx_hold_epoch = pg_hold_epoch,
    .tx_hold_item = pg_hold_item,
    .tx_set_item = pg_set_item,
    .tx_set_account = pg_set_account,
    .tx_clear_fences = pg_clear_fences,
    .tx_most_bought = pg_most_bought,
    .tx_put = pg_put,
    .tx_add = pg_add,
    .tx_chain = pg_chain,
    .tx_move_order = pg_move_order,
    .tx_insert = pg_insert,
    .tx_reset = pg_reset,
    .tx_put_task = pg_put_task,
    .tx_prune_bite = pg_prune_bite,
    .tx_prune_refusals = pg_prune_refusals,
    .tx_put_carried = pg_put_carried,
    .tx_carry_order = pg_carry_order,
    .tx_move_part = pg_move_part,
    .tx_now_us = pg_now_us,
    .tx_next_fence = pg_next_fence,
};
