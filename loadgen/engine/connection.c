/*
 * Edge-triggered (epoll(7)): one epoll_ctl() per connection, none per request. A TCP socket
 * reports "writable" only after a write that found no room, so EPOLLOUT can stay set. A unix
 * socket reports it whenever the server reads, so EPOLLOUT is added when needed.
 */
#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    READS_MAX = 4,      /* of one connection before others get their turn */
    BODY_SIZE_MIN = 256 /* first allocation for a body in pieces */
};

static const uint32_t closed_events = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

/* EPOLL_CTL_MOD also re-arms: readiness that exists already is reported again. */
static bool watch(struct connection *connection, struct connection_io *io, int op, uint32_t also)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET | also,
                                .data.ptr = connection};
    return epoll_ctl(io->epoll_fd, op, connection->fd, &event) == 0;
}

static enum connection_event end(struct connection *connection, enum connection_event how)
{
    connection_close(connection);
    return how;
}

/* The event for a lost connection: BROKEN if a byte of a request may have reached the server. */
static enum connection_event lose(struct connection *connection)
{
    if (connection->state == CONNECTION_AWAITING || connection->text_done > 0 ||
        connection->n_behind > 0)
        return end(connection, CONNECTION_BROKEN);
    return end(connection, connection->text != NULL ? CONNECTION_NOT_SENT : CONNECTION_GONE);
}

