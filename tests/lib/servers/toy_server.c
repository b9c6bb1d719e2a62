#include "toy_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 256 };

struct client {
    TAILQ_ENTRY(client) link; /* all */
    LIST_ENTRY(client) timed; /* clients that wait for due_us */
    bool is_timed;
    int fd;
    int64_t due_us;
    uint32_t requests;
    bool owed; /* a request has no answer yet */
    size_t sent;
    struct toy_reply reply;
    size_t length;
    char text[TOY_REQUEST_MAX + 1];
};

struct toy_server {
    struct toy_options options;
    struct toy_counts counts;
    int listener, epoll_fd, stop_fd;
    int port;
    char url[128];
    pthread_t thread;
    TAILQ_HEAD(, client) clients;
    LIST_HEAD(, client) timed;
};

static int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void toy_ok(struct toy_reply *reply, const char *body)
{
    int n = snprintf(reply->buffer, sizeof reply->buffer,
                     "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
    assert(n < (int)sizeof reply->buffer);
    reply->bytes = reply->buffer;
    reply->length = (size_t)n;
}

static void raise_max(atomic_int *max, int value)
{
    if (value > atomic_load(max)) /* only the server's thread writes it */
        atomic_store(max, value);
}

static void set_timer(struct toy_server *server, struct client *client, int64_t due_us)
{
    client->due_us = due_us;
    if (!client->is_timed)
        LIST_INSERT_HEAD(&server->timed, client, timed);
    client->is_timed = true;
}

static void clear_timer(struct client *client)
{
    if (client->is_timed)
        LIST_REMOVE(client, timed);
    client->is_timed = false;
}

static void settle(struct toy_server *server, struct client *client)
{
    if (client->owed)
        atomic_fetch_sub(&server->counts.owed, 1);
    client->owed = false;
}

static void drop(struct toy_server *server, struct client *client, bool reset)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (reset)
        setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    settle(server, client);
    clear_timer(client);
    close(client->fd);
    TAILQ_REMOVE(&server->clients, client, link);
    atomic_fetch_sub(&server->counts.open, 1);
    free(client);
}

/* Writes the part of the reply that is due; closes if the script says so. False: the client is
 * closed. */
static bool reply_some(struct toy_server *server, struct client *client)
{
    struct toy_reply *reply = &client->reply;
    clear_timer(client);
    while (client->sent < reply->length) {
        size_t left = reply->length - client->sent;
        size_t piece = reply->piece > 0 && reply->piece < left ? reply->piece : left;
        ssize_t n = send(client->fd, reply->bytes + client->sent, piece, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return true; /* EPOLLOUT follows */
        if (n < 0) {
            drop(server, client, false);
            return false;
        }
        client->sent += (size_t)n;
        if (reply->piece > 0 && (client->sent < reply->length || reply->then != TOY_KEEP)) {
            set_timer(server, client, clock_us() + reply->gap_us);
            return true;
        }
    }
    if (reply->then != TOY_KEEP) {
        drop(server, client, reply->then == TOY_RESET);
        return false;
    }
    settle(server, client);
    client->length = 0;
    return true;
}

static bool take_request(struct toy_server *server, struct client *client, const char *body)
{
    struct toy_request request = {.text = client->text,
                                  .body = body,
                                  .number = atomic_fetch_add(&server->counts.requests, 1),
                                  .on_connection = client->requests++};
    client->owed = true;
    raise_max(&server->counts.owed_max, atomic_fetch_add(&server->counts.owed, 1) + 1);
    client->sent = 0;
    memset(&client->reply, 0, offsetof(struct toy_reply, buffer));
    if (server->options.answer != NULL)
        server->options.answer(server->options.ctx, &request, &client->reply);
    else
        toy_ok(&client->reply, "ok");
    if (client->reply.delay_us == 0)
        return reply_some(server, client);
    set_timer(server, client, clock_us() + client->reply.delay_us);
    return true;
}

/* The body if the request is complete, else NULL. */
static const char *whole_request(struct client *client)
{
    client->text[client->length] = '\0';
    char *head_end = strstr(client->text, "\r\n\r\n");
    if (head_end == NULL)
        return NULL;
    const char *body = head_end + 4;
    size_t wanted = 0;
    if (client->text[0] == 'P') { /* only POST and PUT have a body here */
        const char *field = strcasestr(client->text, "\r\nContent-Length:");
        if (field != NULL && field < head_end)
            wanted = strtoul(field + strlen("\r\nContent-Length:"), NULL, 10);
    }
    return (size_t)(client->text + client->length - body) >= wanted ? body : NULL;
}

static void readable(struct toy_server *server, struct client *client)
{
    for (;;) {
        size_t room = TOY_REQUEST_MAX - client->length;
        char surplus[256];
        bool full = client->owed || room == 0;
        ssize_t n = recv(client->fd, full ? surplus : client->text + client->length,
                         full ? sizeof surplus : room, 0);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            if (client->owed)
                atomic_fetch_add(&server->counts.left, 1);
            drop(server, client, false);
            return;
        }
        if (full)
            continue;
        client->length += (size_t)n;
        const char *body = whole_request(client);
        if (body != NULL && !take_request(server, client, body))
            return;
        if (n < (ssize_t)room && body != NULL)
            return; /* a short read: the socket was empty */
    }
}

