/* The pieces of the page that report_html.c puts together. */
#ifndef HTML_H
#define HTML_H

#include "report.h"
#include "text.h"

extern const char html_style[]; /* CSS; light and dark, colours for the colour-blind */

/* html_chart.c: horizontal bars as inline SVG. */
enum { HTML_BARS_MAX = REPORT_RUNS_MAX };
struct html_bar {
    char label[48], text[80]; /* left and right of the bar */
    double good, bad;         /* the bar's two parts, in the chart's unit */
    bool is_bad;              /* its label is marked */
};
struct html_chart {
    const char *title, *description; /* description: for screen readers */
    struct html_bar bars[HTML_BARS_MAX];
    int n_bars;
    double mark; /* a line across all bars; 0: none */
    char mark_text[48];
};
void html_chart(const struct html_chart *chart, FILE *out);

/* html_curves.c: lines over time or percentiles as inline SVG, in a card with its title. */
enum { HTML_CURVES_MAX = 10, HTML_COLORS = 10, HTML_POINTS_MAX = 260, HTML_LABEL_MAX = 48 };
struct html_point {
    double x, y;
};
struct html_curve {
    char label[HTML_LABEL_MAX];
    int n;
    struct html_point points[HTML_POINTS_MAX];
};
struct html_tick {
    double x;
    const char *text;
};
struct html_curves {
    const char *title, *x_label;
    bool log_y;                                  /* values below 1 are drawn as 1 */
    char *(*y_text)(char out[TEXT_MAX], double); /* of a value on the axis */
    struct html_tick x_ticks[8];
    int n_x_ticks; /* 0: seconds */
    double mark;   /* a level across; 0: none */
    char mark_text[48];
    int n;
    struct html_curve curve[HTML_CURVES_MAX];
};
void html_curves(const struct html_curves *curves, FILE *out);

/* html_time.c: the runs of a workload over time, and their latencies by percentile; first is the
 * first of them. */
void html_time(const struct report *report, const struct run *first, FILE *out);

/* html_fork.c: two rows of the ledger that start from one version. */
void html_fork(const struct ledger_row fork[2], FILE *out);

/* Writes text escaped. */
void html_text(FILE *out, const char *text);

#endif
