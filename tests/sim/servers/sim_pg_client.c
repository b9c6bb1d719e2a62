/* libpq's calls, of our objects: a connection is a struct pg_conn, results are libpq's own. */
#include "sim_pg_model.h"
#include "sim_poll.h"
#include "sim_threads.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_US = 2000 };

static struct pg_conn *conns[PG_FDS_MAX];
static int n_conns;

static struct pg_conn *of(const PGconn *handle)
{
    return (struct pg_conn *)(uintptr_t)handle;
}

/* -- from the server --------------------------------------------------------------------------- */

void pg_answer(struct pg_conn *conn, PGresult *result)
{
    if (conn->closed || conn->broken) {
        PQclear(result);
        return;
    }
    struct pg_answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        abort();
    answer->result = result;
    *conn->answers_end = answer;
    conn->answers_end = &answer->next;
    sim_poll_wake(conn->fd);
}

void pg_break(struct pg_conn *conn)
{
    sim_poll_wake(conn->fd);
}

static short ready(int fd, short events)
{
    const struct pg_conn *conn = conns[fd - PG_FD_FIRST];
    if (sim_now_us() < conn->ready_us)
        return 0;
    short is = conn->broken ? POLLIN | POLLHUP | POLLRDHUP : 0;
    if (conn->answers || conn->status == CONNECTION_STARTED)
        is |= POLLIN;
    return (short)((is | POLLOUT) & (events | POLLHUP));
}

/* -- connecting -------------------------------------------------------------------------------- */

PGconn *__wrap_PQconnectStartParams(const char *const *names, const char *const *values,
                                    int expand);
PostgresPollingStatusType __wrap_PQconnectPoll(PGconn *handle);
ConnStatusType __wrap_PQstatus(const PGconn *handle);
int __wrap_PQsocket(const PGconn *handle);
char *__wrap_PQerrorMessage(const PGconn *handle);
void __wrap_PQfinish(PGconn *handle);
PGVerbosity __wrap_PQsetErrorVerbosity(PGconn *handle, PGVerbosity verbosity);
PQnoticeReceiver __wrap_PQsetNoticeReceiver(PGconn *handle, PQnoticeReceiver f, void *arg);
int __wrap_PQsetnonblocking(PGconn *handle, int on);
int __wrap_PQenterPipelineMode(PGconn *handle);
int __wrap_PQexitPipelineMode(PGconn *handle);
int __wrap_PQbackendPID(const PGconn *handle);
char *__wrap_PQhost(const PGconn *handle);
char *__wrap_PQport(const PGconn *handle);

static void *wake_later(void *arg)
{
    struct pg_conn *conn = arg;
    sim_sleep_us(conn->ready_us - sim_now_us());
    sim_poll_wake(conn->fd);
    return NULL;
}

PGconn *__wrap_PQconnectStartParams(const char *const *names, const char *const *values, int expand)
{
    (void)expand;
    struct pg_conn *conn = calloc(1, sizeof *conn);
    if (!conn || n_conns == PG_FDS_MAX)
        abort();
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], "application_name") == 0)
            snprintf(conn->name, sizeof conn->name, "%s", values[i]);
    conn->fd = PG_FD_FIRST + n_conns;
    conns[n_conns++] = conn;
    conn->group = sim_group();
    conn->messages_end = &conn->messages;
    conn->answers_end = &conn->answers;
    conn->status = CONNECTION_STARTED;
    conn->ready_us = sim_now_us() + sim_below(CONNECT_US);
    sim_poll_add(PG_FD_FIRST, PG_FDS_MAX, ready);
    sim_spawn(conn->group, "connecting", wake_later, conn);
    return (PGconn *)conn;
}

