/* A self-contained page: no script, font or picture from elsewhere. */
#include "html.h"
#include "text.h"
#include "wide.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { SENTENCE_MAX = 2048 };

void html_text(FILE *out, const char *text)
{
    char escaped[6 * SENTENCE_MAX];
    fputs(text_html(escaped, sizeof escaped, text), out);
}

static void cell(FILE *out, const char *class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void cell(FILE *out, const char *class, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(out, "<td%s%s%s>", class == NULL ? "" : " class='", class == NULL ? "" : class,
            class == NULL ? "" : "'");
    html_text(out, text);
    fputs("</td>", out);
}

/* -- charts ------------------------------------------------------------------------------------ */

/* Fills the bar of one run. */
typedef void fill_bar(const struct run *run, struct html_bar *bar);

static void fill_sold(const struct run *run, struct html_bar *bar)
{
    char sold[TEXT_MAX], over[TEXT_MAX];
    if (!run->judged) {
        snprintf(bar->text, sizeof bar->text, "not judged");
        return;
    }
    bar->bad = (double)run->verdict.oversold;
    bar->good = (double)(run->actual - run->verdict.oversold);
    if (run->verdict.oversold > 0)
        snprintf(bar->text, sizeof bar->text, "%s sold, %s too many", text_count(sold, run->actual),
                 text_count(over, run->verdict.oversold));
    else
        snprintf(bar->text, sizeof bar->text, "%s sold", text_count(sold, run->actual));
}

static void fill_lost(const struct run *run, struct html_bar *bar)
{
    char lost[TEXT_MAX], amount[TEXT_MAX];
    bar->bad = (double)run->verdict.lost_updates;
    if (!run->judged)
        snprintf(bar->text, sizeof bar->text, "not judged");
    else if (run->verdict.lost_updates > 0)
        snprintf(bar->text, sizeof bar->text, "%s lost, balances off by %s",
                 text_count(lost, run->verdict.lost_updates),
                 text_count(amount, run->verdict.lost_amount));
    else
        snprintf(bar->text, sizeof bar->text, "none lost");
}

static void fill_speed(const struct run *run, struct html_bar *bar)
{
    char rate[TEXT_MAX], p99[TEXT_MAX];
    bar->good = load_rate(&run->load);
    snprintf(bar->text, sizeof bar->text, "%s/s, p99 %s", text_rate(rate, bar->good),
             text_percentile(p99, load_percentile(&run->load, 99)));
}

static void draw_chart(const struct report *report, const struct workload *workload,
                       const char *title, fill_bar *fill, int64_t mark, FILE *out)
{
    struct html_chart chart = {.title = title, .description = title, .mark = (double)mark};
    char number[TEXT_MAX];
    snprintf(chart.mark_text, sizeof chart.mark_text, "in stock: %s", text_count(number, mark));
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        if (run->workload != workload)
            continue;
        struct html_bar *bar = &chart.bars[chart.n_bars++];
        char label[40];
        run_label(run, label, sizeof label);
        bar->is_bad = !run_is_well(run);
        snprintf(bar->label, sizeof bar->label, "%s %s", label, bar->is_bad ? "✗" : "✓");
        fill(run, bar);
    }
    fprintf(out, "<div class='card'><p class='note'>");
    html_text(out, title);
    fprintf(out, "</p>\n");
    html_chart(&chart, out);
    fprintf(out, "</div>\n");
}

/* -- tables ------------------------------------------------------------------------------------ */

/* A figure that only the audit knows. */
static void judged_cell(const struct run *run, int64_t value, FILE *out)
{
    char text[TEXT_MAX];
    cell(out, NULL, "%s", run->judged ? text_count(text, value) : "-");
}

