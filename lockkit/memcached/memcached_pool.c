#include "memcached_pool.h"
#include "login.h"
#include "monotonic.h"
#include "number.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* After this time without traffic a connection is tested before it is used. */
enum { IDLE_US = 1000, US_PER_MS = 1000, PORT_MAX = 65535 };
enum { LK_MEMCACHED_LOGIN_MAX = 2 * LK_LOGIN_MAX + 64 };

#define UNAUTHENTICATED "CLIENT_ERROR unauthenticated"
#define LOGIN_ADVICE    "; give its login, user:password, in " LK_MEMCACHED_LOGIN

struct lk_memcached_connection {
    const lk_context *context;
    int fd; /* -1: closed */
    int64_t deadline_us, used_us;
    size_t begin, end; /* received and not yet read */
    char received[LK_MEMCACHED_ANSWER_MAX];
    lk_memcached_connection *next; /* free ones */
};

struct lk_memcached_pool {
    const lk_context *context;
    char host[LK_MEMCACHED_HOST_MAX + 1], port[8];
    struct sockaddr_un local; /* sun_path "": TCP */
    int64_t timeout_us;
    char login[LK_MEMCACHED_LOGIN_MAX]; /* the command; "": no login */

    pthread_mutex_t mutex; /* guards free */
    pthread_cond_t returned;
    lk_memcached_connection *free;
    lk_memcached_connection connections[LK_MEMCACHED_CONNECTIONS_MAX];
};

/* -- one connection ---------------------------------------------------------------------------- */

static bool ready(const lk_memcached_connection *connection, short events)
{
    for (;;) {
        int64_t left_us = connection->deadline_us - lk_monotonic_us();
        left_us = left_us < 0 ? 0 : left_us;
        struct timespec limit = lk_timespec(left_us);
        struct pollfd watched = {.fd = connection->fd, .events = events};
        int n = ppoll(&watched, 1, &limit, NULL);
        if (n >= 0 || errno != EINTR)
            return n > 0;
    }
}

lk_status lk_memcached_note(const lk_memcached_connection *connection, lk_status status,
                            const char *what)
{
    return lk_note(connection->context, status, "memcached at %.200s: %.200s",
                   connection->context->endpoints, what);
}

static void disconnect(lk_memcached_connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
}

/* 0, or as errno. */
static int connect_address(lk_memcached_connection *connection, const struct sockaddr *address,
                           socklen_t size)
{
    int on = 1, failure = 0;
    socklen_t length = sizeof failure;
    connection->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection->fd < 0)
        return errno;
    if (address->sa_family != AF_UNIX) {
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    if (connect(connection->fd, address, size) == 0)
        return 0;
    if (errno != EINPROGRESS)
        failure = errno;
    else if (!ready(connection, POLLOUT))
        failure = ETIMEDOUT;
    else if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0)
        failure = errno;
    if (failure != 0)
        disconnect(connection);
    return failure;
}

/* Tries the addresses of the name until one answers. */
static lk_status connect_host(const lk_memcached_pool *pool, lk_memcached_connection *connection)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int failure = getaddrinfo(pool->host, pool->port, &hints, &found);
    if (failure != 0)
        return lk_memcached_note(connection, LK_UNAVAILABLE, gai_strerror(failure));
    for (const struct addrinfo *at = found; at != NULL && connection->fd < 0; at = at->ai_next)
        failure = connect_address(connection, at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    return failure == 0 ? LK_OK : lk_memcached_note(connection, LK_UNAVAILABLE, strerror(failure));
}

static lk_status connect_there(const lk_memcached_pool *pool, lk_memcached_connection *connection)
{
    connection->begin = connection->end = 0;
    if (pool->local.sun_path[0] == '\0')
        return connect_host(pool, connection);
    int failure =
        connect_address(connection, (const struct sockaddr *)&pool->local, sizeof pool->local);
    return failure == 0 ? LK_OK : lk_memcached_note(connection, LK_UNAVAILABLE, strerror(failure));
}

