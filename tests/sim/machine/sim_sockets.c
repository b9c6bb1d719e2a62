/*
 * The calls of our objects on sockets and eventfds (-Wl,--wrap). hiredis is a shared library, and
 * no call of it is wrapped: its functions that connect are wrapped instead. Its parser is the real
 * one.
 */
#include "sim_epoll.h"
#include "sim_net.h"
#include "sim_poll.h"
#include "sim_sockets.h"
#include "sim_threads.h"

#include <errno.h>
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKET_FIRST = 2000000, SOCKETS_MAX = 256, EVENT_FIRST = 3000000, EVENTS_MAX = 64 };

static struct sim_wire *sockets[SOCKETS_MAX];
static struct sim_wire unconnected; /* of a socket that socket() has made */
static int groups[SOCKETS_MAX];     /* whose that is */
static struct {
    bool open;
    int group;
    uint64_t count;
} events[EVENTS_MAX];

/* NULL: not ours. */
static struct sim_wire *wire_of(int fd)
{
    return fd >= SOCKET_FIRST && fd < SOCKET_FIRST + SOCKETS_MAX ? sockets[fd - SOCKET_FIRST]
                                                                 : NULL;
}

static bool is_event(int fd)
{
    return fd >= EVENT_FIRST && fd < EVENT_FIRST + EVENTS_MAX && events[fd - EVENT_FIRST].open;
}

static short socket_ready(int fd, short wanted)
{
    const struct sim_wire *wire = wire_of(fd);
    short is = 0;
    if (!wire)
        return POLLNVAL;
    if (wire->answered.n > 0 || wire->ended || wire->reset)
        is |= POLLIN;
    if (wire->connected)
        is |= POLLOUT;
    return (short)((is & wanted) | (wire->reset ? POLLHUP : 0));
}

static short event_ready(int fd, short wanted)
{
    if (!is_event(fd))
        return POLLNVAL;
    return events[fd - EVENT_FIRST].count > 0 ? POLLIN & wanted : 0;
}

void sim_sockets_begin(void)
{
    memset(sockets, 0, sizeof sockets);
    memset(events, 0, sizeof events);
    sim_poll_add(SOCKET_FIRST, SOCKETS_MAX, socket_ready);
    sim_poll_add(EVENT_FIRST, EVENTS_MAX, event_ready);
}

bool sim_sockets_close(int fd)
{
    struct sim_wire *wire = wire_of(fd);
    if (wire) {
        sockets[fd - SOCKET_FIRST] = NULL;
        if (wire != &unconnected)
            sim_net_close(wire);
        return true;
    }
    if (!is_event(fd))
        return sim_epoll_close(fd);
    events[fd - EVENT_FIRST].open = false;
    return true;
}

void sim_sockets_kill(int group)
{
    for (int i = 0; i < SOCKETS_MAX; i++)
        if (sockets[i] && groups[i] == group)
            sim_sockets_close(SOCKET_FIRST + i);
    for (int i = 0; i < EVENTS_MAX; i++)
        if (events[i].group == group)
            events[i].open = false;
}

/* -- hiredis connects ------------------------------------------------------------------------- */

redisContext *__wrap_redisConnectWithTimeout(const char *host, int port, const struct timeval wait);
redisContext *__wrap_redisConnectNonBlock(const char *host, int port);
int __wrap_redisFreeKeepFd(redisContext *context);
void __wrap_redisFree(redisContext *context);

static redisContext *failed(redisContext *context, const char *why)
{
    context->err = REDIS_ERR_IO;
    strcpy(context->errstr, why);
    return context;
}

static int new_socket(struct sim_wire *wire)
{
    int i = 0;
    while (sockets[i])
        if (++i == SOCKETS_MAX)
            abort();
    sockets[i] = wire;
    groups[i] = sim_group();
    return SOCKET_FIRST + i;
}

/* Begins to connect. */
static redisContext *dial(const char *host, int port)
{
    redisContext *context = calloc(1, sizeof *context);
    struct sim_wire *wire = sim_net_dial(host, port);
    if (!context || !wire)
        abort();
    wire->fd = context->fd = new_socket(wire);
    return context;
}

redisContext *__wrap_redisConnectWithTimeout(const char *host, int port, const struct timeval wait)
{
    const int64_t until_us = sim_now_us() + (int64_t)wait.tv_sec * 1000000 + wait.tv_usec;
    sim_step();
    redisContext *context = dial(host, port);
    struct sim_wire *wire = wire_of(context->fd);
    while (!wire->connected && sim_now_us() < until_us)
        sim_wait(wire, until_us);
    if (wire->connected && !wire->reset)
        return context;
    failed(context, wire->reset ? "Connection refused" : "Connection timed out");
    sim_sockets_close(context->fd);
    return context;
}

redisContext *__wrap_redisConnectNonBlock(const char *host, int port)
{
    sim_step();
    return dial(host, port);
}

int __wrap_redisFreeKeepFd(redisContext *context)
{
    int fd = context->fd;
    free(context);
    return fd;
}

