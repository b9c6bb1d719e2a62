/*
 * PostgreSQL's answers as the wire has them, through libpq: to the store (reads, a snapshot, the
 * audit, a transaction and its settling) and to the lock sql-unique. See wire.h.
 *
 * First byte: bit 0 asks the lock, not the store; without bit 1 each connection is set up well
 * before the input's bytes begin; the rest says what is asked first. Whatever the server says, each
 * call returns a status of its list, and a row that is given fits its struct.
 */
#include "db_audit.h"
#include "client.h"
#include "columns.h"
#include "fuzz.h"
#include "postgres.h"
#include "wire.h"

#include <arpa/inet.h>

enum { LOCK = 1, BARE = 2, LOCK_STATEMENTS = 10, STORE_SETTINGS = 5, READS = 10 };

void __wrap_db_sleep_us(int64_t us);
void __wrap_db_sleep_us(int64_t us)
{
    (void)us;
}

/* -- a connection that is set up well ------------------------------------------------------------
 */

struct text {
    size_t n;
    char bytes[2048];
};

static void put(struct text *text, char letter, const char *rest, size_t n)
{
    const uint32_t length = htonl((uint32_t)n + 4);
    FUZZ_CHECK(text->n + n + 5 <= sizeof text->bytes);
    text->bytes[text->n] = letter;
    memcpy(text->bytes + text->n + 1, &length, sizeof length);
    memcpy(text->bytes + text->n + 5, rest, n);
    text->n += n + 5;
}

#define PUT(text, letter, rest) put(text, letter, rest, sizeof(rest) - 1)

static void ready(struct text *text)
{
    PUT(text, 'Z', "I");
    memcpy(text->bytes + text->n, WIRE_NEXT, 2);
    text->n += 2;
}

static void set_up(struct text *text, bool lock)
{
    PUT(text, 'R', "\0\0\0\0");
    PUT(text, 'S', "client_encoding\0UTF8\0");
    PUT(text, 'S', "server_version\00015.0\0");
    PUT(text, 'K', "\0\0\0\7\0\0\0\1");
    ready(text);
    for (int i = 0; i < STORE_SETTINGS && !lock; i++)
        PUT(text, 'C', "SET\0");
    if (lock) {
        PUT(text, '1', "");
        PUT(text, '2', "");
        PUT(text, 'C', "SELECT 1\0");
    } else {
        ready(text);
    }
    for (int i = 0; i < (lock ? LOCK_STATEMENTS : SQL_COUNT); i++)
        PUT(text, '1', "");
    ready(text);
    if (lock)
        return;
    PUT(text, '2', "");
    PUT(text, 'T',
        "\0\2"
        "a\0\0\0\0\0\0\0\0\0\0\24\0\10\377\377\377\377\0\1"
        "b\0\0\0\0\0\0\0\0\0\0\24\0\10\377\377\377\377\0\1");
    PUT(text, 'D', "\0\2\0\0\0\10\0\0\0\0\0\0\0\7\0\0\0\10\0\0\0\0\0\0\0\10");
    PUT(text, 'C', "SELECT 1\0");
    ready(text);
}

/* -- the store -----------------------------------------------------------------------------------
 */

static void check_status(db_status status)
{
    FUZZ_CHECK(status != DB_INVALID && status >= 0);
}

static int each_ledger(void *rows, const db_ledger_row *row)
{
    FUZZ_CHECK(strlen(row->resource) <= DB_RESOURCE_MAX &&
               strlen(row->txn_id) < sizeof row->txn_id);
    return ++*(int *)rows > 100;
}

static int each_order(void *rows, const db_order *order)
{
    FUZZ_CHECK(strlen(order->id) <= DB_ID_MAX);
    return ++*(int *)rows > 100;
}

static int each_audit(void *rows, const db_audit_row *row)
{
    FUZZ_CHECK(strlen(row->resource) <= DB_RESOURCE_MAX);
    return ++*(int *)rows > 100;
}

static db_status work(db_tx *tx, void *item)
{
    const db_put how = {.fence = 1};
    const db_answer answer = {.key = "k", .request = "r", .http_status = 201, .body = "{}"};
    db_ledger_row row = {.resource = "item:1", .txn_id = "k", .guard = "g", .instance = "i"};
    db_status status = db_tx_read_item(tx, "1", true, item);
    if (status == DB_OK)
        status = db_tx_put_item(tx, item, &how);
    if (status == DB_OK)
        status = db_tx_append_ledger(tx, &row);
    return status == DB_OK ? db_tx_insert_answer(tx, &answer) : status;
}

static void check_item(const db_item *item)
{
    FUZZ_CHECK(strlen(item->id) <= DB_ID_MAX && strlen(item->guard) <= DB_GUARD_MAX);
}

static void write_and_settle(db *store)
{
    db_item item = {.id = "1"};
    db_error error = {.message = ""};
    db_job job = {.work = work, .arg = &item, .error = &error};
    db_run_many(store, &job, 1);
    if (job.status == DB_UNKNOWN)
        check_status(db_settle(store, &job.commit_id, 0, &error));
}

