#include "redis_connection.h"

#include "provider.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 16 * 1024, US_PER_MS = 1000, US_PER_S = 1000000, IDLE_US = 1000 };

void lk_redis_connection_init(lk_redis_connection *connection)
{
    *connection = (lk_redis_connection){.fd = -1};
}

void lk_redis_connection_close(lk_redis_connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    if (connection->reader != NULL)
        redisReaderFree(connection->reader);
    connection->fd = -1;
    connection->reader = NULL;
    connection->patience_us = 0;
    connection->n_greetings = 0;
}

__attribute__((format(printf, 3, 4))) static lk_status
failed(lk_redis_connection *connection, lk_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(connection->message, sizeof connection->message, format, args);
    va_end(args);
    return status;
}

/* -- opening ---------------------------------------------------------------------------------- */

/* Takes the descriptor of a connection that hiredis has made. */
static lk_status adopt(lk_redis_connection *connection, const lk_redis_url *url,
                       redisContext *context)
{
    if (url->path[0] != '\0')
        snprintf(connection->server, sizeof connection->server, "%s", url->path);
    else
        snprintf(connection->server, sizeof connection->server, "%s:%d", url->host, url->port);
    if (context == NULL)
        return failed(connection, LK_UNAVAILABLE, "out of memory");
    if (context->err != 0) {
        failed(connection, LK_UNAVAILABLE, "cannot connect to Redis at %s: %s", connection->server,
               context->errstr);
        redisFree(context);
        return LK_UNAVAILABLE;
    }
    connection->fd = redisFreeKeepFd(context);
    fcntl(connection->fd, F_SETFD, FD_CLOEXEC);
    int on = 1;
    setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return LK_OK;
}

static lk_status make_reader(lk_redis_connection *connection)
{
    connection->reader = redisReaderCreateWithFunctions(&lk_redis_reply_functions);
    if (connection->reader != NULL)
        return LK_OK;
    lk_redis_connection_close(connection);
    return failed(connection, LK_UNAVAILABLE, "out of memory");
}

/* While more time is left than this, recv(2) alone waits for an answer: one system call less than
 * with poll(2). It is half of the time there is. The rest is waited for exactly, with poll(2). */
