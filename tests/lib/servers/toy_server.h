/*
 * A small scripted HTTP server for tests and benchmarks: one thread, epoll, a free loopback port
 * (or a unix socket). It answers as its script says, with valid HTTP or not.
 */
#ifndef TOY_SERVER_H
#define TOY_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOY_REQUEST_MAX = 2304, TOY_REPLY_MAX = 512 };

struct toy_request {
    const char *text; /* head and body, NUL-terminated */
    const char *body;
    uint64_t number;        /* of all requests, from 0 */
    uint32_t on_connection; /* of its connection's requests, from 0 */
};

struct toy_reply {
    const char *bytes; /* sent unchanged; must stay valid until sent; may point to buffer */
    size_t length;
    int64_t delay_us; /* before the first byte */
    size_t piece;     /* bytes per write; 0: all at once */
    int64_t gap_us;   /* after each piece */
    enum toy_then { TOY_KEEP, TOY_CLOSE, TOY_RESET } then;
    char buffer[TOY_REPLY_MAX];
};

/* Called in the server's thread. It may sleep; that pauses the whole server. */
typedef void toy_answer(void *ctx, const struct toy_request *request, struct toy_reply *reply);

struct toy_options {
    toy_answer *answer; /* NULL: 200 with a short body */
    void *ctx;
    const char *unix_path; /* NULL: TCP */
    int backlog;           /* 0: as large as the system allows */
    bool close_on_accept;
};

/* Exact counts, readable at any time. */
struct toy_counts {
    atomic_uint_least64_t accepted, requests;
    atomic_uint_least64_t left; /* closed by the client before it had its answer */
    atomic_int open, open_max;
    atomic_int owed, owed_max; /* requests not answered yet */
};

struct toy_server;

/* NULL after a message on stderr. */
struct toy_server *toy_start(const struct toy_options *options);
void toy_stop(struct toy_server *server);
const char *toy_url(const struct toy_server *server); /* without a path */
int toy_port(const struct toy_server *server);
struct toy_counts *toy_counts(struct toy_server *server);

/* Writes a complete 200 answer with this body to reply->buffer. */
void toy_ok(struct toy_reply *reply, const char *body);

#endif
