/*
 * Clients that go away while their request waits. libmicrohttpd does not look at the socket of a
 * suspended connection, so an epoll of our own does. It reports the client's FIN (EPOLLRDHUP) and a
 * broken connection. It reports data only while the connection is silent at the door. A connection
 * is ended here only if its client waits for the service, listens to events, or has sent nothing.
 * libmicrohttpd itself sees the end of all others.
 */
#include "http_internal.h"

#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 64,    /* per turn */
    WITHDRAW_US = 20000 /* the service looks through all that waits, so not for each client */
};

int gone_open(struct http *http)
{
    http->gone_fd = epoll_create1(EPOLL_CLOEXEC);
    return http->gone_fd >= 0 ? 0 : -1;
}

void gone_close(struct http *http)
{
    if (http->gone_fd >= 0)
        close(http->gone_fd);
}

static bool watch(struct http *http, struct conn *conn, uint32_t what)
{
    struct epoll_event event = {.events = what | EPOLLET, .data.ptr = conn};
    const int action = conn->watch != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(http->gone_fd, action, conn->fd, &event) != 0)
        return false; /* no memory */
    conn->watch = what;
    return true;
}

void gone_watch(struct http *http, struct conn *conn)
{
    if (conn->watch != EPOLLRDHUP)
        watch(http, conn, EPOLLRDHUP);
}

bool gone_watch_silent(struct http *http, struct conn *conn)
{
    return watch(http, conn, EPOLLRDHUP | EPOLLIN);
}

void gone_forget(struct http *http, struct conn *conn)
{
    if (conn->watch != 0)
        epoll_ctl(http->gone_fd, EPOLL_CTL_DEL, conn->fd, NULL);
}

static void take(struct http *http, struct conn *conn, uint32_t what)
{
    const bool left = (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (conn->phase == PHASE_SILENT) {
        door_event(http, conn, (what & EPOLLIN) != 0, left);
        return;
    }
    if (!left)
        return;
    conn->gone = true;
    if (conn->phase == PHASE_SERVICE || conn->phase == PHASE_AUDIT) {
        request_abandon(http, conn);
        http->withdraws = true;
    } else if (conn->phase == PHASE_STREAM) {
        conn_shutdown(http, conn); /* the next tick of the events resumes it */
    }
}

void gone_take(struct http *http)
{
    struct epoll_event events[EVENTS_MAX];
    const int n = epoll_wait(http->gone_fd, events, EVENTS_MAX, 0);
    for (int i = 0; i < n; i++)
        take(http, events[i].data.ptr, events[i].events);
}

int64_t gone_tick(struct http *http, int64_t now_us)
{
    if (!http->withdraws)
        return INT64_MAX;
    if (now_us >= http->withdraw_due_us) {
        http->withdraws = false;
        service_withdraw(http->service);
        http->withdraw_due_us = http_now_us() + WITHDRAW_US;
        return INT64_MAX;
    }
    return http->withdraw_due_us;
}
