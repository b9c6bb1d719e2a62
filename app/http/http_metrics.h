/* Counters of the HTTP side and their Prometheus text. One thread writes and renders them. */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include "routes.h"

#include <stdint.h>
#include <stdio.h>

enum {
    METRICS_ROUTES_MAX = 48, /* the routes, and one place for "no such route" */
    METRICS_STATUS_MAX = 24,
    METRICS_BUCKETS = 16
};

struct http_metrics {
    uint64_t requests[METRICS_ROUTES_MAX][METRICS_STATUS_MAX];
    uint64_t duration[METRICS_ROUTES_MAX][METRICS_BUCKETS + 1]; /* the last: above all bounds */
    uint64_t duration_us[METRICS_ROUTES_MAX];
    uint64_t received_bytes, sent_bytes; /* bodies */
    uint64_t connections, refused_connections, gave_way, timed_out, refused_heads, abandoned,
        unanswered;
};

/* One answered request; route NULL: none matched. A status that no answer of ours has counts as 0.
 */
void http_metrics_count(struct http_metrics *metrics, const struct route *route, int status,
                        int64_t duration_us);

struct http_gauges {
    long connections_open;
    long in_flight; /* operations with the service */
};
void http_metrics_write(const struct http_metrics *metrics, const struct http_gauges *gauges,
                        FILE *out);

#endif
