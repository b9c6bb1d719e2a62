/* The JSON of contract.md, "loadgen". Fields may be added, but none renamed. */
#include "load_json.h"
#include "report.h"

#include <math.h>
#include <string.h>

static void set_integer(json_t *object, const char *name, int64_t value)
{
    json_object_set_new(object, name, json_integer(value));
}

static json_t *verdict_json(const struct run *run)
{
    json_t *object = json_object();
    json_object_set_new(object, "safe", json_boolean(run_is_safe(run)));
#define VERDICT_SET(name, text) set_integer(object, #name, run->verdict.name);
    VERDICT_MAP(VERDICT_SET)
#undef VERDICT_SET
    return object;
}

/* A figure that only the audit knows. */
static json_t *judged_json(const struct run *run, int64_t value)
{
    return run->judged ? json_integer(value) : json_null();
}

/* Only the first ones. verdict.disagreements counts all. */
static json_t *disagreements_json(const struct run *run)
{
    json_t *array = json_array();
    for (int i = 0; i < run->n_disagreements; i++) {
        const struct disagreement *each = &run->disagreements[i];
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:I, s:I}", "resource", each->resource,
                                        "figure", each->figure, "audit", (json_int_t)each->service,
                                        "rows", (json_int_t)each->own));
    }
    return array;
}

static json_t *counterexample_json(const struct run *run)
{
    json_t *array = json_array();
    for (int i = 0; i < 2 && run->has_counterexample; i++)
        json_array_append_new(array, ledger_row_to_json(&run->counterexample[i]));
    return array;
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
        json_object_set_new(entry, "value", load_number_json(value));
        json_object_set_new(entry, "aborted", json_boolean(run->aborted_by == threshold));
        json_array_append_new(array, entry);
    }
    return array;
}

static void add_asked(json_t *asked, const struct options *options)
{
    set_integer(asked, "stock", options->stock);
    set_integer(asked, "buyers", options->buyers);
    set_integer(asked, "accounts", options->accounts);
    set_integer(asked, "pairs", options->pairs);
    json_object_set_new(asked, "duplicates_pct", json_real(options->duplicates_pct));
}

static void add_load(json_t *object, const struct run *run)
{
    const struct load_result *load = &run->load;
    json_t *problems = json_object();
    double seconds = (double)load->duration_us / 1e6;
    const struct load_options asked = run_load_options(run);
    load_to_json(load, &asked, object);
    add_asked(json_object_get(object, "asked"), run->options);
    json_object_set_new(object, "accepted_per_s",
                        load_rate_json(seconds > 0 ? (double)run->accepted / seconds : 0));
    for (size_t i = 0; i < run->tally.n_problems; i++)
        set_integer(problems, run->tally.problems[i].name, (int64_t)run->tally.problems[i].count);
    json_t *lock = json_object();
    json_object_set_new(lock, "wait", lock_json(&run->lock_times, &run->lock_times.wait));
    json_object_set_new(lock, "hold", lock_json(&run->lock_times, &run->lock_times.hold));
    json_object_set_new(object, "lock_us", lock);
    json_object_set_new(object, "thresholds", thresholds_json(run));
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

/* An option, or null: as the service is configured. */
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
    json_object_set_new(object, "verdict", run->judged ? verdict_json(run) : json_null());
    json_object_set_new(object, "not_judged",
                        run->judged ? json_null() : json_string(run->message));
    json_object_set_new(object, "counterexample", counterexample_json(run));
    json_object_set_new(object, "disagreements", disagreements_json(run));
    set_integer(object, "accepted", (int64_t)run->accepted);
    set_integer(object, "refused", (int64_t)run->refused);
    set_integer(object, "failed", (int64_t)run->failed);
    json_object_set_new(object, "initial", judged_json(run, run->initial));
    json_object_set_new(object, "expected", judged_json(run, run->expected));
    json_object_set_new(object, "actual", judged_json(run, run->actual));
    if (run->textbook.pairs > 0)
        json_object_set_new(object, "textbook", textbook_json(&run->textbook));
    add_load(object, run); /* zeros if it was stopped before the load */
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