/* Only what could not connect. */
void __wrap_redisFree(redisContext *context)
{
    free(context);
}

/* -- sockets ---------------------------------------------------------------------------------- */

int __wrap_socket(int family, int type, int protocol);
int __real_socket(int family, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);
int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_getsockopt(int fd, int level, int name, void *ret, socklen_t *size);
int __real_getsockopt(int fd, int level, int name, void *ret, socklen_t *size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *ret, size_t n, int flags);
ssize_t __real_recv(int fd, void *ret, size_t n, int flags);

int __wrap_socket(int family, int type, int protocol)
{
    return family == AF_INET ? new_socket(&unconnected) : __real_socket(family, type, protocol);
}

/* Never blocks. */
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    const struct sockaddr_in *to = (const void *)address;
    char host[INET_ADDRSTRLEN];
    if (wire_of(fd) != &unconnected)
        return __real_connect(fd, address, size);
    sim_step();
    inet_ntop(AF_INET, &to->sin_addr, host, sizeof host);
    struct sim_wire *wire = sim_net_dial(host, ntohs(to->sin_port));
    if (!wire)
        abort();
    wire->fd = fd;
    sockets[fd - SOCKET_FIRST] = wire;
    errno = EINPROGRESS;
    return -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *ret, socklen_t *size)
{
    const struct sim_wire *wire = wire_of(fd);
    if (!wire)
        return __real_getsockopt(fd, level, name, ret, size);
    *(int *)ret = wire->reset ? ECONNREFUSED : 0;
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    struct sim_wire *wire = wire_of(fd);
    if (!wire)
        return __real_setsockopt(fd, level, name, value, size);
    if (level == SOL_SOCKET && name == SO_RCVTIMEO) {
        const struct timeval *limit = value;
        wire->timeout_us = (int64_t)limit->tv_sec * 1000000 + limit->tv_usec;
    }
    return 0;
}

/* 0: it takes bytes. */
static int why_not_written(const struct sim_wire *wire)
{
    if (!wire->connected)
        return EAGAIN;
    return wire->reset ? ECONNRESET : wire->ended ? EPIPE : 0;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct sim_wire *wire = wire_of(fd);
    if (!wire)
        return __real_sendmsg(fd, message, flags);
    sim_step();
    errno = why_not_written(wire);
    if (errno != 0)
        return -1;
    struct sim_bytes all = {0};
    for (size_t i = 0; i < message->msg_iovlen; i++)
        sim_bytes_add(&all, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    /* A full buffer takes a part. */
    size_t n = all.n > 1 && sim_one_in(40) ? 1 + sim_below((uint32_t)all.n - 1) : all.n;
    sim_net_send(wire, all.at, n);
    free(all.at);
    sim_step();
    return (ssize_t)n;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    if (!wire_of(fd))
        return __real_send(fd, bytes, n, flags);
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    return __wrap_sendmsg(fd, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1}, flags);
}

ssize_t __wrap_recv(int fd, void *ret, size_t n, int flags)
{
    struct sim_wire *wire = wire_of(fd);
    if (!wire)
        return __real_recv(fd, ret, n, flags);
    const int64_t until_us = wire->timeout_us > 0 ? sim_now_us() + wire->timeout_us : SIM_FOREVER;
    sim_step();
    while (wire->answered.n == 0) {
        if (wire->ended && !wire->reset)
            return 0;
        errno = wire->reset ? ECONNRESET : EAGAIN;
        if (wire->reset || (flags & MSG_DONTWAIT) || sim_now_us() >= until_us)
            return -1;
        sim_wait(wire, until_us);
    }
    if (n > wire->answered.n)
        n = wire->answered.n;
    memcpy(ret, wire->answered.at, n);
    if (!(flags & MSG_PEEK))
        sim_bytes_take(&wire->answered, n);
    return (ssize_t)n;
}

/* -- eventfds --------------------------------------------------------------------------------- */

int __wrap_eventfd(unsigned count, int flags);
ssize_t __wrap_read(int fd, void *ret, size_t n);
ssize_t __real_read(int fd, void *ret, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __real_write(int fd, const void *bytes, size_t n);

int __wrap_eventfd(unsigned count, int flags)
{
    (void)flags;
    int i = 0;
    while (events[i].open)
        if (++i == EVENTS_MAX)
            abort();
    events[i].open = true;
    events[i].group = sim_group();
    events[i].count = count;
    return EVENT_FIRST + i;
}

ssize_t __wrap_read(int fd, void *ret, size_t n)
{
    if (!is_event(fd))
        return __real_read(fd, ret, n);
    uint64_t *count = &events[fd - EVENT_FIRST].count;
    errno = EAGAIN;
    if (*count == 0)
        return -1;
    memcpy(ret, count, sizeof *count);
    *count = 0;
    return sizeof *count;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    uint64_t more;
    if (!is_event(fd))
        return __real_write(fd, bytes, n);
    memcpy(&more, bytes, sizeof more);
    events[fd - EVENT_FIRST].count += more;
    sim_poll_wake(fd);
    sim_step();
    return sizeof more;
}