static void accept_all(struct toy_server *server)
{
    for (;;) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        atomic_fetch_add(&server->counts.accepted, 1);
        if (server->options.close_on_accept) {
            close(fd);
            continue;
        }
        struct client *client = calloc(1, sizeof *client);
        assert(client != NULL);
        int on = 1;
        if (server->options.unix_path == NULL)
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        client->fd = fd;
        TAILQ_INSERT_TAIL(&server->clients, client, link);
        raise_max(&server->counts.open_max, atomic_fetch_add(&server->counts.open, 1) + 1);
        uint32_t events = EPOLLIN | EPOLLET | (server->options.unix_path == NULL ? EPOLLOUT : 0);
        struct epoll_event event = {.events = events, .data.ptr = client};
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
}

static int run_timers(struct toy_server *server)
{
    int64_t now_us = clock_us(), next_us = INT64_MAX;
    struct client *client = LIST_FIRST(&server->timed);
    while (client != NULL) {
        struct client *next = LIST_NEXT(client, timed);
        if (client->due_us <= now_us)
            reply_some(server, client);
        client = next;
    }
    LIST_FOREACH(client, &server->timed, timed)
    if (client->due_us < next_us)
        next_us = client->due_us;
    return next_us == INT64_MAX ? -1
           : next_us <= now_us  ? 0
                                : (int)((next_us - now_us + 999) / 1000);
}

static void *serve(void *arg)
{
    struct toy_server *server = arg;
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int n = epoll_wait(server->epoll_fd, events, EVENTS_MAX, run_timers(server));
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;
            if (events[i].data.ptr == &server->stop_fd)
                return NULL;
            if (events[i].data.ptr == &server->listener)
                accept_all(server);
            else if (client->owed && !client->is_timed && (events[i].events & EPOLLOUT) != 0 &&
                     !reply_some(server, client))
                continue;
            else if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
                readable(server, client);
        }
    }
}

static bool listen_on(struct toy_server *server)
{
    struct sockaddr_in inet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    const char *path = server->options.unix_path;
    struct sockaddr *address = path != NULL ? (struct sockaddr *)&local : (struct sockaddr *)&inet;
    socklen_t size = path != NULL ? sizeof local : sizeof inet;
    if (path != NULL) {
        snprintf(local.sun_path, sizeof local.sun_path, "%s", path);
        unlink(path);
    }
    server->listener = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int backlog = server->options.backlog > 0 ? server->options.backlog : SOMAXCONN;
    if (server->listener < 0 || bind(server->listener, address, size) != 0 ||
        listen(server->listener, backlog) != 0)
        return false;
    if (path != NULL) {
        snprintf(server->url, sizeof server->url, "http+unix://%s", path);
        return true;
    }
    if (getsockname(server->listener, address, &size) != 0)
        return false;
    server->port = ntohs(inet.sin_port);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", server->port);
    return true;
}

static bool watch(struct toy_server *server, int *fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};
    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, *fd, &event) == 0;
}

struct toy_server *toy_start(const struct toy_options *options)
{
    struct toy_server *server = calloc(1, sizeof *server);
    assert(server != NULL);
    server->options = *options;
    TAILQ_INIT(&server->clients);
    LIST_INIT(&server->timed);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (!listen_on(server) || !watch(server, &server->listener) ||
        !watch(server, &server->stop_fd) ||
        pthread_create(&server->thread, NULL, serve, server) != 0) {
        perror("toy server");
        close(server->listener);
        close(server->epoll_fd);
        close(server->stop_fd);
        free(server);
        return NULL;
    }
    return server;
}

void toy_stop(struct toy_server *server)
{
    eventfd_write(server->stop_fd, 1);
    pthread_join(server->thread, NULL);
    struct client *client;
    while ((client = TAILQ_FIRST(&server->clients)) != NULL)
        drop(server, client, false);
    close(server->listener);
    close(server->epoll_fd);
    close(server->stop_fd);
    if (server->options.unix_path != NULL)
        unlink(server->options.unix_path);
    free(server);
}

const char *toy_url(const struct toy_server *server)
{
    return server->url;
}

int toy_port(const struct toy_server *server)
{
    return server->port;
}

struct toy_counts *toy_counts(struct toy_server *server)
{
    return &server->counts;
}
