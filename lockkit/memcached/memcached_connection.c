#include "memcached_connection.h"
#include "monotonic.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNAUTHENTICATED "CLIENT_ERROR unauthenticated"
#define LOGIN_ADVICE    "; give its login, user:password, in " LK_MEMCACHED_LOGIN

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

void lk_memcached_disconnect(lk_memcached_connection *connection)
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
        lk_memcached_disconnect(connection);
    return failure;
}

/* Tries the addresses of the name until one answers. */
static lk_status connect_host(const lk_memcached_server *server,
                              lk_memcached_connection *connection)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int failure = getaddrinfo(server->host, server->port, &hints, &found);
    if (failure != 0)
        return lk_memcached_note(connection, LK_UNAVAILABLE, gai_strerror(failure));
    for (const struct addrinfo *at = found; at != NULL && connection->fd < 0; at = at->ai_next)
        failure = connect_address(connection, at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    return failure == 0 ? LK_OK : lk_memcached_note(connection, LK_UNAVAILABLE, strerror(failure));
}

static lk_status connect_there(const lk_memcached_server *server,
                               lk_memcached_connection *connection)
{
    connection->begin = connection->end = 0;
    if (server->local.sun_path[0] == '\0')
        return connect_host(server, connection);
    int failure =
        connect_address(connection, (const struct sockaddr *)&server->local, sizeof server->local);
    return failure == 0 ? LK_OK : lk_memcached_note(connection, LK_UNAVAILABLE, strerror(failure));
}

bool lk_memcached_is_quiet(const lk_memcached_connection *connection)
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

lk_status lk_memcached_ask(lk_memcached_connection *connection, const char *command, size_t length,
                           char line[LK_MEMCACHED_ANSWER_MAX])
{
    atomic_fetch_add_explicit(connection->context->commands, 1, memory_order_relaxed);
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
static lk_status log_in(const lk_memcached_server *server, lk_memcached_connection *connection)
{
    char line[LK_MEMCACHED_ANSWER_MAX];
    if (server->login[0] == '\0')
        return LK_OK;
    lk_status status = write_all(connection, server->login, strlen(server->login));
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
    lk_memcached_disconnect(connection);
    return LK_UNAVAILABLE;
}

lk_status lk_memcached_connect(const lk_memcached_server *server,
                               lk_memcached_connection *connection)
{
    lk_status status = connect_there(server, connection);
    return status == LK_OK ? log_in(server, connection) : status;
}
