/* The table on the terminal: verdict first, one line per run, then the proof. */
#include "ratios.h"
#include "report.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLOR_OFF    "\033[0m"
#define COLOR_RED    "\033[1;31m"
#define COLOR_GREEN  "\033[32m"
#define COLOR_STRONG "\033[1m"
#define COLOR_DIM    "\033[2m"

enum { COLUMNS_MAX = 12, CELL_MAX = 48, SENTENCE_MAX = 2048 };

struct table {
    FILE *out;
    bool color;
    int n_columns, n_rows;
    char cells[REPORT_RUNS_MAX + 1][COLUMNS_MAX][CELL_MAX]; /* row 0: headings */
    const char *colors[REPORT_RUNS_MAX + 1];                /* of the verdict's cell */
};

static void paint(const struct table *table, const char *color, const char *text)
{
    if (table->color)
        fprintf(table->out, "%s%s" COLOR_OFF, color, text);
    else
        fputs(text, table->out);
}

/* Texts (guard, verdict) to the left, figures to the right. */
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
            fputs(column == 0 ? "  " : "   ", table->out);
            if (row == 0)
                paint(table, COLOR_DIM, cell);
            else if (column == 1)
                paint(table, table->colors[row], cell);
            else
                fputs(cell, table->out);
        }
        fputc('\n', table->out);
    }
}

static char *cell_of(struct table *table, int *column)
{
    return table->cells[table->n_rows][(*column)++];
}

/* -- one workload's table ---------------------------------------------------------------------- */

static const char *const sale_headings[] = {"guard",      "verdict",   "sold",
                                            "oversold",   "undersold", "lost updates",
                                            "requests/s", "p50",       "p99"};
static const char *const money_headings[] = {"guard",      "verdict", "textbook",
                                             "expected",   "actual",  "lost updates",
                                             "requests/s", "p50",     "p99"};

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
    add_judged(table, run, run->verdict.oversold, &column);
    add_judged(table, run, run->verdict.undersold, &column);
    add_judged(table, run, run->verdict.lost_updates, &column);
    add_speed(table, run, &column);
    table->n_rows++;
}

static void add_money(struct table *table, const struct run *run)
{
    int column = 0;
    char final[TEXT_MAX];
    add_guard(table, run, &column);
    char *textbook = cell_of(table, &column);
    if (run->textbook.pairs == 0)
        snprintf(textbook, CELL_MAX, "-");
    else if (run->textbook.lost > 0)
        snprintf(textbook, CELL_MAX, "%s, not %lld", text_count(final, run->textbook.final),
                 (long long)run->textbook.expected);
    else
        text_count(textbook, run->textbook.final);
    add_judged(table, run, run->expected, &column);
    add_judged(table, run, run->actual, &column);
    add_judged(table, run, run->verdict.lost_updates, &column);
    add_speed(table, run, &column);
    table->n_rows++;
}

/* What was done, in one line above the table. */
static void print_setting(const struct table *table, const struct run *run)
{
    const struct options *options = run->options;
    char a[TEXT_MAX], b[TEXT_MAX], line[400];
    if (run->workload == &workload_sale)
        snprintf(line, sizeof line, "sale: %s piece%s, %s %s", text_count(a, options->stock),
                 options->stock == 1 ? "" : "s", text_count(b, (int64_t)run->load.completed),
                 run->workload->unit);
    else
        snprintf(line, sizeof line, "%s: %s %s on %s accounts", run->workload->name,
                 text_count(a, (int64_t)run->load.completed), run->workload->unit,
                 text_count(b, options->accounts));
    paint(table, COLOR_STRONG, line);
    snprintf(line, sizeof line, ", %s over %d connections, %d instance%s, lanes %s, seed %llu\n",
             options_mode_text(run->mode), options->connections, run->instances,
             run->instances == 1 ? "" : "s", run->lanes ? "on" : "off",
             (unsigned long long)options->seed);
    fputs(line, table->out);
}

/* Of a figure over the runs like this one in which it was told. */
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
    return n > 0 ? spread_of(samples, n) : (struct spread){.median = LOAD_NOT_TOLD};
}

/* Below the single runs, where each guard was run several times. */
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
        fprintf(table->out, "  %s: median of %zu: %s requests/s (%s to %s), p50 %s, p99 %s\n",
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
    bool is_sale = workload == &workload_sale;
    const struct run *first = NULL;
    memset(table->cells, 0, sizeof table->cells);
    add_headings(table, is_sale ? sale_headings : money_headings, 9);
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
    fputc('\n', table->out);
    print_setting(table, first);
    print_table(table);
    print_medians(report, workload, table);
}

/* -- below the tables -------------------------------------------------------------------------- */

