#include "report.h"
#include "output.h"
#include "text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool report_as_claimed(const struct report *report)
{
    bool all = report->n_runs > 0 && !options_stopped(report->options);
    for (int i = 0; i < report->n_runs; i++)
        all = all && run_as_claimed(&report->runs[i]);
    return all;
}

bool report_keeps_thresholds(const struct report *report)
{
    bool all = true;
    for (int i = 0; i < report->n_runs; i++)
        all = all && run_keeps_thresholds(&report->runs[i]);
    return all;
}

const struct run *report_example(const struct report *report, const struct workload *workload)
{
    const struct run *best = NULL;
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        if (run->workload != workload || !run->has_counterexample)
            continue;
        if (best == NULL || (best->claims_safe && !run->claims_safe))
            best = run;
    }
    return best;
}

/* -- sentences --------------------------------------------------------------------------------- */

struct sentence {
    char *out;
    size_t size, used;
};

static void say(struct sentence *sentence, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct sentence *sentence, const char *format, ...)
{
    va_list args;
    if (sentence->used >= sentence->size)
        return;
    va_start(args, format);
    sentence->used += (size_t)vsnprintf(sentence->out + sentence->used,
                                        sentence->size - sentence->used, format, args);
    va_end(args);
}

/* Lists the guards with this claim, each once, in quotes because one is called none. Returns how
 * many. */
static int say_guards(struct sentence *sentence, const struct report *report, bool claims_safe)
{
    int n = 0;
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        bool first = run->claims_safe == claims_safe;
        for (int j = 0; j < i && first; j++)
            first = strcmp(report->runs[j].guard, run->guard) != 0 ||
                    report->runs[j].instances != run->instances;
        if (!first)
            continue;
        char label[60];
        say(sentence, "%s'%s'", n++ == 0 ? "" : ", ", run_label(run, label, sizeof label));
    }
    return n;
}

static void say_dropped(struct sentence *sentence, const struct run *run)
{
    char overload[LOAD_OVERLOAD_MAX];
    if (load_overload(&run->load, overload, sizeof overload))
        say(sentence, "%s;", overload);
}

static void say_broken_claim(struct sentence *sentence, const struct run *run)
{
    char verdict[60], label[60];
    say(sentence, " %s under %s: ", run->workload->name, run_label(run, label, sizeof label));
    if (!run->judged)
        say(sentence, "%s;", run->message);
    else if (run->interrupted)
        say(sentence, "stopped before its end;");
    else if (run->failed > 0 && !run_broke_claim(run))
        say(sentence, "%llu requests failed (%s);", (unsigned long long)run->failed,
            run->tally.failure);
    else if (run_dropped(run) > 0 && !run_broke_claim(run))
        say_dropped(sentence, run);
    else if (run->accepted == 0 && run->verdict.unknown > 0 &&
             run->tally.refused_for_now[0] != '\0')
        say(sentence, "nothing was accepted, requests were refused for now (%s);",
            run->tally.refused_for_now);
    else
        say(sentence, "%s, %s;", run_verdict_text(run, verdict, sizeof verdict),
            run->claims_safe ? "but it claims to be safe" : "but it was expected to lose");
}

/* Are all runs as claimed, except for requests that were due and never sent? */
static bool only_dropped(const struct report *report)
{
    bool only = true;
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        only = only && (run_as_claimed(run) ||
                        (run_dropped(run) > 0 && run->failed == 0 && !run_broke_claim(run)));
    }
    return only;
}

static const char *heading_of(const struct report *report)
{
    bool judged = true;
    for (int i = 0; i < report->n_runs; i++)
        judged = judged && report->runs[i].judged;
    if (!judged)
        return "NOT JUDGED: the audit could not be read:";
    if (options_stopped(report->options))
        return "INTERRUPTED: not everything was tried;";
    return only_dropped(report) ? "OVERLOADED:" : "NOT AS CLAIMED:";
}