PostgresPollingStatusType __wrap_PQconnectPoll(PGconn *handle)
{
    struct pg_conn *conn = of(handle);
    struct pg_failure failure;
    sim_step();
    if (conn->status == CONNECTION_OK)
        return PGRES_POLLING_OK;
    if (sim_now_us() < conn->ready_us)
        return PGRES_POLLING_READING;
    conn->backend = pg_server_connect(conn, &failure);
    conn->status = conn->backend ? CONNECTION_OK : CONNECTION_BAD;
    if (conn->backend)
        return PGRES_POLLING_OK;
    if (failure.code[0])
        snprintf(conn->error, sizeof conn->error, "connection failed: FATAL:  %s: %s\n",
                 failure.code, failure.message);
    else
        snprintf(conn->error, sizeof conn->error, "connection failed: Connection refused\n");
    return PGRES_POLLING_FAILED;
}

ConnStatusType __wrap_PQstatus(const PGconn *handle)
{
    return of(handle)->status;
}

int __wrap_PQsocket(const PGconn *handle)
{
    return of(handle)->fd;
}

char *__wrap_PQerrorMessage(const PGconn *handle)
{
    return of(handle)->error;
}

static void wake_backend(const struct pg_conn *conn)
{
    if (conn->backend)
        sim_wake(conn->backend, 1);
}

/* Its memory stays, as its server process looks at it. */
static void close_conn(struct pg_conn *conn)
{
    if (conn->closed)
        return;
    conn->closed = conn->eof = true;
    wake_backend(conn);
}

void __wrap_PQfinish(PGconn *handle)
{
    if (handle)
        close_conn(of(handle));
}

void sim_pg_kill(int group)
{
    for (int i = 0; i < n_conns; i++)
        if (conns[i]->group == group)
            close_conn(conns[i]);
}

PGVerbosity __wrap_PQsetErrorVerbosity(PGconn *handle, PGVerbosity verbosity)
{
    (void)handle;
    return verbosity;
}

PQnoticeReceiver __wrap_PQsetNoticeReceiver(PGconn *handle, PQnoticeReceiver f, void *arg)
{
    (void)handle;
    (void)arg;
    return f;
}

int __wrap_PQsetnonblocking(PGconn *handle, int on)
{
    (void)handle;
    (void)on;
    return 0;
}

int __wrap_PQenterPipelineMode(PGconn *handle)
{
    of(handle)->pipeline = true;
    return 1;
}

int __wrap_PQexitPipelineMode(PGconn *handle)
{
    of(handle)->pipeline = false;
    return 1;
}

int __wrap_PQbackendPID(const PGconn *handle)
{
    return of(handle)->backend ? (int)of(handle)->backend->pid : 0;
}

char *__wrap_PQhost(const PGconn *handle)
{
    static char host[] = "model";
    (void)handle;
    return host;
}

char *__wrap_PQport(const PGconn *handle)
{
    static char port[] = "5432";
    (void)handle;
    return port;
}

/* -- messages out ------------------------------------------------------------------------------ */

int __wrap_PQsendPrepare(PGconn *handle, const char *name, const char *text, int n,
                         const Oid *types);
int __wrap_PQsendQuery(PGconn *handle, const char *text);
int __wrap_PQsendQueryPrepared(PGconn *handle, const char *name, int n, const char *const *values,
                               const int *lengths, const int *formats, int result_format);
int __wrap_PQsendQueryParams(PGconn *handle, const char *text, int n, const Oid *types,
                             const char *const *values, const int *lengths, const int *formats,
                             int result_format);
int __wrap_PQpipelineSync(PGconn *handle);
int __wrap_PQflush(PGconn *handle);

static bool is_lost(struct pg_conn *conn)
{
    if (conn->broken && !conn->answers) {
        conn->status = CONNECTION_BAD;
        snprintf(conn->error, sizeof conn->error, "server closed the connection unexpectedly\n");
        return true;
    }
    return false;
}

static struct pg_message *new_message(enum pg_message_kind kind)
{
    struct pg_message *message = calloc(1, sizeof *message);
    if (!message)
        abort();
    message->kind = kind;
    return message;
}

/* A broken connection takes it, and nobody gets it. */
static int send(struct pg_conn *conn, struct pg_message *message)
{
    conn->unanswered++;
    if (conn->eof || conn->broken)
        return 1;
    *conn->messages_end = message;
    conn->messages_end = &message->next;
    wake_backend(conn);
    return 1;
}