/* Only what happened: an undisturbed run needs no line. */
static void print_remarks(const struct table *table, const struct run *run)
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
            fprintf(table->out, "  %s under %s: %s %s\n", run->workload->name, run->guard,
                    text_count(count, (int64_t)remarks[i].count), remarks[i].text);
    const struct {
        const char *answer, *what;
    } firsts[] = {{run->tally.failure, "failure"}, {run->tally.put_off, "refusal for now"}};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        if (firsts[i].answer[0] != '\0')
            fprintf(table->out, "  %s under %s: first %s: %s\n", run->workload->name, run->guard,
                    firsts[i].what, firsts[i].answer);
}

/* Which witness says what. */
static void print_disagreements(const struct table *table, const struct run *run)
{
    char service[TEXT_MAX], own[TEXT_MAX];
    for (int i = 0; i < run->n_disagreements; i++) {
        const struct disagreement *each = &run->disagreements[i];
        fprintf(table->out,
                "  %s under %s: the witnesses disagree on %s: %s is %s by the service's audit and "
                "%s by its ledger rows\n",
                run->workload->name, run->guard, each->resource, each->figure,
                text_count(service, each->service), text_count(own, each->own));
    }
    int64_t all = run->verdict.disagreements + run->textbook.verdict.disagreements;
    if (all > run->n_disagreements)
        fprintf(table->out, "  %s under %s: and on %s figures more\n", run->workload->name,
                run->guard, text_count(own, all - run->n_disagreements));
}

static void print_thresholds(const struct table *table, const struct run *run)
{
    for (int i = 0; i < run->options->n_thresholds; i++) {
        const struct threshold *threshold = &run->options->thresholds[i];
        char value[TEXT_MAX], line[200];
        double figure;
        bool kept = run_keeps_threshold(run, i, &figure);
        snprintf(line, sizeof line, "  %s %s under %s: %s is %s%s", kept ? "kept  " : "BROKEN",
                 run->workload->name, run->guard, threshold->text,
                 threshold_value_text(threshold, figure, value, sizeof value),
                 run->aborted_by == threshold ? "; the load was ended early" : "");
        paint(table, kept ? COLOR_GREEN : COLOR_RED, line);
        fputc('\n', table->out);
    }
}

static void print_example(const struct table *table, const struct run *run)
{
    const struct ledger_row *rows = run->counterexample;
    char sentence[SENTENCE_MAX], before[TEXT_MAX], after[TEXT_MAX];
    fputc('\n', table->out);
    snprintf(sentence, sizeof sentence, "How %s lost an update under %s: two changes of %s",
             run->workload->name, run->guard, rows[0].resource);
    paint(table, COLOR_STRONG, sentence);
    fputc('\n', table->out);
    for (int i = 0; i < 2; i++)
        fprintf(table->out, "  %s  read %s (version %lld)  wrote %s  in %s\n", rows[i].instance,
                text_count(before, rows[i].before), (long long)rows[i].version_before,
                text_count(after, rows[i].after), rows[i].txn_id);
    report_counterexample(run, sentence, sizeof sentence);
    fprintf(table->out, "  %s\n", sentence);
}

/* Closed runs have no moment at which a request is due but that of its sending. */
static void print_legend(const struct report *report, const struct table *table)
{
    bool closed = false;
    bool all_told = true;
    for (int i = 0; i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        closed = closed || run->mode == LOAD_CLOSED;
        all_told = all_told && p50_of(run) >= 0 && p99_of(run) >= 0;
    }
    paint(table, COLOR_DIM,
          "\n  requests/s: sold-out and other refusals included; p50, p99: from the moment a "
          "request was due\n  to its answer, waiting for a free connection included\n");
    if (!all_told)
        paint(table, COLOR_DIM,
              "  -: too few answers" LOAD_FEW_NOTE ", or among the requests never sent\n");
    if (closed)
        paint(table, COLOR_DIM, "  " LOAD_CLOSED_NOTE "\n");
}

static bool wants_color(const struct report *report, FILE *out)
{
    return !report->options->no_color && getenv("NO_COLOR") == NULL && isatty(fileno(out));
}

void report_text(const struct report *report, FILE *out)
{
    static const struct workload *const order[] = {&workload_sale, &workload_accounts,
                                                   &workload_transfers};
    struct table *table = calloc(1, sizeof *table);
    char headline[SENTENCE_MAX];
    report_headline(report, headline, sizeof headline);
    if (table == NULL) {
        fprintf(out, "%s\n", headline);
        return;
    }
    table->out = out;
    table->color = wants_color(report, out);
    bool good = report_as_claimed(report) && report_keeps_thresholds(report);
    paint(table, good ? COLOR_GREEN : COLOR_RED, headline);
    fputc('\n', out);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        print_workload(report, order[i], table);
    print_legend(report, table);
    if (report->store[0] != '\0')
        fprintf(out, "  store: %s\n", report->store);
    for (int i = 0; i < report->n_runs; i++)
        print_remarks(table, &report->runs[i]);
    for (int i = 0; i < report->n_runs; i++)
        print_disagreements(table, &report->runs[i]);
    for (int i = 0; i < report->n_runs; i++)
        print_thresholds(table, &report->runs[i]);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (report_example(report, order[i]) != NULL)
            print_example(table, report_example(report, order[i]));
    free(table);
}
