/* The table on the terminal: verdict first, one line per run, then the proof. */
#include "compare.h"
#include "report_text.h"
#include "text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS_MAX = 12, CELL_MAX = 48, SENTENCE_MAX = 2048 };

struct table {
    struct report_paper paper;
    int n_columns, n_rows;
    char cells[REPORT_RUNS_MAX + 1][COLUMNS_MAX][CELL_MAX]; /* row 0: headings */
    const char *colors[REPORT_RUNS_MAX + 1];                /* of the verdict's cell */
};

static void paint(const struct report_paper *paper, const char *color, const char *text)
{
    if (paper->color)
        fprintf(paper->out, "%s%s" COLOR_OFF, color, text);
    else
        fputs(text, paper->out);
}

void report_say(const struct report_paper *paper, const char *color, const char *format, ...)
{
    char line[SENTENCE_MAX], wrapped[SENTENCE_MAX + SENTENCE_MAX / 8];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_wrap(wrapped, sizeof wrapped, line, 4);
    if (color != NULL)
        paint(paper, color, wrapped);
    else
        fputs(wrapped, paper->out);
    fputc('\n', paper->out);
}

/* Texts (guard, verdict) are left-aligned, figures right-aligned. */
static void print_table(const struct table *table)
{
    int widths[COLUMNS_MAX] = {0};
    for (int row = 0; row < table->n_rows; row++)
        for (int column = 0; column < table->n_columns; column++) {
            int width = (int)strlen(table->cells[row][column]);
            widths[column] = width > widths[column] ? width : widths[column];
        }
    for (int row = 0; row < table->n_rows; row++) {
        for (int column = 0; column < table->n_columns; column++) {
            char cell[CELL_MAX + 8];
            bool left = column < 2;
            snprintf(cell, sizeof cell, left ? "%-*s" : "%*s", widths[column],
                     table->cells[row][column]);
            fputs(column == 0 ? "" : "  ", table->paper.out);
            if (row == 0)
                paint(&table->paper, COLOR_DIM, cell);
            else if (column == 1)
                paint(&table->paper, table->colors[row], cell);
            else
                fputs(cell, table->paper.out);
        }
        fputc('\n', table->paper.out);
    }
}

static char *cell_of(struct table *table, int *column)
{
    return table->cells[table->n_rows][(*column)++];
}

/* -- one workload's table ---------------------------------------------------------------------- */

enum { HEADINGS = 7 };
static const char *const sale_headings[] = {"guard", "verdict", "sold", "lost updates",
                                            "req/s", "p50",     "p99"};
static const char *const money_headings[] = {"guard", "verdict", "pair", "lost updates",
                                             "req/s", "p50",     "p99"};

static void add_headings(struct table *table, const char *const *headings, int n)
{
    table->n_columns = n;
    for (int i = 0; i < n; i++)
        snprintf(table->cells[0][i], CELL_MAX, "%s", headings[i]);
    table->n_rows = 1;
}

static void add_guard(struct table *table, const struct run *run, int *column)
{
    run_label(run, cell_of(table, column), CELL_MAX);
    char *cell = cell_of(table, column);
    run_verdict_text(run, cell, CELL_MAX - 16);
    if (run->interrupted)
        strcat(cell, " (interrupted)");
    table->colors[table->n_rows] = run_is_well(run) ? COLOR_GREEN : COLOR_RED;
}

/* A figure that only the audit knows. */
static void add_judged(struct table *table, const struct run *run, int64_t value, int *column)
{
    char *cell = cell_of(table, column);
    if (run->judged)
        text_count(cell, value);
    else
        snprintf(cell, CELL_MAX, "-");
}

static double rate_of(const struct run *run)
{
    return load_rate(&run->load);
}

static double p50_of(const struct run *run)
{
    return (double)load_percentile(&run->load, 50);
}

static double p99_of(const struct run *run)
{
    return (double)load_percentile(&run->load, 99);
}

static void add_speed(struct table *table, const struct run *run, int *column)
{
    text_rate(cell_of(table, column), rate_of(run));
    text_percentile(cell_of(table, column), (int64_t)p50_of(run));
    text_percentile(cell_of(table, column), (int64_t)p99_of(run));
}

static void add_sale(struct table *table, const struct run *run)
{
    int column = 0;
    add_guard(table, run, &column);
    add_judged(table, run, run->actual, &column);
    add_judged(table, run, run->verdict.lost_updates, &column);
    add_speed(table, run, &column);
    table->n_rows++;
}

static void add_money(struct table *table, const struct run *run)
{
    int column = 0;
    add_guard(table, run, &column);
    char *textbook = cell_of(table, &column);
    if (run->textbook.pairs == 0)
        snprintf(textbook, CELL_MAX, "-");
    else
        text_count(textbook, run->textbook.final);
    add_judged(table, run, run->verdict.lost_updates, &column);
    add_speed(table, run, &column);
    table->n_rows++;
}

