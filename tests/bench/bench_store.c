/*
 * What a durable order costs in the store alone, without HTTP and without a lock: one item, and in
 * each unit of work `batch` orders with their ledger rows and stored answers, one new stock value.
 *
 *     build/bench/bench_store [REPEAT] [RUN_MS] > build/bench/store.json     (table on stderr)
 */
#include "db.h"
#include "bench.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64 };

struct row {
    enum db_sync sync;
    int threads, batch;
    double rates[BENCH_REPEAT_MAX];
};

static struct row rows[] = {
    {DB_SYNC_FULL, 1, 1, {0}},    {DB_SYNC_FULL, 1, 8, {0}},    {DB_SYNC_FULL, 1, 64, {0}},
    {DB_SYNC_FULL, 1, 512, {0}},  {DB_SYNC_FULL, 64, 1, {0}},   {DB_SYNC_NORMAL, 1, 1, {0}},
    {DB_SYNC_NORMAL, 1, 64, {0}}, {DB_SYNC_NORMAL, 64, 1, {0}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

struct worker {
    pthread_t thread;
    db *db;
    int number, batch;
    atomic_bool *stop;
    uint64_t orders;
    db_item item;
};

static db_status reset_item(db_tx *tx, void *arg)
{
    return db_tx_reset_item(tx, arg, "none", "bench");
}

static db_status sell_batch(db_tx *tx, void *arg)
{
    struct worker *worker = arg;
    db_item item = worker->item;
    db_status status = DB_OK;
    for (int i = 0; i < worker->batch && status == DB_OK; i++) {
        uint64_t serial = worker->orders + (uint64_t)i;
        db_order order = {.quantity = 1, .amount = item.price, .item_epoch = item.epoch};
        db_ledger_row row = {.delta = -1,
                             .before = item.stock,
                             .after = item.stock - 1,
                             .version_before = item.version,
                             .epoch = item.epoch,
                             .guard = "none",
                             .instance = "bench"};
        db_answer answer = {.http_status = 201, .body = "{\"state\":\"reserved\"}"};
        snprintf(order.id, sizeof order.id, "o-%d-%llu", worker->number,
                 (unsigned long long)serial);
        snprintf(order.user_id, sizeof order.user_id, "u%llu", (unsigned long long)serial);
        snprintf(order.item_id, sizeof order.item_id, "%s", item.id);
        snprintf(row.resource, sizeof row.resource, "item:%s", item.id);
        snprintf(row.txn_id, sizeof row.txn_id, "bench-%d-%llu", worker->number,
                 (unsigned long long)serial);
        snprintf(answer.key, sizeof answer.key, "%s", row.txn_id);
        snprintf(answer.request, sizeof answer.request, "order item=%s user=%s quantity=1", item.id,
                 order.user_id);
        item.stock--;
        item.version++;
        db_ledger_seal(&row, item.chain);
        if ((status = db_tx_insert_order(tx, &order)) == DB_OK &&
            (status = db_tx_append_ledger(tx, &row)) == DB_OK)
            status = db_tx_insert_answer(tx, &answer);
    }
    if (status == DB_OK)
        status = db_tx_put_item(tx, &item, &(db_put){.expected_version = -1});
    if (status == DB_OK)
        worker->item = item;
    return status;
}

static void *sell(void *arg)
{
    struct worker *worker = arg;
    db_error error;
    while (!atomic_load(worker->stop)) {
        if (db_run(worker->db, sell_batch, worker, &error) != DB_OK)
            bench_die_of("db_run", error.message);
        worker->orders += (uint64_t)worker->batch;
    }
    return NULL;
}

static void measure(struct row *row, int run, const char *folder, int64_t run_ms)
{
    static struct worker workers[THREADS_MAX];
    char file[300], url[320];
    snprintf(file, sizeof file, "%s/bench.db", folder);
    snprintf(url, sizeof url, "sqlite:%s", file);
    db *store;
    db_error error;
    if (db_open(&(db_options){.url = url, .sync = row->sync}, &store, &error) != DB_OK)
        bench_die_of(url, error.message);
    atomic_bool stop = false;
    struct timespec start, end;
    for (int i = 0; i < row->threads; i++) {
        workers[i] = (struct worker){.db = store, .number = i, .batch = row->batch, .stop = &stop};
        workers[i].item = (db_item){.initial_stock = INT64_C(1) << 40,
                                    .stock = INT64_C(1) << 40,
                                    .price = 1999,
                                    .reserve_s = 900};
        snprintf(workers[i].item.id, sizeof workers[i].item.id, "%d", i);
        if (db_run(store, reset_item, &workers[i].item, &error) != DB_OK)
            bench_die_of("reset", error.message);
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < row->threads; i++)
        if (pthread_create(&workers[i].thread, NULL, sell, &workers[i]) != 0)
            bench_die_of("pthread_create", "no more threads");
    nanosleep(&(struct timespec){run_ms / 1000, run_ms % 1000 * 1000000}, NULL);
    atomic_store(&stop, true);
    uint64_t orders = 0;
    for (int i = 0; i < row->threads; i++) {
        pthread_join(workers[i].thread, NULL);
        orders += workers[i].orders;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    row->rates[run] = (double)orders / ((double)(end.tv_sec - start.tv_sec) +
                                        (double)(end.tv_nsec - start.tv_nsec) / 1e9);
    db_close(store);
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock", "-lock"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[320];
        snprintf(path, sizeof path, "%s%s", file, suffixes[i]);
        unlink(path);
    }
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5;
    int64_t run_ms = argc > 2 ? atoll(argv[2]) : 1000;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 1)
        bench_die("usage: bench_store [REPEAT 1..25] [RUN_MS]");
    char folder[] = "/var/tmp/bench-store-XXXXXX";
    if (!mkdtemp(folder))
        bench_die_of(folder, "cannot be made");
    for (int run = 0; run < repeat; run++)
        for (size_t i = 0; i < ROWS; i++)
            measure(&rows[i], run, folder, run_ms);
    rmdir(folder);

    json_t *all = json_array();
    fprintf(stderr, "%-6s %7s %6s %10s %10s %10s\n", "sync", "threads", "batch", "orders/s", "min",
            "max");
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &rows[i];
        const char *sync = row->sync == DB_SYNC_FULL ? "FULL" : "NORMAL";
        double rate = bench_median(row->rates, repeat);
        fprintf(stderr, "%-6s %7d %6d %10.0f %10.0f %10.0f\n", sync, row->threads, row->batch, rate,
                row->rates[0], row->rates[repeat - 1]);
        json_array_append_new(all,
                              json_pack("{s:s,s:i,s:i,s:f,s:f,s:f}", "sync", sync, "threads",
                                        row->threads, "batch", row->batch, "orders_per_s", rate,
                                        "min", row->rates[0], "max", row->rates[repeat - 1]));
    }
    bench_print(all);
    return 0;
}
