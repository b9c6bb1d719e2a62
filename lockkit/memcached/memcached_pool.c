#include "memcached_pool.h"
#include "monotonic.h"

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

/* After this long without traffic a connection is looked at before it is written to. */
enum { IDLE_US = 1000, US_PER_MS = 1000 };

struct lk_memcached_link {
    const lk_context *context;
    int fd; /* -1: closed */
    int64_t deadline_us, used_us;
    size_t begin, end; /* received and not yet read */
    char received[LK_MEMCACHED_ANSWER_MAX];
    lk_memcached_link *next; /* free ones */
};

struct lk_memcached_pool {
    const lk_context *context;
    char host[LK_MEMCACHED_HOST_MAX + 1], port[8];
    struct sockaddr_un local; /* sun_path "": TCP */
    int64_t timeout_us;

    pthread_mutex_t mutex; /* guards free */
    pthread_cond_t returned;
    lk_memcached_link *free;
    lk_memcached_link links[LK_MEMCACHED_LINKS_MAX];
};

/* -- one link ---------------------------------------------------------------------------------- */

static bool ready(const lk_memcached_link *link, short events)
{
    for (;;) {
        int64_t left_us = link->deadline_us - lk_monotonic_us();
        left_us = left_us < 0 ? 0 : left_us;
        struct timespec limit = lk_timespec(left_us);
        struct pollfd watched = {.fd = link->fd, .events = events};
        int n = ppoll(&watched, 1, &limit, NULL);
        if (n >= 0 || errno != EINTR)
            return n > 0;
    }
}

lk_status lk_memcached_note(const lk_memcached_link *link, lk_status status, const char *what)
{
    return lk_note(link->context, status, "memcached at %.200s: %.200s", link->context->endpoints,
                   what);
}

static void hang_up(lk_memcached_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

/* 0, or as errno. */
static int dial_address(lk_memcached_link *link, const struct sockaddr *address, socklen_t size)
{
    int on = 1, failure = 0;
    socklen_t length = sizeof failure;
    link->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd < 0)
        return errno;
    if (address->sa_family != AF_UNIX) {
        setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    if (connect(link->fd, address, size) == 0)
        return 0;
    if (errno != EINPROGRESS)
        failure = errno;
    else if (!ready(link, POLLOUT))
        failure = ETIMEDOUT;
    else if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &failure, &length) != 0)
        failure = errno;
    if (failure != 0)
        hang_up(link);
    return failure;
}

/* Whatever the name stands for, until one can be reached. */
static lk_status dial_host(const lk_memcached_pool *pool, lk_memcached_link *link)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int failure = getaddrinfo(pool->host, pool->port, &hints, &found);
    if (failure != 0)
        return lk_memcached_note(link, LK_UNAVAILABLE, gai_strerror(failure));
    for (const struct addrinfo *at = found; at != NULL && link->fd < 0; at = at->ai_next)
        failure = dial_address(link, at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    return failure == 0 ? LK_OK : lk_memcached_note(link, LK_UNAVAILABLE, strerror(failure));
}

static lk_status dial(const lk_memcached_pool *pool, lk_memcached_link *link)
{
    link->begin = link->end = 0;
    if (pool->local.sun_path[0] == '\0')
        return dial_host(pool, link);
    int failure = dial_address(link, (const struct sockaddr *)&pool->local, sizeof pool->local);
    return failure == 0 ? LK_OK : lk_memcached_note(link, LK_UNAVAILABLE, strerror(failure));
}