/* The setting of the runs, above the table. */
static void print_setting(const struct table *table, const struct run *run)
{
    const struct options *options = run->options;
    char a[TEXT_MAX], b[TEXT_MAX], line[400];
    if (run->workload->sells)
        snprintf(line, sizeof line, "sale: %s piece%s, %s %s", text_count(a, options->stock),
                 options->stock == 1 ? "" : "s", text_count(b, (int64_t)run->load.completed),
                 run->workload->unit);
    else
        snprintf(line, sizeof line, "%s: %s %s on %s accounts", run->workload->name,
                 text_count(a, (int64_t)run->load.completed), run->workload->unit,
                 text_count(b, options->accounts));
    report_say(&table->paper, COLOR_STRONG, "%s", line);
    report_say(&table->paper, NULL, "%s%s over %d connections, %d instance%s, lanes %s, seed %llu",
               options_mode_text(run->mode),
               options->arrivals == LOAD_POISSON ? " (Poisson arrivals)" : "", options->connections,
               run->instances, run->instances == 1 ? "" : "s", run->lanes ? "on" : "off",
               (unsigned long long)options->seed);
}

/* The spread of a figure over the runs of the same workload and guard that have it. */
static struct spread over_repeats(const struct report *report, const struct run *like,
                                  double (*figure)(const struct run *run))
{
    double samples[REPORT_RUNS_MAX];
    size_t n = 0;
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        double sample = figure(run);
        if (run->workload == like->workload && strcmp(run->guard, like->guard) == 0 && sample >= 0)
            samples[n++] = sample;
    }
    return n > 0 ? spread_of(samples, n) : (struct spread){.median = LOAD_NO_FIGURE};
}

/* Medians below the single runs, if each guard was run several times. */
static void print_medians(const struct report *report, const struct workload *workload,
                          const struct table *table)
{
    int n = report->options->n_guards == 0 ? 1 : report->options->n_guards;
    if (report->options->repeat <= 1)
        return;
    for (int i = 0, seen = 0; i < report->n_runs && seen < n; i++) {
        const struct run *run = &report->runs[i];
        char label[60], median[TEXT_MAX], min[TEXT_MAX], max[TEXT_MAX], p50[TEXT_MAX],
            p99[TEXT_MAX];
        if (run->workload != workload)
            continue;
        struct spread rate = over_repeats(report, run, rate_of);
        report_say(&table->paper, NULL,
                   "  %s: median of %zu: %s requests/s (%s to %s), p50 %s, p99 %s",
                   run_label(run, label, sizeof label), rate.n, text_rate(median, rate.median),
                   text_rate(min, rate.min), text_rate(max, rate.max),
                   text_percentile(p50, (int64_t)over_repeats(report, run, p50_of).median),
                   text_percentile(p99, (int64_t)over_repeats(report, run, p99_of).median));
        seen++;
    }
}

static void print_workload(const struct report *report, const struct workload *workload,
                           struct table *table)
{
    bool is_sale = workload->sells;
    const struct run *first = NULL;
    memset(table->cells, 0, sizeof table->cells);
    add_headings(table, is_sale ? sale_headings : money_headings, HEADINGS);
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        if (run->workload != workload)
            continue;
        if (first == NULL)
            first = run;
        if (is_sale)
            add_sale(table, run);
        else
            add_money(table, run);
    }
    if (first == NULL)
        return;
    fputc('\n', table->paper.out);
    print_setting(table, first);
    print_table(table);
    print_medians(report, workload, table);
}

/* -- the whole --------------------------------------------------------------------------------- */

/* The meaning of the tables' figures. */
static void print_legend(const struct report *report, const struct table *table)
{
    const struct report_paper *paper = &table->paper;
    bool closed = false, all_known = true, money = false;
    int pairs = 0;
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        closed = closed || run->mode == LOAD_CLOSED;
        all_known = all_known && p50_of(run) >= 0 && p99_of(run) >= 0;
        money = money || !run->workload->sells;
        pairs += run->textbook.pairs;
    }
    fputc('\n', paper->out);
    if (money)
        report_say(paper, COLOR_DIM, "  amounts: minor units, such as cents");
    if (pairs > 0)
        report_say(paper, COLOR_DIM, "  pair: 1,000 - 200 - 300 at the same time; 500 is right");
    report_say(paper, COLOR_DIM, "  req/s: answers per second, refusals such as sold-out included");
    report_say(paper, COLOR_DIM, "  p50, p99: from the moment a request was due to its answer");
    if (!all_known)
        report_say(paper, COLOR_DIM,
                   "  -: too few answers" LOAD_FEW_NOTE ", or among the requests never sent");
    if (closed) /* a closed load sends a request only when a connection is free */
        report_say(paper, COLOR_DIM, "  " LOAD_CLOSED_NOTE(" "));
}

static bool wants_color(const struct report *report, FILE *out)
{
    return !report->options->no_color && getenv("NO_COLOR") == NULL && isatty(fileno(out));
}

void report_text(const struct report *report, FILE *out)
{
    struct table *table = calloc(1, sizeof *table);
    char headline[SENTENCE_MAX];
    report_headline(report, headline, sizeof headline);
    if (table == NULL) {
        fprintf(out, "%s\n", headline);
        return;
    }
    table->paper.out = out;
    table->paper.color = wants_color(report, out);
    bool good = report_as_claimed(report) && report_keeps_thresholds(report);
    report_say(&table->paper, good ? COLOR_GREEN : COLOR_RED, "%s", headline);
    for (size_t i = 0; workloads[i] != NULL; i++)
        print_workload(report, workloads[i], table);
    print_legend(report, table);
    if (report->store[0] != '\0')
        fprintf(out, "  store: %s\n", report->store);
    report_text_remarks(&table->paper, report);
    for (size_t i = 0; workloads[i] != NULL; i++)
        if (report_example(report, workloads[i]) != NULL)
            report_text_example(&table->paper, report_example(report, workloads[i]));
    free(table);
}