/* The server has sent nothing unasked and has not closed the connection. */
static bool is_quiet(const lk_memcached_connection *connection)
{
    char byte;
    ssize_t n = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static lk_status write_all(lk_memcached_connection *connection, const char *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t n = send(connection->fd, bytes + done, length - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (ready(connection, POLLOUT))
                continue;
            errno = ETIMEDOUT;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lk_memcached_note(connection, done == 0 ? LK_UNAVAILABLE : LK_UNKNOWN,
                                     strerror(errno));
        done += (size_t)n;
    }
    return LK_OK;
}

/* Waits for bytes and takes them. *late: the deadline had passed before the last ones came. Bytes
 * that came while this process slept past the deadline are still taken, but only once: a server
 * that dribbles must not hold the caller. */
static lk_status receive(lk_memcached_connection *connection, bool *late)
{
    memmove(connection->received, connection->received + connection->begin,
            connection->end - connection->begin);
    connection->end -= connection->begin;
    connection->begin = 0;
    if (connection->end == sizeof connection->received)
        return lk_memcached_note(connection, LK_PROTOCOL, "an answer without an end");
    if (*late || !ready(connection, POLLIN))
        return lk_memcached_note(connection, LK_UNKNOWN, "no answer in time");
    *late = lk_monotonic_us() >= connection->deadline_us;
    ssize_t n = recv(connection->fd, connection->received + connection->end,
                     sizeof connection->received - connection->end, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return LK_OK;
    if (n <= 0)
        return lk_memcached_note(connection, LK_UNKNOWN,
                                 n == 0 ? "it closed the connection" : strerror(errno));
    connection->end += (size_t)n;
    return LK_OK;
}

/* The next `length` bytes as a text. */
static void take_text(lk_memcached_connection *connection, size_t length, char *ret)
{
    memcpy(ret, connection->received + connection->begin, length);
    ret[length] = '\0';
    connection->begin += length;
}

lk_status lk_memcached_line(lk_memcached_connection *connection, char line[LK_MEMCACHED_ANSWER_MAX])
{
    for (bool late = false;;) {
        const char *begin = connection->received + connection->begin;
        const char *last = memchr(begin, '\n', connection->end - connection->begin);
        if (last != NULL) { /* the lines of a dump end without CR */
            bool cr = last > begin && last[-1] == '\r';
            take_text(connection, (size_t)(last - begin) - cr, line);
            connection->begin += cr + 1U;
            return LK_OK;
        }
        lk_status status = receive(connection, &late);
        if (status != LK_OK)
            return status;
    }
}

lk_status lk_memcached_value(lk_memcached_connection *connection, size_t length,
                             char value[LK_MEMCACHED_ANSWER_MAX])
{
    assert(length + 2 < LK_MEMCACHED_ANSWER_MAX);
    for (bool late = false; connection->end - connection->begin < length + 2;) {
        lk_status status = receive(connection, &late);
        if (status != LK_OK)
            return status;
    }
    take_text(connection, length, value);
    connection->begin += 2;
    return memcmp(connection->received + connection->begin - 2, "\r\n", 2) == 0 ? LK_OK
                                                                                : LK_PROTOCOL;
}

lk_status lk_memcached_ask(lk_memcached_pool *pool, lk_memcached_connection *connection,
                           const char *command, size_t length, char line[LK_MEMCACHED_ANSWER_MAX])
{
    atomic_fetch_add_explicit(pool->context->commands, 1, memory_order_relaxed);
    lk_status status = write_all(connection, command, length);
    if (status == LK_OK)
        status = lk_memcached_line(connection, line);
    if (status != LK_OK)
        return status;
    if (strncmp(line, "SERVER_ERROR", 12) == 0)
        return lk_memcached_note(connection, LK_UNAVAILABLE, line);
    if (strcmp(line, UNAUTHENTICATED) == 0) /* nothing was done */
        return lk_memcached_note(connection, LK_UNAVAILABLE, UNAUTHENTICATED LOGIN_ADVICE);
    if (strcmp(line, "ERROR") == 0 || strncmp(line, "CLIENT_ERROR", 12) == 0)
        return lk_memcached_note(connection, LK_PROTOCOL, line);
    return LK_OK;
}

/* LK_OK; LK_UNAVAILABLE: nothing but the login was sent, so no outcome is unknown. */
static lk_status log_in(const lk_memcached_pool *pool, lk_memcached_connection *connection)
{
    char line[LK_MEMCACHED_ANSWER_MAX];
    if (pool->login[0] == '\0')
        return LK_OK;
    lk_status status = write_all(connection, pool->login, strlen(pool->login));
    if (status == LK_OK)
        status = lk_memcached_line(connection, line);
    if (status == LK_OK && strcmp(line, "STORED") != 0) {
        char what[LK_MESSAGE_MAX];
        snprintf(what, sizeof what, "refuses the login: %.60s%s", line,
                 strncmp(line, "CLIENT_ERROR", 12) == 0 ? LOGIN_ADVICE : "");
        status = lk_memcached_note(connection, LK_UNAVAILABLE, what);
    }
    if (status == LK_OK)
        return LK_OK;
    disconnect(connection);
    return LK_UNAVAILABLE;
}

static lk_status connect_to(const lk_memcached_pool *pool, lk_memcached_connection *connection)
{
    lk_status status = connect_there(pool, connection);
    return status == LK_OK ? log_in(pool, connection) : status;
}

/* -- lending ----------------------------------------------------------------------------------- */

lk_memcached_connection *lk_memcached_take(lk_memcached_pool *pool)
{
    int64_t until_us = lk_monotonic_us() + pool->timeout_us;
    pthread_mutex_lock(&pool->mutex);
    while (pool->free == NULL && lk_wait_until(&pool->returned, &pool->mutex, until_us))
        continue;
    lk_memcached_connection *connection = pool->free;
    if (connection != NULL)
        pool->free = connection->next;
    pthread_mutex_unlock(&pool->mutex);
    if (connection == NULL) {
        lk_note(pool->context, LK_UNAVAILABLE, "all %d connections to memcached stayed in use",
                LK_MEMCACHED_CONNECTIONS_MAX);
        return NULL;
    }
    int64_t start_us = lk_monotonic_us();
    connection->deadline_us = start_us + pool->timeout_us;
    if (connection->fd >= 0 && start_us - connection->used_us > IDLE_US && !is_quiet(connection))
        disconnect(connection);
    if (connection->fd >= 0 || connect_to(pool, connection) == LK_OK)
        return connection;
    lk_memcached_give(pool, connection, false);
    return NULL;
}

void lk_memcached_give(lk_memcached_pool *pool, lk_memcached_connection *connection, bool usable)
{
    if (!usable || connection->begin != connection->end) /* more answers than questions */
        disconnect(connection);
    connection->used_us = lk_monotonic_us();
    pthread_mutex_lock(&pool->mutex);
    connection->next = pool->free;
    pool->free = connection;
    pthread_cond_signal(&pool->returned);
    pthread_mutex_unlock(&pool->mutex);
}

/* -- opening and closing ----------------------------------------------------------------------- */

static lk_status parse_tcp(lk_memcached_pool *pool, const char *text, lk_error *error)
{
    const char *host = text, *end, *port = NULL;
    if (text[0] == '[') {
        host = text + 1;
        end = strchr(text, ']');
        port = end == NULL || end[1] == '\0' ? NULL : end + 1;
    } else {
        end = strchr(text, ':');
        port = end;
        end = end == NULL ? text + strlen(text) : end;
    }
    if (end == NULL || end == host || (size_t)(end - host) > LK_MEMCACHED_HOST_MAX)
        return lk_fail(error, LK_INVALID, "no host in the memcached endpoint, or one too long");
    memcpy(pool->host, host, (size_t)(end - host));
    int number = LK_MEMCACHED_PORT;
    if (port != NULL) {
        const char *rest = *port == ':' ? lk_digits(port + 1, PORT_MAX, &number) : NULL;
        if (rest == NULL || *rest != '\0' || number == 0)
            return lk_fail(error, LK_INVALID, "bad port in the memcached endpoint: use HOST:PORT");
    }
    snprintf(pool->port, sizeof pool->port, "%d", number);
    return LK_OK;
}

static lk_status parse(lk_memcached_pool *pool, const char *text, lk_error *error)
{
    static const char local[] = "unix://";
    if (text == NULL || text[0] == '\0')
        return lk_fail(error, LK_INVALID, "memcached needs an endpoint: HOST:PORT");
    if (strchr(text, ',') != NULL)
        return lk_fail(error, LK_INVALID,
                       "memcached takes one host: clients with different lists, or one that takes "
                       "a host for dead, would hold the same key on different hosts");
    if (strncmp(text, local, sizeof local - 1) != 0)
        return parse_tcp(pool, text, error);
    text += sizeof local - 1;
    if (text[0] != '/' || strlen(text) >= sizeof pool->local.sun_path)
        return lk_fail(error, LK_INVALID, "a unix endpoint needs an absolute path, not too long");
    pool->local.sun_family = AF_UNIX;
    strcpy(pool->local.sun_path, text);
    return LK_OK;
}

/* memcached separates user and password by a space. A server without --auth-file takes the login
 * for a value. The value expires at once, so no other client can read it. */
static lk_status read_login(lk_memcached_pool *pool, lk_error *error)
{
    lk_login login;
    const char *wrong = lk_login_read(LK_MEMCACHED_LOGIN, &login);
    if (wrong == NULL && login.password[0] != '\0' &&
        (login.user[0] == '\0' || strchr(login.user, ' ') != NULL ||
         strchr(login.password, ' ') != NULL))
        wrong = "has no user or has a space, which memcached does not take";
    if (wrong != NULL)
        return lk_fail(error, LK_INVALID,
                       "the environment variable %s %s: give \"user:password\", of at most %d "
                       "bytes each",
                       LK_MEMCACHED_LOGIN, wrong, LK_LOGIN_MAX);
    if (login.password[0] != '\0')
        snprintf(pool->login, sizeof pool->login, "set lockkit_login 0 -1 %zu\r\n%s %s\r\n",
                 strlen(login.user) + 1 + strlen(login.password), login.user, login.password);
    return LK_OK;
}

lk_status lk_memcached_open(const lk_context *context, lk_memcached_pool **ret, lk_error *error)
{
    lk_memcached_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for memcached connections");
    lk_status status = parse(pool, context->endpoints, error);
    if (status == LK_OK)
        status = read_login(pool, error);
    if (status != LK_OK) {
        free(pool);
        return status;
    }
    pthread_cond_init(&pool->returned, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    pool->context = context;
    pool->timeout_us = context->options->command_timeout_ms * US_PER_MS;
    for (int i = 0; i < LK_MEMCACHED_CONNECTIONS_MAX; i++) {
        pool->connections[i] =
            (lk_memcached_connection){.context = context, .fd = -1, .next = pool->free};
        pool->free = &pool->connections[i];
    }
    *ret = pool;
    return LK_OK;
}

void lk_memcached_close(lk_memcached_pool *pool)
{
    for (int i = 0; i < LK_MEMCACHED_CONNECTIONS_MAX; i++)
        disconnect(&pool->connections[i]);
    pthread_cond_destroy(&pool->returned);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}
