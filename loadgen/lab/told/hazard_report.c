#include "hazard_report.h"

#include <stdlib.h>
#include <string.h>

static bool agrees(const struct hazard_run *run)
{
    return run->took_effect && run->observed == run->one->expected;
}

/* The run that is shown: the first that disagrees, or else the last. */
static int keep(struct lab_result *result, const struct hazard_run *run)
{
    int n = run->n_events < LAB_KEPT_EVENTS_MAX ? run->n_events : LAB_KEPT_EVENTS_MAX;
    struct run_event *events = calloc((size_t)n + 1, sizeof *events);
    if (events == NULL)
        return -1;
    memcpy(events, run->events, (size_t)n * sizeof *events);
    free(result->events);
    result->events = events;
    result->n_events = n;
    result->observed = run->observed;
    result->outcome = run->outcome;
    snprintf(result->message, sizeof result->message, "%s", run->took_effect ? "" : run->message);
    return 0;
}

int lab_result_add(struct lab_result *result, const struct hazard_run *run)
{
    bool disagreed = !lab_result_agrees(result);
    result->runs++;
    result->took_effect += run->took_effect;
    result->agreeing += agrees(run);
    result->fence = run->with.fence == ON;
    return disagreed ? 0 : keep(result, run);
}

bool lab_result_agrees(const struct lab_result *result)
{
    return result->agreeing == result->runs;
}

int lab_mismatches(const struct lab_report *report)
{
    int n = 0;
    for (int i = 0; i < report->n_results; i++)
        n += !lab_result_agrees(&report->results[i]);
    return n;
}

bool lab_was_run(const struct lab_report *report, const struct lab_result *result)
{
    return result->runs == report->repeat;
}

int lab_not_run(const struct lab_report *report)
{
    int n = 0;
    for (int i = 0; i < report->n_results; i++)
        n += !lab_was_run(report, &report->results[i]);
    return n;
}

void lab_report_free(struct lab_report *report)
{
    for (int i = 0; i < report->n_results; i++)
        free(report->results[i].events);
}

/* -- JSON -------------------------------------------------------------------------------------- */

static json_t *outcome_json(const struct lab_result *result)
{
    const struct run_outcome *o = &result->outcome;
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "unit",
                  result->hazard->subject == ITEM ? "sold" : "balance", "initial",
                  (json_int_t)o->initial, "expected_final", (json_int_t)o->expected_final, "final",
                  (json_int_t)o->final, "lost_updates", (json_int_t)o->lost_updates, "lost_amount",
                  (json_int_t)o->lost_amount, "oversold", (json_int_t)o->oversold, "duplicates",
                  (json_int_t)o->duplicates, "measure_ms", (json_int_t)o->measure_ms);
    if (result->hazard->queue > 0) {
        json_object_set_new(json, "overtakings", json_integer((json_int_t)o->overtakings));
        json_object_set_new(json, "mean_wait_ms", json_integer((json_int_t)o->mean_wait_ms));
    }
    if (result->hazard->crowd > 0)
        json_object_set_new(json, "failed", json_integer((json_int_t)o->failed));
    if (result->hazard->slow_wakes > 0)
        json_object_set_new(json, "wake_ups_per_release", json_integer((json_int_t)o->wakes));
    if (o->has_fork)
        json_object_set_new(
            json, "counterexample",
            json_pack("[o, o]", ledger_row_to_json(&o->fork[0]), ledger_row_to_json(&o->fork[1])));
    return json;
}

static json_t *timeline_json(const struct lab_result *result)
{
    json_t *timeline = json_array();
    for (int i = 0; i < result->n_events; i++) {
        const struct run_event *event = &result->events[i];
        json_array_append_new(
            timeline, json_pack("{s:I, s:s, s:s, s:o, s:I}", "t_us", (json_int_t)event->t_us,
                                "actor", event->actor, "point", event->point, "value",
                                event->has_value ? json_integer(event->value) : json_null(),
                                "fence", (json_int_t)event->fence));
    }
    return timeline;
}