static void draw_row(const struct run *run, FILE *out)
{
    char label[40], verdict[60], a[TEXT_MAX];
    const struct verdict *v = &run->verdict;
    run_label(run, label, sizeof label);
    fprintf(out, "<tr>");
    cell(out, NULL, "%s", label);
    cell(out, run_is_well(run) ? "ok" : "broken", "%s %s%s", run_is_well(run) ? "✓" : "✗",
         run_verdict_text(run, verdict, sizeof verdict), run->interrupted ? " (interrupted)" : "");
    cell(out, NULL, "%s", run->claims_safe ? "safe" : "nothing");
    judged_cell(run, run->expected, out);
    judged_cell(run, run->actual, out);
    if (run->workload->sells)
        judged_cell(run, v->undersold, out);
    else if (run->textbook.pairs > 0)
        cell(out, NULL, "%s", text_count(a, run->textbook.final));
    else
        cell(out, NULL, "-");
    judged_cell(run, v->lost_updates, out);
    judged_cell(run, v->lost_amount, out);
    cell(out, NULL, "%s", text_rate(a, load_rate(&run->load)));
    cell(out, NULL, "%s", text_percentile(a, load_percentile(&run->load, 99)));
    fprintf(out, "</tr>\n");
}

static void draw_table(const struct report *report, const struct workload *workload, FILE *out)
{
    bool is_sale = workload->sells;
    fprintf(out,
            "<div class='card'><table><tr><th>guard</th><th>verdict</th><th>claims</th>"
            "<th>%s</th><th>%s</th><th>%s</th><th>lost updates</th><th>lost amount</th>"
            "<th>requests/s</th><th>p99</th></tr>\n",
            is_sale ? "to sell" : "expected", is_sale ? "sold" : "actual",
            is_sale ? "undersold" : "textbook");
    for (int i = 0; i < report->n_runs; i++)
        if (report->runs[i].workload == workload)
            draw_row(&report->runs[i], out);
    fprintf(out, "</table></div>\n");
}

/* The bucket of a percentile, as text. */
static void bound_cell(FILE *out, const struct lock_times *times,
                       const struct lock_times_histogram *histogram, double percentile)
{
    char text[TEXT_MAX];
    double us = lock_times_percentile_us(times, histogram, percentile);
    bool beyond = us >= HUGE_VAL;
    if (beyond)
        us = times->n_bounds > 0 ? times->bounds_us[times->n_bounds - 1] : 0;
    cell(out, NULL, "%s %s", beyond ? ">" : "≤", text_time_us(text, wide_clip_real(us)));
}

static void lock_cells(const struct lock_times *times, const struct lock_times_histogram *histogram,
                       FILE *out)
{
    char mean[TEXT_MAX];
    cell(out, NULL, "%s", text_time_us(mean, wide_clip_real(lock_times_mean_us(histogram))));
    bound_cell(out, times, histogram, 50);
    bound_cell(out, times, histogram, 99);
}

static void draw_lock_times(const struct report *report, const struct workload *workload, FILE *out)
{
    bool begun = false;
    char label[40], grants[TEXT_MAX];
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        const struct lock_times *times = &run->lock_times;
        if (run->workload != workload || times->wait.count == 0)
            continue;
        if (!begun)
            fprintf(out, "<div class='card'><p class='note'>How long the lock was waited for and "
                         "held, by the service's own clock</p>\n<table><tr><th>guard</th>"
                         "<th>grants</th><th>wait, mean</th><th>wait, p50</th><th>wait, p99</th>"
                         "<th>hold, mean</th><th>hold, p50</th><th>hold, p99</th></tr>\n");
        begun = true;
        fprintf(out, "<tr>");
        cell(out, NULL, "%s", run_label(run, label, sizeof label));
        cell(out, NULL, "%s", text_count(grants, (int64_t)times->wait.count));
        lock_cells(times, &times->wait, out);
        lock_cells(times, &times->hold, out);
        fprintf(out, "</tr>\n");
    }
    if (begun)
        fprintf(out, "</table></div>\n");
}

static const struct run *first_of(const struct report *report, const struct workload *workload)
{
    for (int i = 0; i < report->n_runs; i++)
        if (report->runs[i].workload == workload)
            return &report->runs[i];
    return NULL;
}

