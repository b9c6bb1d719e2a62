/* The HTTP side in this process, on a free loopback port, over the stub service. */
#ifndef HTTP_FIXTURE_H
#define HTTP_FIXTURE_H

#include "http.h"
#include "raw_http.h"
#include "stub_service.h"

struct fixture {
    struct config config; /* fill what matters before fixture_start() */
    struct http_limits limits;
    const struct extra_routes *extra; /* NULL: none */
    bool events_show_keys;
    struct service *service;
    struct http *http;
    int port;
};

void fixture_defaults(struct fixture *fixture);
void fixture_start(struct fixture *fixture); /* asserts success */
void fixture_stop(struct fixture *fixture);
int fixture_tear_down(void **state); /* fixture_stop(*state), for cmocka */

/* Connects, sends text, reads one answer, closes; the caller frees reply. Returns the status. */
int fixture_ask(const struct fixture *fixture, const char *text, struct raw_reply *reply);
/* The same from parts. Each header line in `headers` ends in CR LF. */
int fixture_call(const struct fixture *fixture, const char *method, const char *path,
                 const char *headers, const char *body, struct raw_reply *reply);
/* Sends "METHOD path" with Host and, if body is not NULL, JSON type, length and key "k1". The
 * socket stays open. */
void fixture_send(int fd, const char *method, const char *path, const char *body);
/* The value of a metric, by name and labels ("seckill_http_in_flight"); -1 if there is none. */
long fixture_metric(const struct fixture *fixture, const char *name);

#endif
