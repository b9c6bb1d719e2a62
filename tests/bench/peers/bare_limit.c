/*
 * The limit that the service is measured against: an order with everything left out that can be.
 * libmicrohttpd suspends a request; one writer takes up to BATCH of them, takes one Redis lock (SET
 * NX PX, a compare-and-delete script), reads the stock, writes stock, orders and keys in one
 * durable transaction, and lets them be answered. No ledger, no fence, no guard to choose, no check
 * of anything: it is no service, only a ruler. A second ruler writes all that the service keeps of
 * an order, into the same tables: what lies between the two is the price of the books.
 *
 *     bare_limit FILE REDIS_PORT BATCH FULL|NORMAL bare|books     prints its URL, ends at SIGTERM
 */
#include "connect_redis.h"
#include "schema.h"

#include <hiredis/hiredis.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

enum { BATCH_MAX = 1024, KEY_MAX = 256 };

struct order {
    struct MHD_Connection *connection;
    char key[KEY_MAX];
    int64_t number;
    struct order *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct order *first, **last = &first;
static struct order *written; /* to be answered by the HTTP thread */
static int wake_fd;           /* tells it so */

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "bare_limit: %s\n", what);
    exit(1);
}

/* -- HTTP ---------------------------------------------------------------------------------------
 */

