/* The JSON of contract.md, "loadgen"; more fields than stand there may be added, none renamed. */
#include "report.h"

#include <math.h>
#include <string.h>

static void set_integer(json_t *object, const char *name, int64_t value)
{
    json_object_set_new(object, name, json_integer(value));
}

static json_t *verdict_json(const struct verdict *verdict)
{
    json_t *object = json_object();
    json_object_set_new(object, "safe", json_boolean(verdict_is_safe(verdict)));
#define VERDICT_SET(name, text) set_integer(object, #name, verdict->name);
    VERDICT_MAP(VERDICT_SET)
#undef VERDICT_SET
    return object;
}

static json_t *row_json(const struct ledger_row *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "resource", json_string(row->resource));
    json_object_set_new(object, "txn_id", json_string(row->txn_id));
    set_integer(object, "before", row->before);
    set_integer(object, "after", row->after);
    set_integer(object, "version_before", row->version_before);
    json_object_set_new(object, "instance", json_string(row->instance));
    set_integer(object, "at_us", row->at_us);
    return object;
}

static json_t *counterexample_json(const struct run *run)
{
    json_t *array = json_array();
    for (int i = 0; i < 2 && run->has_counterexample; i++)
        json_array_append_new(array, row_json(&run->counterexample[i]));
    return array;
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

/* Two digits after the point are enough for a rate. */
static json_t *rate_json(double count, int64_t duration_us)
{
    return json_real(duration_us <= 0 ? 0 : round(count * 1e8 / (double)duration_us) / 100);
}

static json_t *load_json(const struct run *run)
{
    const struct load_result *load = &run->load;
    json_t *object = json_object();
    json_object_set_new(object, "mode", json_string(options_mode_text(run->mode)));
    set_integer(object, "connections", run->options->connections);
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

/* Percentiles are the upper bounds of the service's buckets; null beyond the last one. */
static json_t *lock_json(const struct lock_times *times,
                         const struct lock_times_histogram *histogram)
{
    json_t *object = json_object();
    set_integer(object, "count", (int64_t)histogram->count);
    json_object_set_new(object, "mean", json_real(lock_times_mean_us(histogram)));
    static const struct {
        const char *name;
        double percentile;
    } wanted[] = {{"p50", 50}, {"p99", 99}};
    for (size_t i = 0; i < 2; i++) {
        double us = lock_times_percentile_us(times, histogram, wanted[i].percentile);
        json_object_set_new(object, wanted[i].name,
                            us < HUGE_VAL ? json_integer((json_int_t)us) : json_null());
    }
    return object;
}

static json_t *thresholds_json(const struct run *run)
{
    json_t *array = json_array();
    for (int i = 0; i < run->options->n_thresholds; i++) {
        const struct threshold *threshold = &run->options->thresholds[i];
        double value;
        json_t *entry = json_object();
        json_object_set_new(entry, "threshold", json_string(threshold->text));
        json_object_set_new(entry, "kept", json_boolean(run_keeps_threshold(run, i, &value)));
        json_object_set_new(entry, "value", json_real(value));
        json_object_set_new(entry, "aborted", json_boolean(run->aborted_by == threshold));
        json_array_append_new(array, entry);
    }
    return array;
}

/* What happened over time; percentiles of an interval are upper bounds, within a quarter. */
static json_t *series_json(const struct run *run)
{
    const struct series *series = &run->load.series;
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
    set_integer(object, "warmup_us", run->options->warmup_ms * 1000);
    json_object_set_new(object, "points", points);
    return object;
}

static void add_load(json_t *object, const struct run *run)
{
    const struct load_result *load = &run->load;
    json_t *status = json_object(), *problems = json_object();
    json_object_set_new(object, "load", load_json(run));
    json_object_set_new(object, "accepted_per_s",
                        rate_json((double)run->accepted, load->duration_us));
    json_object_set_new(object, "throughput_rps",
                        rate_json((double)load->measured, load->measured_us));
    json_object_set_new(object, "latency_us", hist_json(&load->latency));
    json_object_set_new(object, "service_us", hist_json(&load->service));
    for (size_t i = 0; i < sizeof load->status / sizeof *load->status; i++)
        if (load->status[i] != 0) {
            char name[8];
            snprintf(name, sizeof name, "%zu", i);
            set_integer(status, name, (int64_t)load->status[i]);
        }
    for (size_t i = 0; i < run->tally.n_problems; i++)
        set_integer(problems, run->tally.problems[i].name, (int64_t)run->tally.problems[i].count);
    json_t *lock = json_object();
    json_object_set_new(lock, "wait", lock_json(&run->lock_times, &run->lock_times.wait));
    json_object_set_new(lock, "hold", lock_json(&run->lock_times, &run->lock_times.hold));
    json_object_set_new(object, "lock_us", lock);
    json_object_set_new(object, "thresholds", thresholds_json(run));
    json_object_set_new(object, "series", series_json(run));
    json_object_set_new(object, "status", status);
    json_object_set_new(object, "problems", problems);
}

static json_t *textbook_json(const struct textbook *textbook)
{
    json_t *object = json_object();
    set_integer(object, "pairs", textbook->pairs);
    set_integer(object, "lost", textbook->lost);
    set_integer(object, "initial", textbook->initial);
    set_integer(object, "expected", textbook->expected);
    set_integer(object, "final", textbook->final);
    return object;
}

/* What was asked for beside the guard; null: as the service is configured. */
static json_t *choice_json(enum options_choice choice)
{
    return choice == CHOICE_NONE ? json_null() : json_boolean(choice == CHOICE_ON);
}

static json_t *terms_json(const struct sale_terms *terms)
{
    json_t *object = json_object();
    const bool lease = terms->lease_ms > 0;
    json_object_set_new(object, "lease_ms", lease ? json_integer(terms->lease_ms) : json_null());
    json_object_set_new(object, "watchdog",
                        lease ? json_boolean(terms->watchdog == CHOICE_ON) : json_null());
    json_object_set_new(object, "fence", choice_json(terms->fence));
    json_object_set_new(object, "lanes", choice_json(terms->lanes));
    return object;
}

static json_t *run_json(const struct run *run)
{
    json_t *object = json_object();
    json_object_set_new(object, "workload", json_string(run->workload->name));
    json_object_set_new(object, "run_id", json_string(run->id));
    json_object_set_new(object, "guard", json_string(run->guard));
    json_object_set_new(object, "claims_safe", json_boolean(run->claims_safe));
    json_object_set_new(object, "as_claimed", json_boolean(run_as_claimed(run)));
    json_object_set_new(object, "instances", json_integer(run->instances));
    json_object_set_new(object, "lanes", json_boolean(run->lanes));
    json_object_set_new(object, "terms", terms_json(&run->options->terms));
    json_object_set_new(object, "interrupted", json_boolean(run->interrupted));
    json_object_set_new(object, "verdict", verdict_json(&run->verdict));
    json_object_set_new(object, "counterexample", counterexample_json(run));
    set_integer(object, "accepted", (int64_t)run->accepted);
    set_integer(object, "refused", (int64_t)run->refused);
    set_integer(object, "failed", (int64_t)run->failed);
    set_integer(object, "initial", run->initial);
    set_integer(object, "expected", run->expected);
    set_integer(object, "actual", run->actual);
    if (run->textbook.pairs > 0)
        json_object_set_new(object, "textbook", textbook_json(&run->textbook));
    add_load(object, run); /* zeros when it was stopped before */
    return object;
}

json_t *report_to_json(const struct report *report)
{
    const struct environment *environment = &report->environment;
    json_t *runs = json_array();
    for (int i = 0; i < report->n_runs; i++)
        json_array_append_new(runs, run_json(&report->runs[i]));
    json_t *where = json_object();
    json_object_set_new(where, "at", json_string(environment->at));
    json_object_set_new(where, "system", json_string(environment->system));
    json_object_set_new(where, "cpu", json_string(environment->cpu));
    set_integer(where, "cores", environment->cores);
    set_integer(where, "memory_mb", environment->memory_mb);

    json_t *object = json_object();
    json_object_set_new(object, "command", json_string(report->options->command));
    set_integer(object, "seed", (int64_t)report->options->seed);
    json_object_set_new(object, "workload", json_string(report->workload));
    json_object_set_new(object, "as_claimed", json_boolean(report_as_claimed(report)));
    if (report->store[0] != '\0')
        json_object_set_new(object, "store", json_string(report->store));
    json_object_set_new(object, "environment", where);
    json_object_set_new(object, "runs", runs);
    return object;
}
