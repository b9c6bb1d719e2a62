/* The charts over time and over percentiles of one workload. */
#include "html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Collects the runs to draw: the first of each guard, so that the chart stays readable. Calls add
 * for each. Returns the chart without its texts, or NULL without memory. */
static struct html_curves *collect(const struct report *report, const struct workload *workload,
                                   void (*add)(const struct run *run, struct html_curve *curve))
{
    struct html_curves *curves = calloc(1, sizeof *curves);
    for (int i = 0; curves != NULL && i < report->n_runs; i++) {
        const struct run *run = &report->runs[i];
        char label[HTML_LABEL_MAX];
        bool drawn = curves->n == HTML_CURVES_MAX;
        if (run->workload != workload || !run->has_load)
            continue;
        run_label(run, label, sizeof label);
        for (int j = 0; j < curves->n && !drawn; j++)
            drawn = strcmp(curves->curve[j].label, label) == 0;
        if (drawn)
            continue;
        struct html_curve *curve = &curves->curve[curves->n++];
        memcpy(curve->label, label, sizeof label);
        add(run, curve);
    }
    return curves;
}

static void draw(struct html_curves *curves, FILE *out)
{
    if (curves != NULL && curves->n > 0)
        html_curves(curves, out);
    free(curves);
}

static void add_point(struct html_curve *curve, double x, double y)
{
    if (curve->n < HTML_POINTS_MAX)
        curve->points[curve->n++] = (struct html_point){x, y};
}

static char *count_text(char out[TEXT_MAX], double value)
{
    return text_count(out, (int64_t)(value + 0.5));
}

static char *time_text(char out[TEXT_MAX], double us)
{
    return text_time_us(out, (int64_t)us);
}

/* -- over time --------------------------------------------------------------------------------- */

static double end_of(const struct series *series, size_t i)
{
    return (double)(i + 1) * (double)series->interval_us / 1e6;
}

static void add_accepted(const struct run *run, struct html_curve *curve)
{
    const struct series *series = &run->load.series;
    uint64_t sum = 0;
    add_point(curve, 0, 0);
    for (size_t i = 0; i < series->n; i++) {
        sum += series->points[i].accepted;
        add_point(curve, end_of(series, i), (double)sum);
    }
}

static void add_throughput(const struct run *run, struct html_curve *curve)
{
    const struct series *series = &run->load.series;
    for (size_t i = 0; i < series->n; i++)
        add_point(curve, end_of(series, i),
                  (double)series->points[i].answered * 1e6 / (double)series->interval_us);
}

static void add_p99(const struct run *run, struct html_curve *curve)
{
    const struct series *series = &run->load.series;
    for (size_t i = 0; i < series->n; i++)
        if (series->points[i].max_us > 0)
            add_point(curve, end_of(series, i), (double)series_percentile(&series->points[i], 99));
}

/* -- over percentiles -------------------------------------------------------------------------- */

/* 90 is at 1, 99 at 2, 99.9 at 3: each nine has the same width. */
static double nines(double percentile)
{
    return -log10(1 - percentile / 100);
}

static void add_percentiles(const struct run *run, struct html_curve *curve)
{
    enum { STEPS = 120 };
    const double last = nines(99.99);
    for (int i = 0; i <= STEPS; i++) {
        double x = last * i / STEPS, percentile = 100 * (1 - pow(10, -x));
        int64_t us = load_percentile(&run->load, percentile);
        if (us == LOAD_NO_FIGURE)
            break;
        add_point(curve, x, (double)us);
    }
}

static void draw_percentiles(const struct report *report, const struct workload *workload,
                             FILE *out)
{
    static const struct {
        double percentile;
        const char *text;
    } ticks[] = {{0, "all"},   {50, "50 %"},     {90, "90 %"},
                 {99, "99 %"}, {99.9, "99.9 %"}, {99.99, "99.99 %"}};
    struct html_curves *curves = collect(report, workload, add_percentiles);
    if (curves == NULL)
        return;
    curves->title = "Latency from the intended start: this share of the requests was answered "
                    "within this time";
    curves->x_label = "share of the requests";
    curves->log_y = true;
    curves->y_text = time_text;
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        curves->x_ticks[curves->n_x_ticks++] =
            (struct html_tick){nines(ticks[i].percentile), ticks[i].text};
    draw(curves, out);
}

static void draw_over_time(const struct report *report, const struct workload *workload,
                           const char *title, bool log_y,
                           void (*add)(const struct run *run, struct html_curve *curve),
                           int64_t mark, FILE *out)
{
    struct html_curves *curves = collect(report, workload, add);
    char number[TEXT_MAX];
    if (curves == NULL)
        return;
    curves->title = title;
    curves->x_label = "since the start";
    curves->log_y = log_y;
    curves->y_text = log_y ? time_text : count_text;
    curves->mark = (double)mark;
    snprintf(curves->mark_text, sizeof curves->mark_text, "in stock: %s", text_count(number, mark));
    draw(curves, out);
}

void html_time(const struct report *report, const struct run *first, FILE *out)
{
    const struct workload *workload = first->workload;
    if (workload->sells)
        draw_over_time(report, workload,
                       "Orders accepted since the start; above the line, pieces that do not exist",
                       false, add_accepted, first->initial, out);
    draw_over_time(report, workload, "Answers per second, refusals included", false, add_throughput,
                   0, out);
    /* In a burst all is due at the start: this curve would be a straight line. */
    if (first->mode != LOAD_BURST)
        draw_over_time(
            report, workload,
            "99 % of the requests answered in this interval took at most this long (upper "
            "bound, within a quarter)",
            true, add_p99, 0, out);
    draw_percentiles(report, workload, out);
}