/* Bytes written, 0 if there is no room, -1 if the connection is lost. */
static ssize_t write_some(struct connection *connection, struct connection_io *io, const char *text,
                          size_t length)
{
    ssize_t n;
    do
        n = send(connection->fd, text, length, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 0 : -1;
    io->bytes_out += (uint64_t)n;
    return n;
}

static enum connection_event flush(struct connection *connection, struct connection_io *io)
{
    ssize_t n = write_some(connection, io, connection->text + connection->text_done,
                           connection->text_length - connection->text_done);
    if (n < 0)
        return lose(connection);
    connection->text_done += (uint32_t)n;
    bool whole = connection->text_done == connection->text_length;
    connection->state = whole ? CONNECTION_AWAITING : CONNECTION_SENDING;
    if (!whole)
        return watch(connection, io, EPOLL_CTL_MOD, EPOLLOUT) ? CONNECTION_NOTHING
                                                              : lose(connection);
    free(connection->text);
    connection->text = NULL;
    connection->text_length = connection->text_done = 0;
    return CONNECTION_SENT;
}

static enum connection_event opened(struct connection *connection, struct connection_io *io)
{
    io->connects++;
    connection->state = CONNECTION_IDLE;
    return connection->text != NULL ? flush(connection, io) : CONNECTION_OPENED;
}

static enum connection_event try_connect(struct connection *connection, struct connection_io *io)
{
    const struct target_address *address = &io->addresses[connection->target];
    bool is_unix = address->storage.ss_family == AF_UNIX;
    int error =
        connect(connection->fd, (const struct sockaddr *)&address->storage, address->length);
    if (error != 0 && errno == EAGAIN && is_unix) {
        connection->state = CONNECTION_TURNED_AWAY;
        return CONNECTION_NOTHING;
    }
    if ((error != 0 && errno != EINPROGRESS) ||
        !watch(connection, io, EPOLL_CTL_ADD, is_unix ? 0 : EPOLLOUT))
        return lose(connection);
    connection->state = CONNECTION_CONNECTING;
    return error == 0 ? opened(connection, io) : CONNECTION_NOTHING;
}

enum connection_event connection_open(struct connection *connection, struct connection_io *io)
{
    assert(connection->state == CONNECTION_CLOSED);
    connection->fd = target_socket(&io->addresses[connection->target]);
    return connection->fd >= 0 ? try_connect(connection, io) : lose(connection);
}

enum connection_event connection_again(struct connection *connection, struct connection_io *io)
{
    assert(connection->state == CONNECTION_TURNED_AWAY);
    return try_connect(connection, io);
}

enum connection_event connection_send(struct connection *connection, struct connection_io *io,
                                      const char *text, size_t length)
{
    bool pipelined = connection->state == CONNECTION_AWAITING;
    assert(connection->state == CONNECTION_IDLE || connection->state == CONNECTION_CLOSED ||
           (pipelined && connection->n_behind > 0));
    assert(length > 0 && length <= LOAD_REQUEST_MAX);
    if (!pipelined)
        http_parse_start(&connection->parser, memcmp(text, "HEAD ", length < 5 ? length : 5) == 0);
    ssize_t done = 0;
    if (connection->state != CONNECTION_CLOSED) {
        done = write_some(connection, io, text, length);
        if (done == (ssize_t)length) {
            connection->state = CONNECTION_AWAITING;
            return CONNECTION_SENT;
        }
        if (done < 0 && pipelined)
            return end(connection, CONNECTION_BROKEN);
        if (done < 0 && !connection->used)
            return end(connection, CONNECTION_NOT_SENT);
        if (done < 0)
            connection_close(connection);
    }
    connection->text = malloc(length);
    if (connection->text == NULL)
        return end(connection, done > 0 || pipelined ? CONNECTION_BROKEN : CONNECTION_NOT_SENT);
    memcpy(connection->text, text, length);
    connection->text_length = (uint32_t)length;
    connection->text_done = done > 0 ? (uint32_t)done : 0;
    return connection->state == CONNECTION_CLOSED ? connection_open(connection, io)
                                                  : flush(connection, io);
}

/* Appends to the kept start of the body; false without memory. */
static bool keep(struct connection *connection, struct connection_io *io, struct http_span span)
{
    uint32_t room = LOAD_KEPT_MAX - connection->body_length;
    uint32_t length = span.length < room ? (uint32_t)span.length : room;
    uint32_t needed = connection->body_length + length + 1;
    if (connection->body != NULL && needed > connection->body_size) {
        uint32_t size = needed > 2 * connection->body_size ? needed : 2 * connection->body_size;
        char *grown = realloc(connection->body, size);
        if (grown == NULL)
            return false;
        connection->body = grown;
        connection->body_size = size;
    }
    memcpy((connection->body != NULL ? connection->body : io->kept) + connection->body_length,
           span.bytes, length);
    connection->body_length += length;
    return true;
}

/* Moves the start of a body out of io, which other connections need. False without memory. */
static bool set_aside(struct connection *connection, struct connection_io *io)
{
    if (connection->body != NULL || connection->body_length == 0)
        return true;
    uint32_t needed = connection->body_length + 1;
    connection->body_size = needed > BODY_SIZE_MIN ? needed : BODY_SIZE_MIN;
    connection->body = malloc(connection->body_size);
    if (connection->body == NULL)
        return false;
    memcpy(connection->body, io->kept, connection->body_length);
    return true;
}

static enum connection_event parse(struct connection *connection, struct connection_io *io,
                                   const char *data, size_t length, bool closed)
{
    bool last = connection->n_behind == 0;
    struct http_span span;
    for (;;) {
        switch (http_parse(&connection->parser, &data, &length, &span)) {
        case HTTP_BODY:
            if (!keep(connection, io, span))
                return end(connection, CONNECTION_BROKEN);
            continue;
        case HTTP_MORE:
            return CONNECTION_NOTHING;
        case HTTP_BAD:
            return end(connection, CONNECTION_BAD_ANSWER);
        case HTTP_DONE:
            /* Close after the last answer if bytes follow it, if the server closes, or if it came
             * before its request was wholly sent. */
            if (last && (length > 0 || closed || connection->state != CONNECTION_AWAITING))
                connection->parser.keep_alive = false;
            io->rest = data;
            io->rest_length = length;
            connection->state = CONNECTION_ANSWERED;
            return CONNECTION_ANSWER;
        }
    }
}

static enum connection_event receive(struct connection *connection, struct connection_io *io,
                                     uint32_t events)
{
    bool closed = (events & closed_events) != 0;
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t n = recv(connection->fd, io->data, sizeof io->data, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return set_aside(connection, io) ? CONNECTION_NOTHING : lose(connection);
        if (n < 0)
            return lose(connection);
        if (n == 0 && !http_parse_end(&connection->parser))
            return lose(connection);
        io->bytes_in += (uint64_t)n;
        enum connection_event event = parse(connection, io, io->data, (size_t)n, closed || n == 0);
        if (event != CONNECTION_NOTHING)
            return event;
        /* A short read emptied the socket: later data is a new edge. A close reported with this
         * event is not: read on until it. */
        if ((size_t)n < sizeof io->data && !closed)
            return set_aside(connection, io) ? CONNECTION_NOTHING : lose(connection);
    }
    return set_aside(connection, io) && watch(connection, io, EPOLL_CTL_MOD, EPOLLOUT)
               ? CONNECTION_NOTHING
               : lose(connection);
}

static enum connection_event connecting(struct connection *connection, struct connection_io *io)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
        return lose(connection);
    return opened(connection, io);
}