static void be_patient(lk_redis_connection *connection, int64_t deadline_us)
{
    int64_t us = (deadline_us - lk_monotonic_us()) / 2;
    struct timeval limit = {.tv_sec = us / US_PER_S, .tv_usec = us % US_PER_S};
    if (us >= US_PER_MS &&
        setsockopt(connection->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0)
        connection->patience_us =
            us + (connection->spin.most_us > 0 ? connection->spin.most_us : 0);
}

/* hiredis looks up a name before its timeout begins. All callers of a shared connection wait for
 * that. */
static lk_status dial(lk_redis_connection *connection, const lk_redis_url *url, int64_t deadline_us)
{
    int64_t left_us = deadline_us - lk_monotonic_us();
    if (left_us < US_PER_MS)
        left_us = US_PER_MS;
    struct timeval limit = {.tv_sec = left_us / US_PER_S, .tv_usec = left_us % US_PER_S};
    return adopt(connection, url,
                 url->path[0] != '\0' ? redisConnectUnixWithTimeout(url->path, limit)
                                      : redisConnectWithTimeout(url->host, url->port, limit));
}

lk_status lk_redis_connection_begin(lk_redis_connection *connection, const lk_redis_url *url)
{
    assert(connection->fd < 0);
    lk_status status = adopt(connection, url,
                             url->path[0] != '\0' ? redisConnectUnixNonBlock(url->path)
                                                  : redisConnectNonBlock(url->host, url->port));
    return status == LK_OK ? make_reader(connection) : status;
}

struct greeting {
    int n;
    const char *words[3];
};

/* Fills what the URL wants. Returns how many. */
static int greetings_of(const lk_redis_url *url, bool ping, char db[16],
                        struct greeting ret[LK_REDIS_GREETINGS_MAX])
{
    int n = 0;
    snprintf(db, 16, "%d", url->db);
    if (url->user[0] != '\0')
        ret[n++] = (struct greeting){3, {"AUTH", url->user, url->password}};
    else if (url->password[0] != '\0')
        ret[n++] = (struct greeting){2, {"AUTH", url->password}};
    if (url->db != 0)
        ret[n++] = (struct greeting){2, {"SELECT", db}};
    if (ping)
        ret[n++] = (struct greeting){1, {"PING"}};
    return n;
}

lk_status lk_redis_connection_greet(lk_redis_connection *connection, const lk_redis_url *url,
                                    bool ping, int64_t deadline_us)
{
    char db[16];
    struct greeting greetings[LK_REDIS_GREETINGS_MAX];
    lk_redis_encoded commands[LK_REDIS_GREETINGS_MAX];
    struct iovec iov[LK_REDIS_GREETINGS_MAX];
    lk_status status = LK_OK;
    int n = greetings_of(url, ping, db, greetings), made = 0;
    for (; made < n; made++) {
        if (!lk_redis_encode(&commands[made], greetings[made].n, greetings[made].words))
            break;
        connection->greeting[made] = greetings[made].words[0];
        iov[made] =
            (struct iovec){.iov_base = commands[made].bytes, .iov_len = commands[made].length};
    }
    connection->n_greetings = n;
    if (made < n)
        status = failed(connection, LK_UNAVAILABLE, "out of memory");
    else if (n > 0)
        status = lk_redis_connection_write(connection, iov, (size_t)n, deadline_us);
    while (made > 0)
        lk_redis_encoded_free(&commands[--made]);
    return status;
}

/* Without a login, the first command after AUTH is refused: it says NOAUTH. */
static lk_status refused_greeting(lk_redis_connection *connection, const lk_redis_reply *reply)
{
    bool login =
        strcmp(connection->greeting[0], "AUTH") == 0 || strncmp(reply->root.text, "NOAUTH", 6) == 0;
    return failed(connection, LK_UNAVAILABLE, "Redis at %s refuses %s: %.150s%s",
                  connection->server, connection->greeting[0], reply->root.text,
                  login ? LK_REDIS_LOGIN_ADVICE : "");
}

lk_status lk_redis_connection_greeted(lk_redis_connection *connection, lk_redis_reply *reply,
                                      int64_t deadline_us)
{
    while (connection->n_greetings > 0) {
        lk_status status = lk_redis_connection_read(connection, reply, deadline_us);
        if (status != LK_OK)
            return status;
        if (reply->root.type == REDIS_REPLY_ERROR)
            return refused_greeting(connection, reply);
        if (reply->root.type != REDIS_REPLY_STATUS)
            return failed(connection, LK_PROTOCOL, "Redis answered %s with nonsense",
                          connection->greeting[0]);
        connection->n_greetings--;
        memmove(connection->greeting, connection->greeting + 1,
                sizeof connection->greeting - sizeof connection->greeting[0]);
    }
    return LK_OK;
}

lk_status lk_redis_connection_open(lk_redis_connection *connection, const lk_redis_url *url,
                                   int64_t deadline_us)
{
    lk_redis_reply reply;
    assert(connection->fd < 0);
    lk_status status = dial(connection, url, deadline_us);
    if (status == LK_OK)
        status = make_reader(connection);
    if (status != LK_OK)
        return status;
    be_patient(connection, deadline_us);
    status = lk_redis_connection_greet(connection, url, false, deadline_us);
    if (status == LK_OK)
        status = lk_redis_connection_greeted(connection, &reply, deadline_us);
    if (status == LK_OK)
        return LK_OK;
    lk_redis_connection_close(connection);
    /* Only the greeting was sent: no outcome is unknown. */
    return status == LK_PROTOCOL ? LK_PROTOCOL : LK_UNAVAILABLE;
}

static bool is_quiet(const lk_redis_connection *connection)
{
    char byte;
    ssize_t n = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void lk_redis_connection_look(lk_redis_connection *connection)
{
    if (connection->fd >= 0 && lk_monotonic_us() - connection->used_us > IDLE_US &&
        !is_quiet(connection))
        lk_redis_connection_close(connection);
}

/* -- bytes ------------------------------------------------------------------------------------ */

/* Waits for events until the deadline; false when it has passed. */
static bool ready(const lk_redis_connection *connection, short events, int64_t deadline_us)
{
    for (;;) {
        int64_t left_us = deadline_us - lk_monotonic_us();
        if (left_us < 0)
            left_us = 0;
        struct timespec limit = lk_timespec(left_us);
        struct pollfd watched = {.fd = connection->fd, .events = events};
        int n = ppoll(&watched, 1, &limit, NULL);
        if (n >= 0 || errno != EINTR)
            return n > 0;
    }
}

lk_status lk_redis_connection_refused(lk_redis_connection *connection, const lk_redis_reply *reply)
{
    return failed(connection, LK_UNAVAILABLE, "Redis answered: %.200s", reply->root.text);
}

/* A server that refuses a connection says why and closes it, perhaps before anything is written. */
static void say_why_not_written(lk_redis_connection *connection, int error)
{
    lk_redis_reply last = {0};
    bool closed = (error == EPIPE || error == ECONNRESET) && connection->reader != NULL;
    if (closed && lk_redis_connection_read(connection, &last, LK_REDIS_NO_WAIT) == LK_OK &&
        lk_redis_reply_refuses(&last))
        lk_redis_connection_refused(connection, &last);
    else
        failed(connection, LK_UNAVAILABLE, "cannot write to Redis: %s", strerror(error));
}

lk_status lk_redis_connection_write(lk_redis_connection *connection, struct iovec *iov, size_t n,
                                    int64_t deadline_us)
{
    bool begun = false;
    while (n > 0) {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = n};
        ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (ready(connection, POLLOUT, deadline_us))
                continue;
            errno = ETIMEDOUT;
        }
        if (sent < 0) {
            say_why_not_written(connection, errno);
            return begun ? LK_UNKNOWN : LK_UNAVAILABLE;
        }
        begun = true;
        size_t left = (size_t)sent;
        for (; n > 0 && left >= iov->iov_len; iov++, n--)
            left -= iov->iov_len;
        if (n > 0) {
            iov->iov_base = (char *)iov->iov_base + left;
            iov->iov_len -= left;
        }
    }
    return LK_OK;
}