/* Broken thresholds are part of the verdict, so they come first. */
static void say_broken_thresholds(struct sentence *sentence, const struct report *report)
{
    int n = 0;
    for (int i = 0; i < report->n_runs; i++)
        for (int j = 0; j < report->options->n_thresholds; j++) {
            const struct threshold *threshold = &report->options->thresholds[j];
            double value;
            if (!run_keeps_threshold(&report->runs[i], j, &value) && n++ == 0)
                say(sentence, "THRESHOLD BROKEN: %s", threshold->text);
        }
    if (n > 1)
        say(sentence, " and %d more", n - 1);
    if (n > 0)
        say(sentence, ". ");
}

void report_headline(const struct report *report, char *out, size_t size)
{
    struct sentence sentence = {.out = out, .size = size};
    say_broken_thresholds(&sentence, report);
    if (report_as_claimed(report)) {
        char unsafe[600], safe[600];
        struct sentence losers = {.out = unsafe, .size = sizeof unsafe};
        struct sentence winners = {.out = safe, .size = sizeof safe};
        int n_unsafe = say_guards(&losers, report, false);
        int n_safe = say_guards(&winners, report, true);
        say(&sentence, "As claimed.");
        if (n_unsafe > 0)
            say(&sentence, " Caught losing: %s.", unsafe);
        if (n_safe > 0)
            say(&sentence, " Lost nothing: %s.", safe);
        return;
    }
    say(&sentence, "%s", heading_of(report));
    for (int i = 0; i < report->n_runs; i++)
        if (!run_as_claimed(&report->runs[i]))
            say_broken_claim(&sentence, &report->runs[i]);
    if (sentence.used < size && out[sentence.used - 1] == ';')
        out[sentence.used - 1] = '.';
}

void report_counterexample(const struct run *run, char *out, size_t size)
{
    const struct ledger_row *a = &run->counterexample[0], *b = &run->counterexample[1];
    struct sentence sentence = {.out = out, .size = size};
    char read_a[TEXT_MAX], wrote_a[TEXT_MAX], read_b[TEXT_MAX], wrote_b[TEXT_MAX], text[TEXT_MAX];
    say(&sentence, "%s read %s and wrote %s; ", a->txn_id, text_count(read_a, a->before),
        text_count(wrote_a, a->after));
    say(&sentence, "%s had read %s%s and wrote %s: ", b->txn_id, text_count(read_b, b->before),
        a->before == b->before ? " too" : "", text_count(wrote_b, b->after));
    if (strncmp(a->resource, "item:", 5) == 0 && a->delta == -1)
        say(&sentence, "one sale vanished.");
    else
        say(&sentence, "the change of %s was lost: together they make %s.",
            text_signed(text, a->delta), text_count(wrote_a, a->before + a->delta + b->delta));
}

/* -- writing ----------------------------------------------------------------------------------- */

static int write_file(const struct report *report, const char *path,
                      void (*write)(const struct report *report, FILE *out))
{
    FILE *file = output_open("loadgen", path);
    if (file == NULL)
        return -1;
    write(report, file);
    return output_close("loadgen", path, file);
}

int report_write(const struct report *report)
{
    const struct options *options = report->options;
    int result = 0;
    bool data_on_stdout = options->json != NULL && strcmp(options->json, "-") == 0;
    if (!options->quiet)
        report_text(report, data_on_stdout ? stderr : stdout);
    if (options->json != NULL && output_json("loadgen", options->json, report_to_json(report)) != 0)
        result = -1;
    if (options->html != NULL && write_file(report, options->html, report_to_html) != 0)
        result = -1;
    if (options->csv != NULL && write_file(report, options->csv, report_to_csv) != 0)
        result = -1;
    const char *const files[] = {options->json, options->html, options->csv, options->history};
    if (!options->quiet && !data_on_stdout && result == 0)
        output_tell(stdout, files, sizeof files / sizeof *files);
    return result;
}

void report_free(struct report *report)
{
    for (int i = 0; i < report->n_runs; i++)
        run_free(&report->runs[i]);
    report->n_runs = 0;
}
