#include "load_json.h"
#include "options.h"

#include <math.h>
#include <stdio.h>

static void set_integer(json_t *object, const char *name, int64_t value)
{
    json_object_set_new(object, name, json_integer(value));
}

static const struct {
    const char *name;
    double percentile;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99_9", 99.9}, {"p99_99", 99.99}};
enum { PERCENTILES = sizeof percentiles / sizeof *percentiles };

/* null: not available. */
static void set_figure(json_t *object, const char *name, int64_t us)
{
    json_object_set_new(object, name, us < 0 ? json_null() : json_integer(us));
}

/* Latencies of the requests. Dropped ones count as slower than any answer. */
static json_t *latency_json(const struct load_result *load)
{
    json_t *object = json_object();
    for (size_t i = 0; i < PERCENTILES; i++)
        set_figure(object, percentiles[i].name, load_percentile(load, percentiles[i].percentile));
    set_figure(object, "max", load->latency.count > 0 ? load->latency.max : LOAD_NO_FIGURE);
    return object;
}

/* Percentiles of the measured values. */
static json_t *hist_json(const struct hist *hist)
{
    json_t *object = json_object();
    for (size_t i = 0; i < PERCENTILES; i++) {
        bool told = hist_tells(hist, percentiles[i].percentile);
        int64_t us = told ? hist_percentile(hist, percentiles[i].percentile) : LOAD_NO_FIGURE;
        set_figure(object, percentiles[i].name, us);
    }
    set_figure(object, "max", hist->count > 0 ? hist->max : LOAD_NO_FIGURE);
    return object;
}

json_t *load_number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *load_rate_json(double per_s)
{
    return json_real(round(per_s * 100) / 100);
}

static json_t *counts_json(const struct load_result *load, const struct load_options *options)
{
    json_t *object = json_object();
    json_object_set_new(object, "mode", json_string(options_mode_text(options->mode)));
    set_integer(object, "connections", options->connections);
    set_integer(object, "sent", (int64_t)load->sent);
    set_integer(object, "completed", (int64_t)load->completed);
    set_integer(object, "dropped", (int64_t)load->dropped);
    set_integer(object, "errors",
                (int64_t)(load_errors(load->ends, load->failed) + load->dropped_errors));
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

/* The run over time. Percentiles of an interval are upper bounds, at most a quarter too high. */
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

/* The options that define a load. Only runs with the same options can be compared. The seed and
 * the targets do not count. */
static json_t *asked_json(const struct load_options *options)
{
    json_t *object = json_object();
    json_object_set_new(object, "mode", json_string(options_mode_text(options->mode)));
    json_object_set_new(object, "arrivals", json_string(options_arrivals_text(options->arrivals)));
    json_object_set_new(object, "rate", json_real(options->rate));
    json_object_set_new(object, "rate_from", json_real(options->ramp_from));
    set_integer(object, "connections", options->connections);
    set_integer(object, "threads", options->threads);
    set_integer(object, "pipeline", options->pipeline > 1 ? options->pipeline : 1);
    set_integer(object, "requests", (int64_t)options->requests);
    set_integer(object, "duration_ms", options->duration_ms);
    set_integer(object, "warmup_ms", options->warmup_ms);
    set_integer(object, "timeout_ms", options->timeout_ms);
    json_object_set_new(object, "abandon_pct", json_real(options->abandon_pct));
    return object;
}

void load_to_json(const struct load_result *load, const struct load_options *options,
                  json_t *object)
{
    json_object_set_new(object, "asked", asked_json(options));
    json_object_set_new(object, "load", counts_json(load, options));
    json_object_set_new(object, "throughput_rps", load_rate_json(load_rate(load)));
    json_object_set_new(object, "latency_us", latency_json(load));
    json_object_set_new(object, "service_us", hist_json(&load->service));
    json_t *late = json_object();
    json_object_set_new(late, "no_connection", hist_json(&load->no_connection));
    json_object_set_new(late, "own_lag", hist_json(&load->own_lag));
    json_object_set_new(object, "sent_late_us", late);
    json_object_set_new(object, "status", status_json(load));
    json_object_set_new(object, "series", series_json(&load->series, options->warmup_ms));
}