/* Nobody has said anything unasked, nor hung up. */
static bool is_quiet(const lk_memcached_link *link)
{
    char byte;
    ssize_t n = recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static lk_status write_all(lk_memcached_link *link, const char *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t n = send(link->fd, bytes + done, length - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (ready(link, POLLOUT))
                continue;
            errno = ETIMEDOUT;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lk_memcached_note(link, done == 0 ? LK_UNAVAILABLE : LK_UNKNOWN,
                                     strerror(errno));
        done += (size_t)n;
    }
    return LK_OK;
}

/* Waits for bytes and takes them. *late: the deadline had passed before the last ones came. What
 * came while this process slept past the deadline is still taken, but only once: a server that
 * dribbles must not keep us. */
static lk_status receive(lk_memcached_link *link, bool *late)
{
    memmove(link->received, link->received + link->begin, link->end - link->begin);
    link->end -= link->begin;
    link->begin = 0;
    if (link->end == sizeof link->received)
        return lk_memcached_note(link, LK_PROTOCOL, "an answer without an end");
    if (*late || !ready(link, POLLIN))
        return lk_memcached_note(link, LK_UNKNOWN, "no answer in time");
    *late = lk_monotonic_us() >= link->deadline_us;
    ssize_t n =
        recv(link->fd, link->received + link->end, sizeof link->received - link->end, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return LK_OK;
    if (n <= 0)
        return lk_memcached_note(link, LK_UNKNOWN, n == 0 ? "it hung up" : strerror(errno));
    link->end += (size_t)n;
    return LK_OK;
}

/* The next `length` bytes as a text. */
static void take_text(lk_memcached_link *link, size_t length, char *ret)
{
    memcpy(ret, link->received + link->begin, length);
    ret[length] = '\0';
    link->begin += length;
}

lk_status lk_memcached_line(lk_memcached_link *link, char line[LK_MEMCACHED_ANSWER_MAX])
{
    for (bool late = false;;) {
        const char *begin = link->received + link->begin;
        const char *last = memchr(begin, '\n', link->end - link->begin);
        if (last != NULL) { /* the lines of a dump end without CR */
            bool cr = last > begin && last[-1] == '\r';
            take_text(link, (size_t)(last - begin) - cr, line);
            link->begin += cr + 1U;
            return LK_OK;
        }
        lk_status status = receive(link, &late);
        if (status != LK_OK)
            return status;
    }
}

lk_status lk_memcached_value(lk_memcached_link *link, size_t length,
                             char value[LK_MEMCACHED_ANSWER_MAX])
{
    assert(length + 2 < LK_MEMCACHED_ANSWER_MAX);
    for (bool late = false; link->end - link->begin < length + 2;) {
        lk_status status = receive(link, &late);
        if (status != LK_OK)
            return status;
    }
    take_text(link, length, value);
    link->begin += 2;
    return memcmp(link->received + link->begin - 2, "\r\n", 2) == 0 ? LK_OK : LK_PROTOCOL;
}

lk_status lk_memcached_ask(lk_memcached_pool *pool, lk_memcached_link *link, const char *command,
                           size_t length, char line[LK_MEMCACHED_ANSWER_MAX])
{
    atomic_fetch_add_explicit(pool->context->commands, 1, memory_order_relaxed);
    lk_status status = write_all(link, command, length);
    if (status == LK_OK)
        status = lk_memcached_line(link, line);
    if (status != LK_OK)
        return status;
    if (strncmp(line, "SERVER_ERROR", 12) == 0)
        return lk_memcached_note(link, LK_UNAVAILABLE, line);
    if (strcmp(line, "ERROR") == 0 || strncmp(line, "CLIENT_ERROR", 12) == 0)
        return lk_memcached_note(link, LK_PROTOCOL, line);
    return LK_OK;
}

/* -- lending ----------------------------------------------------------------------------------- */

lk_memcached_link *lk_memcached_take(lk_memcached_pool *pool)
{
    int64_t until_us = lk_monotonic_us() + pool->timeout_us;
    pthread_mutex_lock(&pool->mutex);
    while (pool->free == NULL && lk_wait_until(&pool->returned, &pool->mutex, until_us))
        continue;
    lk_memcached_link *link = pool->free;
    if (link != NULL)
        pool->free = link->next;
    pthread_mutex_unlock(&pool->mutex);
    if (link == NULL) {
        lk_note(pool->context, LK_UNAVAILABLE, "all %d connections to memcached stayed in use",
                LK_MEMCACHED_LINKS_MAX);
        return NULL;
    }
    int64_t start_us = lk_monotonic_us();
    link->deadline_us = start_us + pool->timeout_us;
    if (link->fd >= 0 && start_us - link->used_us > IDLE_US && !is_quiet(link))
        hang_up(link);
    if (link->fd >= 0 || dial(pool, link) == LK_OK)
        return link;
    lk_memcached_give(pool, link, false);
    return NULL;
}

void lk_memcached_give(lk_memcached_pool *pool, lk_memcached_link *link, bool usable)
{
    if (!usable || link->begin != link->end) /* more answers than questions */
        hang_up(link);
    link->used_us = lk_monotonic_us();
    pthread_mutex_lock(&pool->mutex);
    link->next = pool->free;
    pool->free = link;
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
    char rest;
    if (port != NULL &&
        (sscanf(port, ":%5d%c", &number, &rest) != 1 || number < 1 || number > 65535))
        return lk_fail(error, LK_INVALID, "bad port in the memcached endpoint: use HOST:PORT");
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

lk_status lk_memcached_open(const lk_context *context, lk_memcached_pool **ret, lk_error *error)
{
    lk_memcached_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for memcached connections");
    lk_status status = parse(pool, context->endpoints, error);
    if (status != LK_OK) {
        free(pool);
        return status;
    }
    pthread_cond_init(&pool->returned, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    pool->context = context;
    pool->timeout_us = context->options->command_timeout_ms * US_PER_MS;
    for (int i = 0; i < LK_MEMCACHED_LINKS_MAX; i++) {
        pool->links[i] = (lk_memcached_link){.context = context, .fd = -1, .next = pool->free};
        pool->free = &pool->links[i];
    }
    *ret = pool;
    return LK_OK;
}

void lk_memcached_close(lk_memcached_pool *pool)
{
    for (int i = 0; i < LK_MEMCACHED_LINKS_MAX; i++)
        hang_up(&pool->links[i]);
    pthread_cond_destroy(&pool->returned);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}