/* As they are told; see hazard_facts.h. */
static json_t *facts_json(const struct lab_result *result)
{
    static struct lab_fact facts[LAB_FACTS_MAX];
    json_t *list = json_array();
    const int n = lab_facts(result, facts);
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "id", facts[i].id, "en",
                                              facts[i].text[EN], "zh", facts[i].text[ZH]));
    return list;
}

static json_t *result_json(const struct lab_result *result)
{
    const char *as = result->one->as[EN];
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:s, s:s, s:i, s:i, s:i, s:s, s:o, s:o, s:o}", "hazard",
        result->hazard->id, "guard", result->one->guard, "variant", as == NULL ? "" : as, "fence",
        result->fence, "expected", hazard_outcome_text(result->one->expected), "observed",
        hazard_outcome_text(result->observed), "runs", result->runs, "agreeing", result->agreeing,
        "fault_took_effect", result->took_effect, "message", result->message, "outcome",
        outcome_json(result), "facts", facts_json(result), "timeline", timeline_json(result));
}

static json_t *not_run_json(const struct lab_result *result)
{
    const char *as = result->one->as[EN];
    return json_pack("{s:s, s:s, s:s, s:i}", "hazard", result->hazard->id, "guard",
                     result->one->guard, "variant", as == NULL ? "" : as, "runs", result->runs);
}

/* A case that was begun is in both lists. */
json_t *lab_report_to_json(const struct lab_report *report)
{
    json_t *results = json_array(), *not_run = json_array();
    for (int i = 0; i < report->n_results; i++) {
        const struct lab_result *result = &report->results[i];
        if (result->runs > 0)
            json_array_append_new(results, result_json(result));
        if (!lab_was_run(report, result))
            json_array_append_new(not_run, not_run_json(result));
    }
    return json_pack("{s:I, s:b, s:i, s:o, s:o}", "seed", (json_int_t)report->seed, "complete",
                     lab_not_run(report) == 0, "mismatches", lab_mismatches(report), "results",
                     results, "not_run", not_run);
}

json_t *lab_list_to_json(const struct hazard_options *wanted)
{
    json_t *list = json_array();
    for (size_t i = 0; hazard_list[i] != NULL; i++) {
        const struct hazard *hazard = hazard_list[i];
        json_t *cases = json_array();
        for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++)
            if (hazard_options_want(wanted, hazard, one))
                json_array_append_new(cases,
                                      json_pack("{s:s, s:s, s:s}", "guard", one->guard, "variant",
                                                one->as[EN] ? one->as[EN] : "", "expected",
                                                hazard_outcome_text(one->expected)));
        if (json_array_size(cases) == 0) {
            json_decref(cases);
            continue;
        }
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "id", hazard->id,
                                        "title", hazard->title[EN], "title_zh", hazard->title[ZH],
                                        "story", hazard->story[EN], "warning", hazard->warning[EN],
                                        "fix", hazard->fix[EN], "cases", cases));
    }
    return list;
}

/* -- Markdown ---------------------------------------------------------------------------------- */

static void write_cases(const struct hazard *hazard, const struct hazard_options *wanted, bool safe,
                        FILE *out)
{
    const char *separator = " ";
    for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++) {
        const char *as = one->as[EN];
        if ((one->expected == HAZARD_SAFE) != safe || !hazard_options_want(wanted, hazard, one))
            continue;
        fprintf(out, "%s`%s`%s%s%s", separator, one->guard, as ? " (" : "", as ? as : "",
                as ? ")" : "");
        if (!safe)
            fprintf(out, " **%s**", hazard_outcome_text(one->expected));
        separator = ", ";
    }
    fputs(" |", out);
}

void lab_row_to_markdown(const struct hazard *hazard, const struct hazard_options *wanted,
                         FILE *out)
{
    fprintf(out, "| `%s`: %s |", hazard->id, hazard->title[EN]);
    write_cases(hazard, wanted, false, out);
    write_cases(hazard, wanted, true, out);
    fputc('\n', out);
}
