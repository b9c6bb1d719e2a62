#include "load_json.h"
#include "options.h"

#include <math.h>
#include <stdio.h>

static void set_integer(json_t *object, const char *name, int64_t value)
{
    json_object_set_new(object, name, json_integer(value));
}

static json_t *hist_json(const struct hist *hist)
{
    json_t *object = json_object();
    set_integer(object, "p50", hist_percentile(hist, 50));
    set_integer(object, "p90", hist_percentile(hist, 90));
    set_integer(object, "p99", hist_percentile(hist, 99));
    set_integer(object, "p99_9", hist_percentile(hist, 99.9));
    set_integer(object, "p99_99", hist_percentile(hist, 99.99));
    set_integer(object, "max", hist->count == 0 ? 0 : hist->max);
    return object;
}

json_t *load_rate_json(double per_s)
{
    return json_real(round(per_s * 100) / 100);
}

static json_t *counts_json(const struct load_result *load, enum load_mode mode, int connections)
{
    json_t *object = json_object();
    json_object_set_new(object, "mode", json_string(options_mode_text(mode)));
    set_integer(object, "connections", connections);
    set_integer(object, "sent", (int64_t)load->sent);
    set_integer(object, "completed", (int64_t)load->completed);
    set_integer(object, "dropped", (int64_t)load->dropped);
    json_object_set_new(object, "duration_s", json_real((double)load->duration_us / 1e6));
    set_integer(object, "warmup", (int64_t)(load->completed - load->measured));
    set_integer(object, "unfinished", (int64_t)load->unfinished);
    set_integer(object, "retries", (int64_t)load->retries);
    set_integer(object, "abandoned", (int64_t)load->ends[LOAD_ABANDONED]);
    set_integer(object, "not_sent", (int64_t)load->ends[LOAD_NOT_SENT]);
    set_integer(object, "connection_broken", (int64_t)load->ends[LOAD_BROKEN]);
    set_integer(object, "timed_out", (int64_t)load->ends[LOAD_TIMED_OUT]);
    set_integer(object, "bad_answers", (int64_t)load->ends[LOAD_BAD_ANSWER]);
    return object;
}

/* What happened over time; percentiles of an interval are upper bounds, within a quarter. */
static json_t *series_json(const struct series *series, int64_t warmup_ms)
{
    json_t *object = json_object(), *points = json_array();
    for (size_t i = 0; i < series->n; i++) {
        const struct series_point *point = &series->points[i];
        json_t *entry = json_object();
        set_integer(entry, "sent", (int64_t)point->sent);
        set_integer(entry, "answered", (int64_t)point->answered);
        set_integer(entry, "accepted", (int64_t)point->accepted);
        set_integer(entry, "errors", (int64_t)point->errors);
        set_integer(entry, "p50_us", series_percentile(point, 50));
        set_integer(entry, "p99_us", series_percentile(point, 99));
        set_integer(entry, "max_us", point->max_us);
        json_array_append_new(points, entry);
    }
    set_integer(object, "interval_us", series->interval_us);
    set_integer(object, "warmup_us", warmup_ms * 1000);
    json_object_set_new(object, "points", points);
    return object;
}

static json_t *status_json(const struct load_result *load)
{
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof load->status / sizeof *load->status; i++)
        if (load->status[i] != 0) {
            char name[8];
            snprintf(name, sizeof name, "%zu", i);
            set_integer(object, name, (int64_t)load->status[i]);
        }
    return object;
}

void load_to_json(const struct load_result *load, enum load_mode mode, int connections,
                  int64_t warmup_ms, json_t *object)
{
    json_object_set_new(object, "load", counts_json(load, mode, connections));
    json_object_set_new(object, "throughput_rps", load_rate_json(load_rate(load)));
    json_object_set_new(object, "latency_us", hist_json(&load->latency));
    json_object_set_new(object, "service_us", hist_json(&load->service));
    json_object_set_new(object, "status", status_json(load));
    json_object_set_new(object, "series", series_json(&load->series, warmup_ms));
}
