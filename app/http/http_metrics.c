#include "http_metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const int status_list[METRICS_STATUS_MAX] = {0,   200, 201, 204, 304, 400, 401, 403,
                                                    404, 405, 408, 409, 410, 411, 412, 413,
                                                    415, 421, 422, 428, 429, 431, 500, 503};
static const int64_t bound_us[METRICS_BUCKETS] = {
    100,   250,    500,    1000,   2500,    5000,    10000,   25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};

static size_t route_slot(const struct route *route)
{
    size_t slot = route != NULL ? (size_t)(route - routes) : n_routes;
    assert(slot < METRICS_ROUTES_MAX);
    return slot;
}

/* Slot 0 is for statuses that are not in the list. */
static size_t status_slot(int status)
{
    for (size_t i = 1; i < METRICS_STATUS_MAX; i++)
        if (status_list[i] == status)
            return i;
    return 0;
}

void http_metrics_count(struct http_metrics *metrics, const struct route *route, int status,
                        int64_t duration_us)
{
    const size_t slot = route_slot(route);
    metrics->requests[slot][status_slot(status)]++;
    size_t bucket = 0;
    while (bucket < METRICS_BUCKETS && duration_us > bound_us[bucket])
        bucket++;
    metrics->duration[slot][bucket]++;
    metrics->duration_us[slot] += (uint64_t)duration_us;
}

static void write_labels(FILE *out, size_t slot)
{
    if (slot == n_routes) {
        fputs("method=\"\",route=\"other\"", out);
        return;
    }
    fprintf(out, "method=\"%s\",route=\"", routes[slot].method);
    for (const char *c = routes[slot].path; *c != '\0'; c++) {
        fputc(*c, out);
        if (*c == '{')
            fputs("id", out);
    }
    fputc('"', out);
}

static uint64_t write_durations(const struct http_metrics *metrics, size_t slot, FILE *out)
{
    static const char name[] = "seckill_http_request_duration_seconds";
    uint64_t sum = 0;
    for (size_t i = 0; i <= METRICS_BUCKETS; i++)
        sum += metrics->duration[slot][i];
    if (sum == 0)
        return 0;
    uint64_t below = 0;
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        below += metrics->duration[slot][i];
        fprintf(out, "%s_bucket{", name);
        write_labels(out, slot);
        fprintf(out, ",le=\"%g\"} %" PRIu64 "\n", (double)bound_us[i] / 1e6, below);
    }
    fprintf(out, "%s_bucket{", name);
    write_labels(out, slot);
    fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n%s_sum{", sum, name);
    write_labels(out, slot);
    fprintf(out, "} %.6f\n%s_count{", (double)metrics->duration_us[slot] / 1e6, name);
    write_labels(out, slot);
    fprintf(out, "} %" PRIu64 "\n", sum);
    return sum;
}

static void write_one(FILE *out, const char *name, const char *type, const char *help,
                      int64_t value)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRId64 "\n", name, help, name, type, name,
            value);
}

void http_metrics_write(const struct http_metrics *metrics, const struct http_gauges *gauges,
                        FILE *out)
{
    fputs("# HELP seckill_http_requests_total Answered requests by route and status.\n"
          "# TYPE seckill_http_requests_total counter\n",
          out);
    for (size_t slot = 0; slot <= n_routes; slot++) {
        for (size_t i = 0; i < METRICS_STATUS_MAX; i++) {
            if (metrics->requests[slot][i] == 0)
                continue;
            fputs("seckill_http_requests_total{", out);
            write_labels(out, slot);
            fprintf(out, ",status=\"%d\"} %" PRIu64 "\n", status_list[i],
                    metrics->requests[slot][i]);
        }
    }
    fputs("# HELP seckill_http_request_duration_seconds Request line read to answer sent.\n"
          "# TYPE seckill_http_request_duration_seconds histogram\n",
          out);
    for (size_t slot = 0; slot <= n_routes; slot++)
        write_durations(metrics, slot, out);

    write_one(out, "seckill_http_connections_open", "gauge", "Open connections.",
              gauges->connections_open);
    write_one(out, "seckill_http_in_flight", "gauge", "Requests waiting for the service.",
              gauges->in_flight);
    write_one(out, "seckill_http_connections_total", "counter", "Accepted connections.",
              (int64_t)metrics->connections);
    write_one(out, "seckill_http_refused_connections_total", "counter",
              "Connections refused because their address has too many.",
              (int64_t)metrics->refused_connections);
    write_one(out, "seckill_http_gave_way_total", "counter",
              "Connections ended because all were taken: see --connections.",
              (int64_t)metrics->gave_way);
    write_one(out, "seckill_http_timeouts_total", "counter", "Connections shut for being late.",
              (int64_t)metrics->timed_out);
    write_one(out, "seckill_http_refused_heads_total", "counter",
              "Requests refused for their framing.", (int64_t)metrics->refused_heads);
    write_one(out, "seckill_http_abandoned_total", "counter",
              "Requests that ended before their answer: the client was gone, or late.",
              (int64_t)metrics->abandoned);
    write_one(out, "seckill_http_unanswered_total", "counter",
              "Operations that the service had not answered in time.",
              (int64_t)metrics->unanswered);
    write_one(out, "seckill_http_received_bytes_total", "counter", "Bytes of request bodies.",
              (int64_t)metrics->received_bytes);
    write_one(out, "seckill_http_sent_bytes_total", "counter", "Bytes of answer bodies.",
              (int64_t)metrics->sent_bytes);
}
