/*
 * The door: where connections wait until libmicrohttpd gets them. The order is ours there.
 *
 * The kernel's queue of new connections is first come, first served. A client behind two thousand
 * others waits until all of them are served, and so does a question for liveness. So the door
 * empties that queue, which costs an accept() each, sees what each connection is, and lets a few in
 * per turn of the loop:
 *
 *   probes   have sent a whole question for /livez or /readyz: before all others, and also when
 *            all connections are taken
 *   lines    have sent something else: the lines of addresses in turn (stochastic fairness
 *            queueing, P. E. McKenney, 1990)
 *   left     their clients have ended their sending side. Most want no answer. A few are let in per
 *            spell. If more than LEFT_MAX wait, the oldest is closed.
 *   silent   have sent nothing: they stay. libmicrohttpd has 20 KB for each connection, and no
 *            bound on what it does in a turn when many of them end.
 *
 * If there is no room for a new connection, another one gives way: the oldest silent one, or the
 * last of the longest line. A few silent ones stay, as a probe is silent until its bytes arrive. So
 * the door is open to probes however many wait. A connection that waits to be let in for as long as
 * a request may wait for the service is answered 503.
 *
 * After many new connections the door stays shut for the rest of a millisecond. So a flood takes a
 * bounded part of the thread, and most of its connections have shown by then what they are.
 */
#include "http_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TAKEN_MAX = 64,     /* connections accepted per turn */
    MANY = 8,           /* accepted within a spell: the door stays shut until its end */
    LET_IN_MAX = 16,    /* connections that libmicrohttpd gets per turn, but for those of left */
    PROBES_IN = 8,      /* of them, at most */
    LEFT_IN = 8,        /* connections of left per LEFT_US */
    LEFT_MAX = 32,      /* of them at the door */
    SILENT_FEW = 64,    /* more silent ones give way before connections that have sent bytes */
    SPELL_US = 1000,    /* see MANY */
    LEFT_US = 5000,     /* see LEFT_IN */
    NO_FILE_US = 10000, /* the door stays shut when no descriptor is left */
    PEEK_MAX = 1024,    /* bytes of a probe's head */
    BEYOND = HTTP_BEYOND - 8 /* the rest is for probes */
};

/* Connections that libmicrohttpd has. */
static bool has_place(const struct http *http, int beyond)
{
    const long inside = atomic_load(&http->open_conns) - http->door.n;
    return inside < http->config->connections + beyond;
}

static void line_up(struct http *http, struct conn *conn, struct conn_list *list)
{
    conn->phase = list == &http->phases[PHASE_SILENT] ? PHASE_SILENT : PHASE_DOOR;
    conn->waits_in = list;
    if (conn->phase == PHASE_DOOR)
        conn->lined_up_us = http_now_us();
    conn_list_append(list, conn);
}

void door_close(struct http *http, struct conn *conn)
{
    const int fd = conn->fd;
    conn_list_remove(conn->waits_in, conn);
    http->door.n--;
    conn_forget(http, conn);
    close(fd);
}

static void turn_away(struct http *http, struct conn *conn, uint64_t *counter, const char *why)
{
    char unread[HTTP_HEAD_MAX + HTTP_BODY_MAX];
    const int64_t accepted_us = conn->due_us - http->limits.read_ms * 1000;
    /* with unread bytes close() resets the connection, and its client may lose the answer */
    recv(conn->fd, unread, sizeof(unread), MSG_DONTWAIT);
    answer_straight(http, conn, PROBLEM_OVERLOADED, why, http_now_us() - accepted_us);
    ++*counter;
    door_close(http, conn);
}

static void let_in(struct http *http, struct conn *conn)
{
    const struct sockaddr *from = (const struct sockaddr *)(const void *)&conn->from;
    conn_list_remove(conn->waits_in, conn);
    http->door.n--;
    http->door.enters = conn; /* conn_opened_or_closed() takes it */
    MHD_add_connection(http->daemon, conn->fd, from,
                       from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                  : sizeof(struct sockaddr_in6));
    if (http->door.enters != NULL) /* no memory: libmicrohttpd has closed the socket */
        conn_forget(http, conn);
    http->door.enters = NULL;
}

/* -- what a connection is -----------------------------------------------------------------------
 */

