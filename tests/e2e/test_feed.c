/*
 * The feed of all changes misses none and shows none twice. A reader follows GET /v1/ledger all the
 * time, and must have seen in the end what the table holds, in its order.
 *
 * PostgreSQL: writers on two instances, one of which is killed and started again; and transactions
 * that began to write early and commit late, as a lock of the test holds them up. SQLite: the one
 * instance is killed and started again.
 */
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INSTANCES = 2,
    WRITERS = 4,
    ROUNDS = 8,      /* each holds a transaction up, or kills an instance */
    OVERTAKERS = 25, /* changes that are answered while one is held up */
    IDS_MAX = 200000,
    PAGE = 20
};

struct writer {
    pthread_t thread;
    int number;
};

static struct shop shop;
static struct sandbox_server *postgres, *instances[INSTANCES];
static atomic_int answered; /* changes with 201 */
static atomic_bool writers_stop, reader_stop;
static struct {
    int64_t ids[IDS_MAX];
    size_t n;
    const char *failure;
} seen;
static int64_t stored[IDS_MAX];

/* -- writers and the reader ----------------------------------------------------------------------
 */

/* A killed instance does not answer; the next change may. */
static void *writer_main(void *arg)
{
    const struct writer *writer = arg;
    const struct sandbox_server *instance = instances[writer->number % INSTANCES];
    struct client client = {.fd = -1};
    struct reply *reply = calloc(1, sizeof *reply);
    for (int i = 0; reply != NULL && !atomic_load(&writers_stop); i++) {
        char path[64], key[48];
        snprintf(path, sizeof path, "/v1/accounts/a%d/transactions", i % WRITERS);
        snprintf(key, sizeof key, "w%d-%d", writer->number, i);
        client.port = instance->port;
        if (client_call(&client, "POST", path, key, "{\"amount\":1}", SHOP_WAIT_MS, reply) == 201)
            atomic_fetch_add(&answered, 1);
    }
    client_close(&client);
    free(reply);
    return NULL;
}

static void keep_rows(const json_t *page)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(page, "rows"), i, row)
    {
        if (seen.n == IDS_MAX)
            seen.failure = "too many rows";
        else
            seen.ids[seen.n++] = json_integer_value(json_object_get(row, "id"));
    }
}

/* Follows the feed until it is told to stop and there is no more. */
static void *reader_main(void *arg)
{
    char next[80] = "";
    struct client client = {.fd = -1};
    struct reply *reply = calloc(1, sizeof *reply);
    (void)arg;
    for (bool last = false, more = true; reply != NULL && !(last && !more);) {
        char path[128];
        last = atomic_load(&reader_stop);
        snprintf(path, sizeof path, "/v1/ledger?limit=%d%s%s", PAGE, next[0] ? "&after=" : "",
                 next);
        client.port = instances[0]->port;
        if (client_call(&client, "GET", path, NULL, NULL, SHOP_WAIT_MS, reply) != 200) {
            more = true; /* killed: it comes back */
            continue;
        }
        json_t *page = json_loads(reply->body, 0, NULL);
        keep_rows(page);
        const char *place = json_string_value(json_object_get(page, "next"));
        if (place == NULL)
            seen.failure = "a page without next";
        else
            snprintf(next, sizeof next, "%s", place);
        more = place != NULL && json_is_true(json_object_get(page, "more"));
        json_decref(page);
    }
    client_close(&client);
    free(reply);
    return NULL;
}

static bool are_answered(void *goal)
{
    return atomic_load(&answered) >= *(const int *)goal;
}

static void await_answers(int more)
{
    int goal = atomic_load(&answered) + more;
    assert_true(wait_until(are_answered, &goal, SHOP_WAIT_MS));
}

static pthread_t reader;
static struct writer writers[WRITERS];

static void start_all(void)
{
    for (int i = 0; i < WRITERS; i++) {
        char path[64];
        snprintf(path, sizeof path, "/v1/accounts/a%d", i);
        assert_true(shop_put(&shop, path, "{\"balance\":0,\"guard\":\"sql-atomic\"}"));
    }
    assert_true(shop_put(&shop, "/v1/accounts/held", "{\"balance\":0,\"guard\":\"sql-atomic\"}"));
    seen.n = 0;
    seen.failure = NULL;
    atomic_store(&writers_stop, false);
    atomic_store(&reader_stop, false);
    assert_int_equal(pthread_create(&reader, NULL, reader_main, NULL), 0);
    for (int i = 0; i < WRITERS; i++) {
        writers[i].number = i;
        assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]), 0);
    }
}

static void stop_all(void)
{
    atomic_store(&writers_stop, true);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    atomic_store(&reader_stop, true);
    pthread_join(reader, NULL);
}

/* stored: all ids of the table, in the order that the feed promises. */
static void seen_is_all(size_t n)
{
    if (seen.failure != NULL)
        fail_msg("%s", seen.failure);
    for (size_t i = 0; i < n && i < seen.n; i++)
        if (seen.ids[i] != stored[i])
            fail_msg("row %zu of the feed is %lld; the table has %lld there", i,
                     (long long)seen.ids[i], (long long)stored[i]);
    assert_int_equal(seen.n, n);
}