enum connection_event connection_ready(struct connection *connection, struct connection_io *io,
                                       uint32_t events)
{
    bool readable = (events & (EPOLLIN | closed_events)) != 0;
    switch ((enum connection_state)connection->state) {
    case CONNECTION_CONNECTING:
        return connecting(connection, io);
    case CONNECTION_IDLE:
        return readable ? lose(connection) : CONNECTION_NOTHING;
    case CONNECTION_SENDING:
        if (readable) { /* first: a server may refuse a request before it has read all of it */
            enum connection_event event = receive(connection, io, events);
            if (event != CONNECTION_NOTHING)
                return event;
        }
        return flush(connection, io);
    case CONNECTION_AWAITING:
        return readable ? receive(connection, io, events) : CONNECTION_NOTHING;
    case CONNECTION_CLOSED:
    case CONNECTION_TURNED_AWAY:
    case CONNECTION_ANSWERED:
    case CONNECTION_LEAVING:
        break;
    }
    return CONNECTION_NOTHING;
}

enum connection_event connection_expire(struct connection *connection)
{
    return lose(connection);
}

void connection_leave(struct connection *connection)
{
    assert(connection->state == CONNECTION_AWAITING);
    connection->state = CONNECTION_LEAVING;
}

const char *connection_body(struct connection *connection, struct connection_io *io)
{
    char *body = connection->body != NULL ? connection->body : io->kept;
    body[connection->body_length] = '\0';
    return body;
}

void connection_release(struct connection *connection)
{
    assert(connection->state == CONNECTION_ANSWERED);
    if (!connection->parser.keep_alive) {
        connection_close(connection);
        return;
    }
    free(connection->body);
    connection->body = NULL;
    connection->body_length = 0;
    connection->used = true;
    connection->state = CONNECTION_IDLE;
    if (connection->n_behind > 0) {
        http_parse_start(&connection->parser, connection->parser.is_head);
        connection->state = connection->text != NULL ? CONNECTION_SENDING : CONNECTION_AWAITING;
    }
}

enum connection_event connection_more(struct connection *connection, struct connection_io *io)
{
    enum connection_event event = CONNECTION_NOTHING;
    if (io->rest_length > 0)
        event = parse(connection, io, io->rest, io->rest_length, false);
    return event == CONNECTION_NOTHING ? receive(connection, io, 0) : event;
}

void connection_init(struct connection *connection, int target)
{
    *connection = (struct connection){.fd = -1, .target = (uint8_t)target};
}

void connection_close(struct connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    free(connection->text);
    free(connection->body);
    connection->fd = -1;
    connection->text = connection->body = NULL;
    connection->text_length = connection->text_done = connection->body_length = 0;
    connection->used = false;
    connection->state = CONNECTION_CLOSED;
}