/* A whole question, as libmicrohttpd would wait for the rest. */
static bool is_probe(int fd)
{
    static const char *const asks[] = {"GET /livez ", "GET /readyz "};
    char head[PEEK_MAX + 1];
    const ssize_t n = recv(fd, head, PEEK_MAX, MSG_PEEK | MSG_DONTWAIT);
    head[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
        if (strncmp(head, asks[i], strlen(asks[i])) == 0)
            return strstr(head, "\r\n\r\n") != NULL &&
                   strcasestr(head, "\ncontent-length") == NULL &&
                   strcasestr(head, "\ntransfer-encoding") == NULL;
    return false;
}

static bool says_something(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void sort_in(struct http *http, struct conn *conn, bool speaks, bool left)
{
    struct door *door = &http->door;
    conn->gone = conn->gone || left;
    if (left)
        line_up(http, conn, &door->left);
    else if (!speaks && gone_watch_silent(http, conn))
        line_up(http, conn, &http->phases[PHASE_SILENT]);
    else
        line_up(http, conn, is_probe(conn->fd) ? &door->probes : &door->lines[conn->line]);
}

void door_event(struct http *http, struct conn *conn, bool speaks, bool left)
{
    if (left && !says_something(conn->fd)) {
        door_close(http, conn);
        return;
    }
    conn_list_remove(conn->waits_in, conn);
    sort_in(http, conn, speaks, left);
}

/* -- from the kernel's queue --------------------------------------------------------------------
 */

static bool has_room(const struct http *http)
{
    return atomic_load(&http->open_conns) < http->config->connections + DOOR_MAX;
}

/* NULL: none at the door gives way to a new one. */
static struct conn *gives_way(const struct http *http)
{
    const struct conn_list *silent = &http->phases[PHASE_SILENT], *longest = http->door.lines;
    for (int i = 1; i < DOOR_LINES; i++)
        if (http->door.lines[i].n > longest->n)
            longest = &http->door.lines[i];
    return silent->n > SILENT_FEW || longest->n == 0 ? silent->first : longest->last;
}

static void make_room(struct http *http)
{
    struct conn *conn = gives_way(http);
    if (conn != NULL)
        turn_away(http, conn, &http->metrics.gave_way,
                  conn->phase == PHASE_SILENT ? "all connections are taken, and this one is silent"
                                              : "all connections are taken, and too many wait");
}

/* Accepts connections. Returns how many of them are at the door, and asks the kernel about each. */
static int accept_some(struct http *http, struct conn **conns, struct pollfd *polls, int64_t now_us)
{
    int n = 0;
    for (int i = 0; i < TAKEN_MAX && (has_room(http) || gives_way(http) != NULL); i++) {
        struct sockaddr_in6 from = {0};
        socklen_t size = sizeof(from);
        const int fd = accept4(http->listen_fd, (struct sockaddr *)(void *)&from, &size,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR) {
            if (errno != EAGAIN)
                http->door.shut_until_us = now_us + NO_FILE_US;
            break;
        }
        http->door.taken++;
        if (fd < 0)
            continue;
        conns[n] = conn_accepted(http, fd, &from);
        if (conns[n] == NULL) {
            close(fd);
            continue;
        }
        if (atomic_load(&http->open_conns) > http->config->connections + DOOR_MAX)
            make_room(http);
        http->door.n++;
        polls[n++] = (struct pollfd){.fd = fd, .events = POLLIN | POLLRDHUP};
    }
    if (n > 0 && poll(polls, (nfds_t)n, 0) < 0)
        for (int i = 0; i < n; i++)
            polls[i].revents = 0;
    return n;
}

static void take(struct http *http, int64_t now_us)
{
    struct door *door = &http->door;
    struct conn *conns[TAKEN_MAX];
    struct pollfd polls[TAKEN_MAX];
    if (now_us - door->spell_us >= SPELL_US) {
        door->spell_us = now_us;
        door->taken = 0;
    }
    const int n = accept_some(http, conns, polls, now_us);
    for (int i = 0; i < n; i++)
        sort_in(http, conns[i], (polls[i].revents & POLLIN) != 0,
                (polls[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
    if (door->taken >= MANY && door->shut_until_us <= now_us)
        door->shut_until_us = door->spell_us + SPELL_US;
}

/* -- in order -----------------------------------------------------------------------------------
 */

/* The first of the next line, so that each line has its turn. */
static struct conn *first_of_lines(struct door *door)
{
    for (int i = 0; i < DOOR_LINES; i++) {
        const struct conn_list *line = &door->lines[door->next_line];
        door->next_line = (door->next_line + 1) % DOOR_LINES;
        if (line->first != NULL)
            return line->first;
    }
    return NULL;
}

static void let_left_in(struct http *http, int64_t now_us)
{
    struct door *door = &http->door;
    if (door->left.first != NULL && now_us >= door->left_from_us) {
        for (int n = 0; n < LEFT_IN && door->left.first != NULL && has_place(http, BEYOND); n++)
            let_in(http, door->left.first);
        door->left_from_us = now_us + LEFT_US;
    }
    while (door->left.n > LEFT_MAX) {
        http->metrics.abandoned++;
        door_close(http, door->left.first);
    }
}

/* Returns whether more can be let in with the next turn. */
static bool let_some_in(struct http *http)
{
    struct door *door = &http->door;
    struct conn *conn;
    int n = 0;
    for (; n < PROBES_IN && door->probes.first != NULL && has_place(http, HTTP_BEYOND); n++)
        let_in(http, door->probes.first);
    for (; n < LET_IN_MAX && has_place(http, BEYOND); n++) {
        if ((conn = first_of_lines(door)) == NULL)
            break;
        let_in(http, conn);
    }
    return n == LET_IN_MAX || (n == PROBES_IN && door->probes.first != NULL);
}

/* Ends connections that have waited too long. Returns when the next one is due. */
static int64_t expire(struct http *http, struct conn_list *list, int64_t now_us, long *may_end)
{
    const int64_t allowance_us = conn_allowance_us(http, PHASE_DOOR);
    while (list->first != NULL && list->first->lined_up_us + allowance_us <= now_us) {
        if ((*may_end)-- <= 0)
            return now_us;
        turn_away(http, list->first, &http->metrics.timed_out,
                  "all connections were taken for too long; nothing was changed: try again");
    }
    return list->first != NULL ? list->first->lined_up_us + allowance_us : INT64_MAX;
}

static int64_t expire_all(struct http *http, int64_t now_us)
{
    struct door *door = &http->door;
    long may_end = conn_ended_max(http);
    const int64_t probes_us = expire(http, &door->probes, now_us, &may_end);
    const int64_t left_us = expire(http, &door->left, now_us, &may_end);
    int64_t next_us = probes_us < left_us ? probes_us : left_us;
    for (int i = 0; i < DOOR_LINES && door->n > 0; i++) {
        const int64_t due_us = expire(http, &door->lines[i], now_us, &may_end);
        if (due_us < next_us)
            next_us = due_us;
    }
    return next_us;
}

int64_t door_turn(struct http *http, int64_t now_us, bool any_new)
{
    struct door *door = &http->door;
    if (door_is_open(http, now_us) && (any_new || door->shut_until_us > 0)) {
        door->shut_until_us = 0;
        take(http, now_us);
    }
    let_left_in(http, now_us);
    const bool more = let_some_in(http);
    int64_t due_us = expire_all(http, now_us);
    if (more)
        return now_us;
    if (door->left.first != NULL && door->left_from_us < due_us)
        due_us = door->left_from_us;
    if (http->listen_fd >= 0 && now_us < door->shut_until_us && door->shut_until_us < due_us)
        due_us = door->shut_until_us;
    return due_us;
}

bool door_is_open(const struct http *http, int64_t now_us)
{
    return http->listen_fd >= 0 && now_us >= http->door.shut_until_us &&
           (has_room(http) || gives_way(http) != NULL);
}

void door_end(struct http *http, bool lets_in)
{
    struct door *door = &http->door;
    struct conn *conn;
    if (http->listen_fd >= 0)
        close(http->listen_fd);
    http->listen_fd = -1;
    while ((conn = door->probes.first) != NULL || (conn = first_of_lines(door)) != NULL)
        (lets_in ? let_in : door_close)(http, conn);
    while ((conn = door->left.first) != NULL || (conn = http->phases[PHASE_SILENT].first) != NULL)
        door_close(http, conn);
}