/* -- PostgreSQL ----------------------------------------------------------------------------------
 */

static int open_postgres(void **state)
{
    (void)state;
    shop = (struct shop){.client.fd = -1};
    if (sandbox_open(&shop.sandbox) != 0 || !(shop.redis = sandbox_redis(shop.sandbox, NULL)) ||
        !(postgres = sandbox_postgres(shop.sandbox, NULL)))
        return -1;
    for (int i = 0; i < INSTANCES; i++) {
        const char *const args[] = {"--redis", shop.redis->url, "--db", postgres->url, NULL};
        instances[i] = sandbox_seckilld(shop.sandbox, shop_binary("seckilld"), args);
        if (!instances[i])
            return -1;
    }
    shop.client.port = instances[0]->port;
    return 0;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static PGconn *connect_postgres(void)
{
    PGconn *handle = PQconnectdb(postgres->url);
    if (PQstatus(handle) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(handle));
    return handle;
}

static void run_sql(PGconn *handle, const char *sql)
{
    PGresult *result = PQexec(handle, sql);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(handle));
    PQclear(result);
}

/* A transaction that has a number waits for a lock. */
static bool one_waits(void *handle)
{
    PGresult *result = PQexec(handle, "SELECT 1 FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
                                      " AND wait_event_type = 'Lock'");
    const bool waits = PQntuples(result) > 0;
    PQclear(result);
    return waits;
}

static size_t table_of_postgres(void)
{
    PGconn *handle = connect_postgres();
    PGresult *result = PQexec(handle, "SELECT id FROM ledger ORDER BY txid, id");
    const size_t n = (size_t)PQntuples(result);
    assert_true(n > 0 && n <= IDS_MAX);
    for (size_t i = 0; i < n; i++)
        stored[i] = atoll(PQgetvalue(result, (int)i, 0));
    PQclear(result);
    PQfinish(handle);
    return n;
}

/* A change on instance two that writes now and commits when the lock is given back, after changes
 * that began later. With kill, its instance does not live to see that. */
static void hold_one_up(PGconn *handle, PGconn *watch, int round, bool kill)
{
    struct client client = {.port = instances[1]->port, .fd = -1};
    char key[32];
    snprintf(key, sizeof key, "held-%d", round);
    run_sql(handle, "BEGIN; SELECT 1 FROM accounts WHERE id = 'held' FOR UPDATE");
    assert_int_equal(
        client_send(&client, "POST", "/v1/accounts/held/transactions", key, "{\"amount\":1}"), 0);
    assert_true(wait_until(one_waits, watch, SHOP_WAIT_MS));
    if (kill)
        sandbox_signal(instances[1], SIGKILL);
    await_answers(OVERTAKERS);
    run_sql(handle, "COMMIT");
    if (kill)
        assert_int_equal(sandbox_restart(instances[1]), 0);
    client_close(&client);
}

TEST_GROUP("PostgreSQL", open_postgres, close_shop);

TEST_THAT(on_two_instances_with_late_commits_and_kills)
{
    PGconn *handle = connect_postgres(), *watch = connect_postgres();
    start_all();
    for (int round = 0; round < test_size(ROUNDS, 8 * ROUNDS); round++)
        hold_one_up(handle, watch, round, round % 4 == 3);
    await_answers(OVERTAKERS);
    stop_all();
    PQfinish(watch);
    PQfinish(handle);
    const size_t n = table_of_postgres();
    print_message("%zu rows\n", n);
    seen_is_all(n);
}

/* -- SQLite --------------------------------------------------------------------------------------
 */

static int open_sqlite(void **state)
{
    (void)state;
    if (shop_open(&shop, NULL) != 0)
        return -1;
    instances[0] = instances[1] = shop.service;
    return 0;
}

static size_t table_of_sqlite(void)
{
    char file[SANDBOX_TEXT_MAX + 32];
    sqlite3 *handle;
    sqlite3_stmt *at;
    size_t n = 0;
    snprintf(file, sizeof file, "%s/shop.db", sandbox_dir(shop.sandbox));
    assert_int_equal(sqlite3_open_v2(file, &handle, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(handle, "SELECT id FROM ledger ORDER BY id", -1, &at, NULL),
                     SQLITE_OK);
    while (sqlite3_step(at) == SQLITE_ROW && n < IDS_MAX)
        stored[n++] = sqlite3_column_int64(at, 0);
    sqlite3_finalize(at);
    sqlite3_close(handle);
    return n;
}

TEST_GROUP("SQLite", open_sqlite, close_shop);

TEST_THAT(on_a_file_whose_instance_is_killed)
{
    start_all();
    for (int round = 0; round < test_size(ROUNDS / 2, 4 * ROUNDS); round++) {
        await_answers(OVERTAKERS);
        sandbox_signal(shop.service, SIGKILL);
        assert_int_equal(sandbox_restart(shop.service), 0);
    }
    await_answers(OVERTAKERS);
    stop_all();
    assert_true(shop_stop(shop.service));
    const size_t n = table_of_sqlite();
    print_message("%zu rows\n", n);
    seen_is_all(n);
}
