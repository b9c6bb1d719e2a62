/*
 * One client connection as a state machine: connects, writes a request, reads its answer, and says
 * what happened. It never blocks and keeps no time: deadlines are the caller's. Further requests
 * may be sent before the first one's answer has come (pipelining, RFC 9112, 9.3.2).
 * An idle one costs sizeof(struct connection); buffers are shared by a thread's connections, and
 * only what arrives or leaves in pieces is kept aside.
 * Threading: a connection and its connection_io belong to one thread.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include "http_parse.h"
#include "load.h"
#include "target.h"

#include <sys/queue.h>

enum { CONNECTION_READ_SIZE = 65536 };

/* What the connections of one thread share. */
struct connection_io {
    int epoll_fd;
    const struct target_address *addresses; /* of the targets */
    uint64_t bytes_in, bytes_out, connects;
    char kept[LOAD_KEPT_MAX + 1]; /* start of the body that is being read */
    const char *rest;             /* in data: what followed the answer that was last told */
    size_t rest_length;
    char data[CONNECTION_READ_SIZE];
};

enum connection_state {
    CONNECTION_CLOSED,
    CONNECTION_CONNECTING,
    CONNECTION_TURNED_AWAY, /* unix socket with a full backlog: connection_again() in a while */
    CONNECTION_IDLE,        /* open, nothing under way */
    CONNECTION_SENDING,     /* part of the request is still here */
    CONNECTION_AWAITING,    /* all is sent, the oldest request's answer is not whole yet */
    CONNECTION_ANSWERED,    /* the caller has the answer: connection_release() is next */
    CONNECTION_LEAVING      /* abandoned by the caller: whatever comes is ignored */
};

/* What happened; the caller acts on it. */
enum connection_event {
    CONNECTION_NOTHING,
    CONNECTION_OPENED,    /* is idle now */
    CONNECTION_GONE,      /* closed while idle, or did not open for later use: is closed now */
    CONNECTION_SENT,      /* the whole request is on its way */
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
    bool answered;    /* the sending before was: with an error, or "not now" */
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
    bool used;  /* has carried an answer: an idle server may well have closed it since */
    char *text; /* request not yet wholly written; malloc()ed */
    char *body; /* kept start of a body that comes in pieces; malloc()ed; NULL: it is in io */
    uint32_t text_length, text_done, body_length, body_size;
    struct http_parser parser;
};

void connection_init(struct connection *connection, int target);

/* Starts to connect a closed one, for later use. OPENED, NOTHING or GONE. */
enum connection_event connection_open(struct connection *connection, struct connection_io *io);
/* Sends a whole request over an idle connection, over a closed one once it is open, or, with
 * n_behind counted up before, over one that awaits an answer to a request of the same method.
 * NOTHING, SENT, NOT_SENT or BROKEN. A used connection that turns out to be closed before the
 * first byte is opened anew; after the first byte it never is: the outcome is unknown. */
enum connection_event connection_send(struct connection *connection, struct connection_io *io,
                                      const char *text, size_t length);
/* epoll reported these events. Returns any event. */
enum connection_event connection_ready(struct connection *connection, struct connection_io *io,
                                       uint32_t events);
/* Knocks again for one that was turned away. OPENED, NOTHING, SENT, GONE, NOT_SENT. */
enum connection_event connection_again(struct connection *connection, struct connection_io *io);
/* Its time is over: GONE, NOT_SENT or BROKEN. */
enum connection_event connection_expire(struct connection *connection);
/* The request is sent and its answer no longer wanted: until connection_close() nothing happens. */
void connection_leave(struct connection *connection);
/* The kept start of the answer's body, NUL-terminated; its length is body_length. */
const char *connection_body(struct connection *connection, struct connection_io *io);
/* The caller is done with the answer: idle, closed if it cannot be used again, or, if n_behind is
 * not 0, awaiting the next one: the caller makes that `sending` and calls connection_more(). */
void connection_release(struct connection *connection);
/* Reads on after connection_release(), as no event will tell of what has come already. Any event.
 */
enum connection_event connection_more(struct connection *connection, struct connection_io *io);
void connection_close(struct connection *connection);

#endif
