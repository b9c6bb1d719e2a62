/*
 * The HTTP side: one thread that drives libmicrohttpd, turns requests into operations, hands them
 * to the service, and sends the answers back.
 */
#ifndef HTTP_H
#define HTTP_H

#include "extra_routes.h"
#include "service.h"
#include "tokens.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_BODY_MAX = 16384, /* bytes of a request body; beyond: 413 */
    HTTP_HEAD_MAX = 8192,  /* bytes of request line and headers; beyond: 431 */
    HTTP_URL_MAX = 300,
    HTTP_GRACE_MS = 850 /* seckilld.8 promises an answer within wait_ms and a second */
};

/* How long each phase of a connection may take. Each is absolute: no activity extends it. */
struct http_limits {
    /* Accept (or, on a kept connection, request line) to whole request, without the wait to be let
     * in: 408. */
    int64_t read_ms;
    int64_t whole_ms; /* the same; a longer one gives way while all connections are taken: 503 */
    int64_t idle_ms;  /* between two requests on a kept connection */
    int64_t send_ms;  /* answer queued to answer sent */
    /* Beyond an operation's deadline. Then the HTTP side answers 503 in its place. As long may a
     * connection wait to be let in. -1: never. */
    int64_t grace_ms;
    int64_t audit_ms; /* the same for GET /v1/audit */
};
/* 10 s, 1 s, 60 s, 30 s, HTTP_GRACE_MS, 10 minutes */
extern const struct http_limits http_limits_default;

struct http;

/* What only some services have. */
struct http_options {
    const struct http_limits *limits;              /* copied; NULL: the default */
    const struct extra_routes *extras[EXTRAS_MAX]; /* borrowed; NULL: none */
    struct tokens *tokens; /* borrowed; NULL: open to everybody as an operator */
    bool events_show_keys; /* GET /v1/events shows Idempotency-Keys: for lessons */
};

/* Listens and starts the loop thread. config, service and extra routes are borrowed until
 * http_free(). options NULL: none. Returns 0, or -1 after printing why to stderr. */
int http_start(const struct config *config, struct service *service,
               const struct http_options *options, struct http **ret);

const char *http_url(const struct http *http); /* "http://127.0.0.1:8080" */

/* /readyz answers 503 from now on; all else goes on. Any thread; returns at once. */
void http_not_ready(struct http *http);

/* True if the loop thread takes a turn within this time. Any thread. */
bool http_turns(struct http *http, int64_t within_ms);

/* Begins the end: /readyz answers 503, nothing more is accepted, connections without a request are
 * closed, the others after their answer. Any thread; returns at once. */
void http_drain(struct http *http);

/* After http_drain(): true when every connection is gone, false after timeout_ms. */
bool http_drained(struct http *http, int64_t timeout_ms);

/* Ends the loop thread and every connection; operations not done are answered 503 first. */
void http_stop(struct http *http);

/* Frees. Only after http_stop(), and when the service will call done() no more. */
void http_free(struct http *http);

#endif
