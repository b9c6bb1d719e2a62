/*
 * One client connection as a state machine. It connects, writes a request, reads the answer and
 * reports what happened. It never blocks and keeps no time: the caller keeps the deadlines.
 * Further requests may be sent before the first answer has come (pipelining, RFC 9112, 9.3.2).
 * An idle connection costs sizeof(struct connection). The connections of a thread share their
 * buffers. A connection copies only data that arrives or leaves in pieces.
 * Threading: a connection and its connection_io belong to one thread.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include "http_parse.h"
#include "load.h"
#include "target.h"

#include <sys/queue.h>

enum { CONNECTION_READ_SIZE = 65536 };

/* Shared by the connections of one thread. */
struct connection_io {
    int epoll_fd;
    const struct target_address *addresses; /* of the targets */
    uint64_t bytes_in, bytes_out, connects;
    char kept[LOAD_KEPT_MAX + 1]; /* start of the body being read */
    const char *rest;             /* in data: the bytes after the last reported answer */
    size_t rest_length;
    char data[CONNECTION_READ_SIZE];
};

enum connection_state {
    CONNECTION_CLOSED,
    CONNECTION_CONNECTING,
    CONNECTION_TURNED_AWAY, /* unix socket, backlog full: call connection_again() later */
    CONNECTION_IDLE,        /* open, nothing under way */
    CONNECTION_SENDING,     /* part of the request is not written yet */
    CONNECTION_AWAITING,    /* all is sent; the oldest request's answer is not whole yet */
    CONNECTION_ANSWERED,    /* the caller has the answer: connection_release() is next */
    CONNECTION_LEAVING      /* abandoned by the caller: data is ignored */
};

/* An event of a connection; the caller acts on it. */
enum connection_event {
    CONNECTION_NOTHING,
    CONNECTION_OPENED,    /* is idle now */
    CONNECTION_GONE,      /* closed while idle, or connection_open() failed: is closed now */
    CONNECTION_SENT,      /* the whole request is written */
    CONNECTION_ANSWER,    /* parser and connection_body() hold it until connection_release() */
    CONNECTION_NOT_SENT,  /* not connected, or lost before the first byte: is closed now */
    CONNECTION_BROKEN,    /* lost after the first byte: is closed now */
    CONNECTION_BAD_ANSWER /* parser.error says why: is closed now */
};

/* The request that a connection is busy with. */
struct sending {
    uint64_t seq;
    int64_t intended_us;
    int64_t sent_us;  /* the write began; 0: not yet */
    uint32_t attempt; /* 0: first sending */
    bool answered;    /* the previous sending was answered: with an error, or "not now" */
};

TAILQ_HEAD(connection_list, connection);

struct connection {
    TAILQ_ENTRY(connection) link; /* the caller's, as the next three */
    struct connection_list *list;
    int64_t deadline_us;
    struct sending sending; /* the oldest under way */
    struct sending *behind; /* pipelined after it, oldest first; the caller's array */
    uint8_t n_behind;
    int fd; /* -1: none */
    uint8_t state, target;
    bool used;  /* has carried an answer: the server may have closed it while idle */
    char *text; /* the part of a request not written yet; malloc()ed */
    char *body; /* start of a body that comes in pieces; malloc()ed; NULL: it is in io */
    uint32_t text_length, text_done, body_length, body_size;
    struct http_parser parser;
};

void connection_init(struct connection *connection, int target);

/* Starts to connect a closed connection, for later use. Returns OPENED, NOTHING or GONE. */
enum connection_event connection_open(struct connection *connection, struct connection_io *io);
/* Sends a whole request. Returns NOTHING, SENT, NOT_SENT or BROKEN.
 * - Idle: writes at once. Closed: opens the connection first.
 * - Awaiting an answer (pipelining): the caller has raised n_behind; the method is the same.
 *
 * If a used connection turns out to be closed before the first byte, it is opened again. After
 * the first byte it never is: the outcome is unknown. */
enum connection_event connection_send(struct connection *connection, struct connection_io *io,
                                      const char *text, size_t length);
/* Handles events from epoll. Returns any event. */
enum connection_event connection_ready(struct connection *connection, struct connection_io *io,
                                       uint32_t events);
/* Connects again after CONNECTION_TURNED_AWAY. Returns OPENED, NOTHING, SENT, GONE, NOT_SENT or
 * BROKEN. */
enum connection_event connection_again(struct connection *connection, struct connection_io *io);
/* Its deadline has passed. Returns GONE, NOT_SENT or BROKEN. */
enum connection_event connection_expire(struct connection *connection);
/* The answer to a sent request is not wanted. Nothing happens until connection_close(). */
void connection_leave(struct connection *connection);
/* The kept start of the answer's body, NUL-terminated. Its length is body_length. */
const char *connection_body(struct connection *connection, struct connection_io *io);
/* The caller is done with the answer. The connection is then one of:
 * - closed: it cannot be used again
 * - idle: n_behind is 0
 * - awaiting the next answer: the caller moves the next `sending` up and calls connection_more() */
void connection_release(struct connection *connection);
/* Reads on after connection_release(): no event reports data that has come already. Returns any
 * event. */
enum connection_event connection_more(struct connection *connection, struct connection_io *io);
void connection_close(struct connection *connection);

#endif
