/* The pieces of the page that report_html.c puts together. */
#ifndef HTML_H
#define HTML_H

#include "report.h"

extern const char html_style[]; /* CSS; light and dark, colours that the colour-blind can tell */

/* html_chart.c: horizontal bars as inline SVG. */
enum { HTML_BARS_MAX = REPORT_RUNS_MAX };
struct html_bar {
    char label[48], text[80]; /* left and right of the bar */
    double good, bad;         /* the bar's two parts, in the chart's unit */
    bool is_bad;              /* its label is marked */
};
struct html_chart {
    const char *title, *description; /* description: for those who cannot see it */
    struct html_bar bars[HTML_BARS_MAX];
    int n_bars;
    double mark; /* a line across all bars; 0: none */
    char mark_text[48];
};
void html_chart(const struct html_chart *chart, FILE *out);

/* html_lanes.c: the two contradicting writes as a swim-lane picture. */
void html_lanes(const struct run *run, FILE *out);

/* Writes text escaped. */
void html_text(FILE *out, const char *text);

#endif