static void draw_workload(const struct report *report, const struct workload *workload, FILE *out)
{
    const struct run *run = first_of(report, workload);
    char a[TEXT_MAX], b[TEXT_MAX];
    if (run == NULL)
        return;
    if (workload->sells) {
        fprintf(out, "<h2>%s: %s piece%s, %s requests</h2>\n", workload->heading,
                text_count(a, run->options->stock), run->options->stock == 1 ? "" : "s",
                text_count(b, (int64_t)run->load.completed));
        draw_chart(report, workload, "Pieces sold; what is beyond the line does not exist",
                   fill_sold, run->options->stock, out);
        draw_chart(report, workload,
                   "Requests per second, refusals included, and p99 from the moment due",
                   fill_speed, 0, out);
    } else {
        fprintf(out, "<h2>%s: %s %s on %s accounts</h2>\n", workload->heading,
                text_count(a, (int64_t)run->load.completed), workload->unit,
                text_count(b, run->options->accounts));
        draw_chart(report, workload, "Changes that were acknowledged and then overwritten",
                   fill_lost, 0, out);
    }
    draw_table(report, workload, out);
    html_time(report, run, out);
    draw_lock_times(report, workload, out);
    if (run->textbook.pairs > 0)
        fprintf(out,
                "<p class='note'>textbook: an account of 1,000, from which 200 and 300 are taken "
                "at the same time; 500 must remain. Tried on fresh accounts until a pair loses, "
                "%d times at most.</p>\n",
                run->options->pairs);
}

/* -- the page ---------------------------------------------------------------------------------- */

static void draw_example(const struct run *run, FILE *out)
{
    char sentence[SENTENCE_MAX];
    if (run == NULL)
        return;
    fprintf(out, "<h2>Proof: how %s lost an update under <code>", run->workload->name);
    html_text(out, run->guard);
    fprintf(out, "</code></h2>\n<p>");
    report_counterexample(run, sentence, sizeof sentence);
    html_text(out, sentence);
    fprintf(out, "</p>\n<div class='card'>\n");
    html_fork(run->counterexample, out);
    fprintf(out, "</div>\n");
}

static void draw_setting(const struct report *report, FILE *out)
{
    const struct environment *environment = &report->environment;
    const struct run *run = &report->runs[0];
    char number[TEXT_MAX];
    bool closed = false;
    for (int i = 0; i < report->n_runs; i++)
        closed = closed || report->runs[i].mode == LOAD_CLOSED;
    fprintf(out,
            "<h2>How it was measured</h2>\n<div class='card'><dl>\n<dt>command</dt><dd><code>");
    html_text(out, report->options->command);
    fprintf(out, "</code></dd>\n<dt>seed</dt><dd>%llu</dd>\n<dt>load</dt><dd>",
            (unsigned long long)report->options->seed);
    fprintf(out, "%d connections, %d instance%s, lanes %s</dd>\n", report->options->connections,
            run->instances, run->instances == 1 ? "" : "s", run->lanes ? "on" : "off");
    if (report->store[0] != '\0') {
        fprintf(out, "<dt>store</dt><dd>");
        html_text(out, report->store);
        fprintf(out, "</dd>\n");
    }
    fprintf(out,
            "<dt>times</dt><dd>p99 counts from the moment a request was due, waiting for "
            "a free connection included%s</dd>\n<dt>machine</dt><dd>",
            closed ? "; " LOAD_CLOSED_NOTE(" ") : "");
    html_text(out, environment->cpu);
    fprintf(out, ", %d cores, %s MB</dd>\n<dt>system</dt><dd>", environment->cores,
            text_count(number, environment->memory_mb));
    html_text(out, environment->system);
    fprintf(out, "</dd>\n<dt>at</dt><dd>%s</dd>\n</dl></div>\n", environment->at);
}

void report_to_html(const struct report *report, FILE *out)
{
    char headline[SENTENCE_MAX];
    bool good = report_as_claimed(report) && report_keeps_thresholds(report);
    report_headline(report, headline, sizeof headline);
    fprintf(out,
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width,initial-scale=1'>"
            "<title>Flash sale: verdict</title>\n<style>\n%s</style></head>\n<body><main>\n"
            "<h1>Flash sale: what each guard lost</h1>\n<p class='headline%s'>%s ",
            html_style, good ? "" : " bad", good ? "✓" : "✗");
    html_text(out, headline);
    fprintf(out, "</p>\n");
    for (size_t i = 0; workloads[i] != NULL; i++)
        draw_workload(report, workloads[i], out);
    for (size_t i = 0; workloads[i] != NULL; i++)
        draw_example(report_example(report, workloads[i]), out);
    draw_setting(report, out);
    fprintf(out, "</main></body></html>\n");
}
