/*
 * GET /v1/events: server-sent events (WHATWG HTML, 9.2) on the loop thread.
 *
 *   event: hello     {"instance","lost","t_us","wall_us"}: the clock of all t_us, and how many
 *                    events before the first one sent are gone (-1: unknown, another process's id)
 *   event: trace     [{"id","t_us","point","op","resource","key","request_id","value","fence",
 *                    "problem"}, ...]: points in the order in which they were passed; key tells
 *                    operations apart
 *   event: counters  {"resource","initial","value","accepted","amount","decided_no","failed",
 *                    "p50_us","p99_us","max_us"}: of all operations, as it stands now
 *   event: limits    {"unnoted","lost"}: operations beyond what is traced (the fewer, the more
 *                    listen: events.h), events without room
 *
 * Ten times a second each listener is sent the new events. The latest events are kept once, as
 * text, in a ring for all listeners: a listener is a place in that ring, and its only memory is the
 * socket's buffer. If the ring overtakes a listener's place, the listener reads too slowly: it is
 * cut off and counted, and may come back with Last-Event-ID. A listener that takes no byte for as
 * long as an answer may take to be sent is cut off, too.
 */
#ifndef HTTP_EVENTS_H
#define HTTP_EVENTS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    HTTP_EVENTS_LISTENERS_MAX = 256, /* beyond: 503 */
    HTTP_EVENTS_KEPT = 8192,         /* for clients that reconnect, and slow readers */
    HTTP_EVENTS_TICK_US = 100000,
    HTTP_EVENTS_HEARTBEAT_US = 5000000 /* a comment: it fails if the client has gone */
};

struct http;
struct request;
struct http_events;

/* lesson: operations are named by their idempotency keys, see events_show_keys(); for services that
 * listen on loopback only. NULL without memory. */
struct http_events *http_events_open(const char *instance, bool lesson);
void http_events_free(struct http_events *events);

/* Answers request with the stream. MHD_YES, or what answer_send() says of a refusal. */
enum MHD_Result http_events_answer(struct http *http, struct request *request);
/* Sends on what has happened. Returns when it wants to be called again; INT64_MAX: not. */
int64_t http_events_tick(struct http *http, int64_t now_us);
/* Ends all streams, for good. */
void http_events_end(struct http *http);
void http_events_metrics(const struct http_events *events, FILE *out);

#endif