/* Spins, then blocks; for connection->patience_us at most. */
static ssize_t receive_patiently(lk_redis_connection *connection, char *bytes, size_t size)
{
    ssize_t n;
    lk_spinning spinning = lk_spin_begin(&connection->spin);
    if (!lk_spins(&spinning))
        return recv(connection->fd, bytes, size, 0);
    do
        n = recv(connection->fd, bytes, size, MSG_DONTWAIT);
    while (n < 0 && errno == EAGAIN && lk_spin_on(&spinning));
    if (n >= 0 || errno != EAGAIN) {
        lk_spin_found(&spinning);
        return n;
    }
    return recv(connection->fd, bytes, size, 0);
}

/* Until the reader has made an object of what came. */
static lk_status read_object(lk_redis_connection *connection, int64_t deadline_us, void **ret)
{
    redisReader *reader = connection->reader;
    for (bool late = false;;) {
        *ret = NULL;
        if (redisReaderGetReply(reader, ret) != REDIS_OK)
            return failed(connection, LK_PROTOCOL, "Redis answered nonsense: %s", reader->errstr);
        if (*ret != NULL)
            return LK_OK;
        if (reader->len - reader->pos > LK_REDIS_BACKLOG_MAX)
            return failed(connection, LK_PROTOCOL, "Redis answered without an end");
        /* This process may have slept past the deadline. What came meanwhile is taken once, and
         * not again: a server that sends byte by byte must not keep us. */
        int64_t now_us = deadline_us == LK_REDIS_NO_WAIT ? 0 : lk_monotonic_us();
        bool block = connection->patience_us > 0 && deadline_us - now_us > connection->patience_us;
        if (late ||
            (!block && deadline_us != LK_REDIS_NO_WAIT && !ready(connection, POLLIN, deadline_us)))
            return failed(connection, LK_TIMEOUT, "Redis did not answer in time");
        late = !block && lk_monotonic_us() >= deadline_us;
        char bytes[READ_SIZE];
        ssize_t n = block ? receive_patiently(connection, bytes, sizeof bytes)
                          : recv(connection->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
            continue;
        if (n <= 0)
            return failed(connection, LK_UNKNOWN, "Redis hung up: %s",
                          n == 0 ? "end of stream" : strerror(errno));
        if (redisReaderFeed(reader, bytes, (size_t)n) != REDIS_OK)
            return failed(connection, LK_PROTOCOL, "out of memory for an answer of Redis");
    }
}

lk_status lk_redis_connection_read(lk_redis_connection *connection, lk_redis_reply *reply,
                                   int64_t deadline_us)
{
    redisReader *reader = connection->reader;
    void *done;
    if (reader->ridx < 0) /* none begun: otherwise it goes on where LK_TIMEOUT left it */
        reply->used = 0;
    reader->privdata = reply;
    return read_object(connection, deadline_us, &done);
}

lk_status lk_redis_connection_ask(lk_redis_connection *connection, int n, const char **words,
                                  int64_t deadline_us, redisReply **ret)
{
    redisReader *reader = connection->reader;
    lk_redis_encoded command;
    void *done = NULL;
    bool made = lk_redis_encode(&command, n, words);
    redisReader *tree = redisReaderCreate(); /* makes its answers on the heap */
    lk_status status = failed(connection, LK_UNAVAILABLE, "out of memory");
    if (made && tree != NULL) {
        struct iovec iov = {.iov_base = command.bytes, .iov_len = command.length};
        status = lk_redis_connection_write(connection, &iov, 1, deadline_us);
        connection->reader = tree;
        if (status == LK_OK)
            status = read_object(connection, deadline_us, &done);
        connection->reader = reader;
    }
    if (tree != NULL)
        redisReaderFree(tree);
    if (made)
        lk_redis_encoded_free(&command);
    if (status == LK_OK)
        *ret = done;
    return status == LK_TIMEOUT || status == LK_UNKNOWN ? LK_UNAVAILABLE : status;
}

bool lk_redis_connection_leftover(const lk_redis_connection *connection)
{
    return connection->reader->pos != connection->reader->len;
}