static void read_one(db *store, db_reader *reader, int what)
{
    static const char *const names[] = {"a", "b", "c"};
    db_item item = {.id = "1"};
    db_account account = {.id = ""};
    db_order order = {.id = ""};
    db_answer answer = {.key = ""};
    db_expired after = {.id = ""}, expired[3];
    bool found[3];
    int64_t numbers[3];
    db_feed_place place = {0};
    const db_chain_place chain = {0};
    bool more;
    size_t n;
    int rows = 0;
    db_error error = {.message = ""};
    switch (what) {
    case 0:
        if (db_read_item(reader, "1", &item) == DB_OK)
            check_item(&item);
        break;
    case 1:
        if (db_read_account(reader, "1", &account) == DB_OK)
            FUZZ_CHECK(strlen(account.id) <= DB_ID_MAX);
        break;
    case 2:
        if (db_read_order(reader, "1", &order) == DB_OK)
            FUZZ_CHECK(order.state >= DB_RESERVED && order.state <= DB_CLOSED &&
                       strlen(order.user_id) <= DB_ID_MAX);
        break;
    case 3:
        if (db_read_answer(reader, "k", &answer) == DB_OK)
            FUZZ_CHECK((answer.http_status == 0 ||
                        (answer.http_status >= 100 && answer.http_status <= 599)) &&
                       strlen(answer.body) <= DB_BODY_MAX);
        break;
    case 4:
        check_status(db_find_answers(reader, names, 3, found));
        break;
    case 5:
        check_status(db_read_bought(reader, &item, names, 3, numbers));
        check_status(db_read_sold(reader, &item, numbers));
        break;
    case 6:
        if (db_read_expired(reader, 7, &after, expired, 3, &n) == DB_OK)
            FUZZ_CHECK(n <= 3);
        break;
    case 7:
        check_status(db_read_ledger(reader, &place, 10, each_ledger, &rows, &place, &more));
        check_status(db_feed_end(reader, &place));
        check_status(db_read_statement(reader, "item:1", &chain, 10, each_ledger, &rows, &more));
        check_status(db_read_orders(reader, "u1", NULL, 10, each_order, &rows, &more));
        break;
    case 8:
        rows = 0;
        check_status(db_audit(reader, "item:1", each_audit, &rows, &error));
        break;
    default:
        write_and_settle(store);
    }
}

static void ask_store(int first, bool bare)
{
    const db_options options = {.url = "postgres://u@127.0.0.1:1/d?sslmode=disable&pool=2",
                                .busy_ms = 1000};
    db *store;
    db_reader *reader;
    if (bare && db_open(&options, &store, NULL) != DB_OK)
        return;
    if (!bare) { /* as db_open(), without looking at the schema */
        struct pg_store *made = calloc(1, sizeof *made);
        FUZZ_CHECK(made != NULL);
        made->base.engine = &db_engine_postgres;
        made->options = options;
        pool_open(&made->pool);
        FUZZ_CHECK(pg_target_parse(strchr(options.url, ':') + 1, &made->target, NULL) == DB_OK);
        store = &made->base;
    }
    FUZZ_CHECK(db_reader_open(store, &reader, NULL) == DB_OK);
    for (int i = 0; i < READS && !wire_is_over(); i++)
        read_one(store, reader, (first + i) % READS);
    db_reader_close(reader);
    db_close(store);
}

/* -- the lock ------------------------------------------------------------------------------------
 */

static int each_lock(void *rows, const lk_lock_info *info)
{
    FUZZ_CHECK(memchr(info->key, '\0', sizeof info->key) != NULL);
    FUZZ_CHECK(memchr(info->token, '\0', sizeof info->token) != NULL);
    return ++*(int *)rows > 100;
}

static void ask_lock(int first)
{
    const lk_options options = {.command_timeout_ms = 1000};
    lk_hold hold = {.key = "lock:item:1", .token = "fuzz:owner", .lease_ms = 30000};
    lk_attempt attempt = {.hold = &hold, .deadline_us = INT64_MAX, .last = true};
    lk_lock_info info = {.left_ms = INT64_MAX};
    lk_client *client;
    int rows = 0;
    FUZZ_CHECK(lk_open("sql-unique", "postgres://u@127.0.0.1:1/d?sslmode=disable&pool=2", &options,
                       &client, NULL) == LK_OK);
    const lk_provider *provider = client->provider;
    for (int i = 0; i < 8 && !wire_is_over(); i++)
        switch ((first + i) % 8) {
        case 0:
            provider->try_acquire(client->self, &attempt);
            break;
        case 1:
            provider->renew(client->self, &hold, 30000);
            break;
        case 2:
            provider->confirm(client->self, &hold);
            break;
        case 3:
            provider->release(client->self, &hold);
            break;
        case 4:
            if (provider->inspect(client->self, hold.key, &info) == LK_OK && info.holders > 0)
                FUZZ_CHECK(info.left_ms >= 0 && info.token[0] != '\0');
            break;
        case 5:
            provider->list(client->self, "lock:", each_lock, &rows);
            break;
        case 6:
            provider->raise_fence(client->self, hold.key, 7);
            break;
        default:
            provider->force_release(client->self, hold.key);
        }
    lk_close(client);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct text good[2];
    const int how = fuzz_byte(&input, &size);
    const bool lock = (how & LOCK) != 0, bare = (how & BARE) != 0;
    if (good[lock].n == 0)
        set_up(&good[lock], lock);
    wire_begin(input, size, good[lock].bytes, bare ? 0 : good[lock].n);
    if (lock)
        ask_lock(how >> 2);
    else
        ask_store(how >> 2, bare);
    wire_end();
    return 0;
}
