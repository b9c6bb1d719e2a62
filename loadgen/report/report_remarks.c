/* Below the tables on the terminal: remarks besides the verdict, and the proof of a loss. */
#include "report_text.h"
#include "schedule.h"
#include "text.h"

#include <string.h>

enum { SENTENCE_MAX = 2048 };

/* Prints only counts above 0. */
static void print_remarks(const struct report_paper *paper, const struct run *run)
{
    const struct verdict *verdict = &run->verdict;
    const struct {
        uint64_t count;
        const char *text;
    } remarks[] = {
        {run->load.dropped, run_dropped(run) > 0 ? "requests were due but never sent: errors"
                                                 : "requests were due but never sent"},
        {run->load.ends[LOAD_ABANDONED], "requests were abandoned before their answer"},
        {run->load.ends[LOAD_TIMED_OUT], "sendings had no answer in time"},
        {run->load.ends[LOAD_NOT_SENT], "sendings found no connection"},
        {run->load.ends[LOAD_BAD_ANSWER], "sendings got an answer that is not HTTP"},
        {run->load.unfinished, "requests ended before their next retry"},
        {run->load.ends[LOAD_BROKEN], "sendings lost their connection"},
        {run->load.retries, "retries"},
        {run->failed, "requests failed"},
        {(uint64_t)verdict->replay_mismatch, "repeated requests were answered differently"},
        {(uint64_t)verdict->mismatch, "is the difference between answers and store"},
        {(uint64_t)verdict->unknown, "outcomes stayed unknown"},
    };
    char count[TEXT_MAX];
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++)
        if (remarks[i].count != 0)
            report_say(paper, NULL, "  %s under %s: %s %s", run->workload->name, run->guard,
                       text_count(count, (int64_t)remarks[i].count), remarks[i].text);
    char cut[REMOTE_MESSAGE_MAX];
    if (run_cut_short(run, cut, sizeof cut))
        report_say(paper, COLOR_RED, "  %s under %s: %s", run->workload->name, run->guard, cut);
    const struct {
        const char *answer, *what;
    } firsts[] = {{run->tally.failure, "failure"}, {run->tally.refused_for_now, "refusal for now"}};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        if (firsts[i].answer[0] != '\0')
            report_say(paper, NULL, "  %s under %s: first %s: %s", run->workload->name, run->guard,
                       firsts[i].what, firsts[i].answer);
}

/* Why requests were sent late, if each has its own time. */
static void print_lag(const struct report_paper *paper, const struct run *run)
{
    const struct hist *own = &run->load.own_lag, *waited = &run->load.no_connection;
    char a[TEXT_MAX], b[TEXT_MAX], c[TEXT_MAX], d[TEXT_MAX];
    if (own->count == 0 || !schedule_is_open(run->mode))
        return;
    report_say(paper, NULL,
               "  %s under %s: sent late by loadgen itself: p50 %s, max %s; for want of a free "
               "connection: p50 %s, max %s",
               run->workload->name, run->guard, text_time_us(a, hist_percentile(own, 50)),
               text_time_us(b, own->max), text_time_us(c, hist_percentile(waited, 50)),
               text_time_us(d, waited->max));
}

/* The figures on which audit and ledger disagree. */
static void print_disagreements(const struct report_paper *paper, const struct run *run)
{
    char service[TEXT_MAX], own[TEXT_MAX];
    for (int i = 0; i < run->n_disagreements; i++) {
        const struct disagreement *each = &run->disagreements[i];
        report_say(
            paper, NULL,
            "  %s under %s: audit and ledger disagree on %s: %s is %s by the service's audit and "
            "%s by its ledger rows",
            run->workload->name, run->guard, each->resource, each->figure,
            text_count(service, each->service), text_count(own, each->own));
    }
    int64_t all = run->verdict.disagreements + run->textbook.verdict.disagreements;
    if (all > run->n_disagreements)
        report_say(paper, NULL, "  %s under %s: and on %s more figures", run->workload->name,
                   run->guard, text_count(own, all - run->n_disagreements));
}

static void print_thresholds(const struct report_paper *paper, const struct run *run)
{
    for (int i = 0; i < run->options->n_thresholds; i++) {
        const struct threshold *threshold = &run->options->thresholds[i];
        char value[TEXT_MAX];
        double figure;
        bool kept = run_keeps_threshold(run, i, &figure);
        report_say(paper, kept ? COLOR_GREEN : COLOR_RED, "  %s %s under %s: %s is %s%s",
                   kept ? "kept  " : "BROKEN", run->workload->name, run->guard, threshold->text,
                   threshold_value_text(threshold, figure, value, sizeof value),
                   run->aborted_by == threshold ? "; the load was ended early" : "");
    }
}

void report_text_example(const struct report_paper *paper, const struct run *run)
{
    const struct ledger_row *rows = run->counterexample;
    char sentence[SENTENCE_MAX], before[TEXT_MAX], after[TEXT_MAX];
    fputc('\n', paper->out);
    report_say(paper, COLOR_STRONG, "How %s lost an update under %s: two changes of %s",
               run->workload->name, run->guard, rows[0].resource);
    for (int i = 0; i < 2; i++)
        report_say(paper, NULL, "  %s  read %s (version %lld)  wrote %s  in %s", rows[i].instance,
                   text_count(before, rows[i].before), (long long)rows[i].version_before,
                   text_count(after, rows[i].after), rows[i].txn_id);
    report_counterexample(run, sentence, sizeof sentence);
    report_say(paper, NULL, "  %s", sentence);
}

void report_text_remarks(const struct report_paper *paper, const struct report *report)
{
    static void (*const parts[])(const struct report_paper *paper, const struct run *run) = {
        print_remarks, print_lag, print_disagreements, print_thresholds};
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        for (int i = 0; i < report->n_runs; i++)
            parts[part](paper, &report->runs[i]);
}