int __wrap_PQsendPrepare(PGconn *handle, const char *name, const char *text, int n,
                         const Oid *types)
{
    struct pg_message *message = new_message(PG_PREPARE);
    assert(n <= PG_COLUMNS && strlen(name) < sizeof message->name);
    snprintf(message->name, sizeof message->name, "%s", name);
    message->sql = pg_sql(text);
    memcpy(message->types, types, (size_t)n * sizeof *types);
    return send(of(handle), message);
}

int __wrap_PQsendQuery(PGconn *handle, const char *text)
{
    struct pg_message *message = new_message(PG_QUERY);
    message->sql = pg_sql(text);
    return send(of(handle), message);
}

int __wrap_PQsendQueryPrepared(PGconn *handle, const char *name, int n, const char *const *values,
                               const int *lengths, const int *formats, int result_format)
{
    (void)formats;
    struct pg_message *message = new_message(PG_EXECUTE);
    message->in_text = result_format == 0;
    message->alone = !of(handle)->pipeline;
    snprintf(message->name, sizeof message->name, "%s", name);
    message->n = n;
    for (int i = 0; i < n; i++) {
        const int length = lengths ? lengths[i] : (int)strlen(values[i]);
        char *copy = malloc((size_t)length + 1);
        if (!copy)
            abort();
        memcpy(copy, values[i], (size_t)length);
        copy[length] = '\0';
        message->args[i] = (struct pg_arg){copy, length};
    }
    return send(of(handle), message);
}

/* Settings: without parameters. */
int __wrap_PQsendQueryParams(PGconn *handle, const char *text, int n, const Oid *types,
                             const char *const *values, const int *lengths, const int *formats,
                             int result_format)
{
    (void)types;
    (void)values;
    (void)lengths;
    (void)formats;
    (void)result_format;
    assert(n == 0);
    struct pg_message *message = new_message(PG_EXECUTE);
    message->sql = pg_sql(text);
    message->in_text = true;
    message->alone = !of(handle)->pipeline;
    return send(of(handle), message);
}

int __wrap_PQpipelineSync(PGconn *handle)
{
    return send(of(handle), new_message(PG_SYNC));
}

int __wrap_PQflush(PGconn *handle)
{
    sim_step();
    return is_lost(of(handle)) ? -1 : 0;
}

/* -- answers in -------------------------------------------------------------------------------- */

int __wrap_PQisBusy(PGconn *handle);
int __wrap_PQconsumeInput(PGconn *handle);
PGresult *__wrap_PQgetResult(PGconn *handle);
char *__wrap_PQcmdTuples(PGresult *result);
char *__wrap_PQresultErrorField(const PGresult *result, int field);

int __wrap_PQisBusy(PGconn *handle)
{
    return of(handle)->answers == NULL && of(handle)->unanswered > 0;
}

int __wrap_PQconsumeInput(PGconn *handle)
{
    return !is_lost(of(handle));
}

PGresult *__wrap_PQgetResult(PGconn *handle)
{
    struct pg_conn *conn = of(handle);
    struct pg_answer *answer = conn->answers;
    if (!answer)
        return NULL;
    PGresult *result = answer->result;
    conn->answers = answer->next;
    if (!conn->answers)
        conn->answers_end = &conn->answers;
    free(answer);
    if (!result || PQresultStatus(result) == PGRES_PIPELINE_SYNC)
        conn->unanswered--;
    return result;
}

char *__wrap_PQcmdTuples(PGresult *result)
{
    static char rows[16];
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return PQfname(result, 0);
    snprintf(rows, sizeof rows, "%d", PQntuples(result));
    return rows;
}

char *__wrap_PQresultErrorField(const PGresult *result, int field)
{
    const int column = field == PG_DIAG_SQLSTATE ? 0 : field == PG_DIAG_MESSAGE_PRIMARY ? 1 : 2;
    return PQnfields(result) == 3 ? PQgetvalue(result, 0, column) : NULL;
}