static enum MHD_Result answer(struct MHD_Connection *connection, const struct order *order)
{
    char body[128];
    int n = snprintf(body, sizeof body, "{\"order_id\":\"%lld\",\"status\":\"reserved\"}",
                     (long long)order->number);
    struct MHD_Response *response =
        MHD_create_response_from_buffer((size_t)n, body, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result sent = MHD_queue_response(connection, MHD_HTTP_CREATED, response);
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result step(void *context, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *data, size_t *size,
                            void **of_request)
{
    struct order *order = *of_request;
    (void)context, (void)url, (void)method, (void)version, (void)data;
    if (order == NULL) {
        *of_request = calloc(1, sizeof *order);
        return *of_request != NULL ? MHD_YES : MHD_NO;
    }
    if (*size > 0) {
        *size = 0;
        return MHD_YES;
    }
    if (order->connection != NULL)
        return answer(connection, order);
    const char *key = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Idempotency-Key");
    if (key == NULL)
        return MHD_NO;
    strncpy(order->key, key, sizeof order->key - 1);
    order->connection = connection;
    pthread_mutex_lock(&mutex);
    MHD_suspend_connection(connection);
    *last = order;
    last = &order->next;
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&mutex);
    return MHD_YES;
}

static void end(void *context, struct MHD_Connection *connection, void **of_request,
                enum MHD_RequestTerminationCode why)
{
    (void)context, (void)connection, (void)why;
    free(*of_request);
}

/* -- the writer ---------------------------------------------------------------------------------
 */

enum { ROWS_MAX = 3, ID_MAX = 32, ANSWER = 240 /* characters of a stored answer */ };

/* What is kept of an order. */
static const struct books {
    const char *name, *tables, *item, *rows[ROWS_MAX];
} kinds[] = {
    {.name = "bare",
     .tables = "CREATE TABLE items (id TEXT PRIMARY KEY, stock INTEGER) WITHOUT ROWID;"
               "CREATE TABLE orders (id INTEGER PRIMARY KEY, user TEXT, quantity INTEGER);"
               "CREATE TABLE keys (key TEXT PRIMARY KEY, order_id INTEGER) WITHOUT ROWID",
     .item = "INSERT INTO items VALUES ('1', 1000000000)",
     .rows = {"INSERT INTO orders VALUES (:number, 'u1', 1)",
              "INSERT INTO keys VALUES (:key, :number)"}},
    {.name = "books",
     .tables = sqlite_schema_sql,
     .item =
         "INSERT INTO items VALUES ('1', 'redis-token', 1, 1000000000, 1, 0, 0, 1, 1, 1, 1, '')",
     .rows = {"INSERT INTO idempotency VALUES (:key, 'order 1 u1 1', 201, :answer, :at)",
              "INSERT INTO orders VALUES (:id, '1', :id, 1, 1, 0, 1, 1, 1, :at, :at, '')",
              "INSERT INTO ledger VALUES (:number, 'item:1', 1, :number, :key, -1, :stock, "
              ":stock - 1, :number, 'redis-token', 'bare', 'order', :id, '', '', '', :at, '')"}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

struct row {
    sqlite3_stmt *insert;
    int id, key, number, stock, at, answer; /* where they are bound; 0: nowhere */
};

static sqlite3 *store;
static sqlite3_stmt *begin, *commit, *read_stock, *write_stock;
static struct row rows[ROWS_MAX];
static redisContext *redis;

static void sql(const char *text)
{
    if (sqlite3_exec(store, text, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(store));
}

static sqlite3_stmt *prepare(const char *text)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(store, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) !=
        SQLITE_OK)
        die(sqlite3_errmsg(store));
    return statement;
}

static void run(sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE)
        die(sqlite3_errmsg(store));
    sqlite3_reset(statement);
}

static struct row prepare_row(const char *text)
{
    sqlite3_stmt *insert = prepare(text);
    return (struct row){.insert = insert,
                        .id = sqlite3_bind_parameter_index(insert, ":id"),
                        .key = sqlite3_bind_parameter_index(insert, ":key"),
                        .number = sqlite3_bind_parameter_index(insert, ":number"),
                        .stock = sqlite3_bind_parameter_index(insert, ":stock"),
                        .at = sqlite3_bind_parameter_index(insert, ":at"),
                        .answer = sqlite3_bind_parameter_index(insert, ":answer")};
}

static void open_store(const char *path, const char *synchronous, const struct books *books)
{
    char pragma[64];
    snprintf(pragma, sizeof pragma, "PRAGMA synchronous=%s", synchronous);
    if (sqlite3_open(path, &store) != SQLITE_OK)
        die(path);
    sql("PRAGMA journal_mode=WAL");
    sql(pragma);
    sql(books->tables);
    sql(books->item);
    begin = prepare("BEGIN IMMEDIATE");
    commit = prepare("COMMIT");
    read_stock = prepare("SELECT stock FROM items WHERE id = '1'");
    write_stock = prepare("UPDATE items SET stock = ? WHERE id = '1'");
    for (int i = 0; i < ROWS_MAX && books->rows[i] != NULL; i++)
        rows[i] = prepare_row(books->rows[i]);
}

static void bind_text(const struct row *row, int at, const char *text)
{
    if (at > 0)
        sqlite3_bind_text(row->insert, at, text, -1, SQLITE_STATIC);
}

static void bind_int(const struct row *row, int at, int64_t value)
{
    if (at > 0)
        sqlite3_bind_int64(row->insert, at, value);
}

static void write_order(struct order *order, int64_t stock, int64_t at_us)
{
    static int64_t n_orders;
    static char answered[ANSWER + 1];
    char id[ID_MAX];
    memset(answered, 'a', ANSWER);
    order->number = ++n_orders;
    snprintf(id, sizeof id, "%026lld", (long long)order->number);
    for (int i = 0; i < ROWS_MAX && rows[i].insert != NULL; i++) {
        bind_text(&rows[i], rows[i].id, id);
        bind_text(&rows[i], rows[i].key, order->key);
        bind_int(&rows[i], rows[i].number, order->number);
        bind_int(&rows[i], rows[i].stock, stock);
        bind_int(&rows[i], rows[i].at, at_us);
        bind_text(&rows[i], rows[i].answer, answered);
        run(rows[i].insert);
    }
}

static bool ask(redisReply *reply)
{
    bool yes = reply != NULL && (reply->type == REDIS_REPLY_STATUS ||
                                 (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1));
    freeReplyObject(reply);
    return yes;
}

static void write_all(struct order *orders)
{
    static const char release[] = "if redis.call('get',KEYS[1])==ARGV[1] then "
                                  "return redis.call('del',KEYS[1]) else return 0 end";
    static char sha[41];
    if (sha[0] == '\0') {
        redisReply *reply = redisCommand(redis, "SCRIPT LOAD %s", release);
        if (reply == NULL || reply->type != REDIS_REPLY_STRING)
            die("Redis takes no script");
        strncpy(sha, reply->str, sizeof sha - 1);
        freeReplyObject(reply);
    }
    if (!ask(redisCommand(redis, "SET lock:item:1 me NX PX 30000")))
        die("nobody else should hold the lock");
    run(begin);
    if (sqlite3_step(read_stock) != SQLITE_ROW)
        die("no item");
    int64_t stock = sqlite3_column_int64(read_stock, 0);
    sqlite3_reset(read_stock);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t at_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    for (struct order *order = orders; order != NULL; order = order->next)
        write_order(order, stock--, at_us);
    sqlite3_bind_int64(write_stock, 1, stock);
    run(write_stock);
    run(commit);
    if (!ask(redisCommand(redis, "EVALSHA %s 1 lock:item:1 me", sha)))
        die("the lock was lost");
}

static struct order *take(int batch)
{
    pthread_mutex_lock(&mutex);
    while (first == NULL)
        pthread_cond_wait(&arrived, &mutex);
    struct order *taken = first, **rest = &first;
    for (int i = 0; i < batch && *rest != NULL; i++)
        rest = &(*rest)->next;
    first = *rest;
    *rest = NULL;
    if (first == NULL)
        last = &first;
    pthread_mutex_unlock(&mutex);
    return taken;
}

static void give_back(struct order *orders)
{
    struct order *end_of = orders;
    while (end_of->next != NULL)
        end_of = end_of->next;
    pthread_mutex_lock(&mutex);
    end_of->next = written;
    written = orders;
    pthread_mutex_unlock(&mutex);
    if (eventfd_write(wake_fd, 1) != 0)
        die("no wake-up");
}

/* The HTTP thread. libmicrohttpd's own stalls when a multiple of 128 connections is busy. */
static void *serve(void *context)
{
    struct MHD_Daemon *daemon = context;
    struct pollfd waits[] = {
        {.fd = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, .events = POLLIN},
        {.fd = wake_fd, .events = POLLIN}};
    for (;;) {
        MHD_UNSIGNED_LONG_LONG due_ms;
        eventfd_t n;
        MHD_run(daemon);
        bool at_once = MHD_get_timeout(daemon, &due_ms) == MHD_YES && due_ms == 0;
        if (poll(waits, 2, at_once ? 0 : -1) < 0)
            die("no poll");
        if (waits[1].revents == 0)
            continue;
        eventfd_read(wake_fd, &n);
        pthread_mutex_lock(&mutex);
        struct order *order = written;
        written = NULL;
        pthread_mutex_unlock(&mutex);
        for (struct order *next; order != NULL; order = next) {
            next = order->next; /* gone once it is answered */
            MHD_resume_connection(order->connection);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int batch = argc == 6 ? atoi(argv[3]) : 0, kind = 0;
    while (argc == 6 && kind < KINDS && strcmp(argv[5], kinds[kind].name) != 0)
        kind++;
    if (batch < 1 || batch > BATCH_MAX || kind == KINDS)
        die("usage: bare_limit FILE REDIS_PORT BATCH FULL|NORMAL bare|books");
    open_store(argv[1], argv[4], &kinds[kind]);
    redis = connect_redis(atoi(argv[2]));
    if (redis == NULL)
        die("no Redis there");
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, step, NULL, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&local, MHD_OPTION_CONNECTION_LIMIT, 2000U, MHD_OPTION_NOTIFY_COMPLETED,
        end, NULL, MHD_OPTION_END);
    pthread_t thread;
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (daemon == NULL || wake_fd < 0 || pthread_create(&thread, NULL, serve, daemon) != 0)
        die("no HTTP server");
    printf("http://127.0.0.1:%d/\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    for (;;) {
        struct order *orders = take(batch);
        write_all(orders);
        give_back(orders);
    }
}
