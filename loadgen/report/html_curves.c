/*
 * Line charts as inline SVG: time or percentile to the right, a linear or logarithmic value
 * upwards. Curves differ by colour and dashes. A legend below names them.
 */
#include "html.h"

#include <math.h>
#include <string.h>

/* In units of the view box. */
enum {
    WIDTH = 900,
    HEIGHT = 300,
    LEFT = 84,
    RIGHT = 20,
    TOP = 14,
    BOTTOM = 40,
    LEGEND_ROW = 20,
    LEGEND_COLUMN = 220,
    TICKS_MAX = 6
};

struct frame {
    const struct html_curves *curves;
    double x_max, y_min, y_max; /* logarithms if the axis is logarithmic */
    FILE *out;
};

static double place_x(const struct frame *frame, double x)
{
    double share = frame->x_max > 0 ? x / frame->x_max : 0;
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double place_y(const struct frame *frame, double y)
{
    double value = frame->curves->log_y ? log10(y < 1 ? 1 : y) : y;
    double range = frame->y_max - frame->y_min;
    double share = range > 0 ? (value - frame->y_min) / range : 0;
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

static void find_range(struct frame *frame)
{
    const struct html_curves *curves = frame->curves;
    double highest = curves->mark, lowest = INFINITY;
    for (int i = 0; i < curves->n; i++)
        for (int j = 0; j < curves->curve[i].n; j++) {
            const struct html_point *point = &curves->curve[i].points[j];
            frame->x_max = fmax(frame->x_max, point->x);
            highest = fmax(highest, point->y);
            lowest = fmin(lowest, point->y);
        }
    if (curves->log_y) {
        frame->y_min = floor(log10(fmax(1, isfinite(lowest) ? lowest : 1)));
        frame->y_max = fmax(frame->y_min + 1, ceil(log10(fmax(1, highest))));
    } else {
        frame->y_max = highest > 0 ? highest * 1.05 : 1;
    }
}

/* 1, 2 or 5 times a power of ten, so that at most TICKS_MAX fit. */
static double step_of(double range)
{
    double step = pow(10, floor(log10(range / TICKS_MAX)));
    while (range / step > TICKS_MAX)
        step *= range / (step * 2) <= TICKS_MAX ? 2 : range / (step * 5) <= TICKS_MAX ? 5 : 10;
    return step;
}

static void grid_line(const struct frame *frame, double y, const char *text)
{
    double at = place_y(frame, y);
    fprintf(frame->out,
            "<line class='grid' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>"
            "<text class='small end' x='%d' y='%.1f'>",
            LEFT, at, WIDTH - RIGHT, at, LEFT - 8, at + 4);
    html_text(frame->out, text);
    fprintf(frame->out, "</text>\n");
}

static void draw_y_axis(const struct frame *frame)
{
    char text[TEXT_MAX];
    if (frame->curves->log_y) {
        for (double decade = frame->y_min; decade <= frame->y_max; decade++)
            grid_line(frame, pow(10, decade), frame->curves->y_text(text, pow(10, decade)));
        return;
    }
    double step = step_of(frame->y_max);
    for (int i = 0; i * step <= frame->y_max; i++)
        grid_line(frame, i * step, frame->curves->y_text(text, i * step));
}

static void x_tick(const struct frame *frame, double x, const char *text)
{
    fprintf(frame->out, "<text class='small middle' x='%.1f' y='%d'>", place_x(frame, x),
            HEIGHT - BOTTOM + 18);
    html_text(frame->out, text);
    fprintf(frame->out, "</text>\n");
}

static void draw_x_axis(const struct frame *frame)
{
    const struct html_curves *curves = frame->curves;
    for (int i = 0; i < curves->n_x_ticks; i++)
        x_tick(frame, curves->x_ticks[i].x, curves->x_ticks[i].text);
    if (curves->n_x_ticks == 0 && frame->x_max > 0) {
        double step = step_of(frame->x_max);
        for (int i = 0; i * step <= frame->x_max; i++) {
            char text[TEXT_MAX];
            snprintf(text, sizeof text, "%g s", i * step);
            x_tick(frame, i * step, text);
        }
    }
    fprintf(frame->out, "<text class='small end' x='%d' y='%d'>", WIDTH - RIGHT, HEIGHT - 4);
    html_text(frame->out, curves->x_label);
    fprintf(frame->out, "</text>\n");
}

static void draw_curve(const struct frame *frame, int number)
{
    const struct html_curve *curve = &frame->curves->curve[number];
    fprintf(frame->out, "<polyline class='curve c%d' points='", number % HTML_COLORS);
    for (int i = 0; i < curve->n; i++)
        fprintf(frame->out, "%.1f,%.1f ", place_x(frame, curve->points[i].x),
                place_y(frame, curve->points[i].y));
    fprintf(frame->out, "'/>\n");
}

static void draw_legend(const struct frame *frame)
{
    int columns = (WIDTH - LEFT) / LEGEND_COLUMN;
    for (int i = 0; i < frame->curves->n; i++) {
        int x = LEFT + i % columns * LEGEND_COLUMN, y = HEIGHT + 14 + i / columns * LEGEND_ROW;
        fprintf(frame->out,
                "<polyline class='curve c%d' points='%d,%d %d,%d'/><text x='%d' y='%d'>",
                i % HTML_COLORS, x, y - 4, x + 34, y - 4, x + 42, y);
        html_text(frame->out, frame->curves->curve[i].label);
        fprintf(frame->out, "</text>\n");
    }
}

static void draw_mark(const struct frame *frame)
{
    const struct html_curves *curves = frame->curves;
    if (curves->mark <= 0)
        return;
    double y = place_y(frame, curves->mark);
    fprintf(frame->out,
            "<line class='mark' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>"
            "<text class='small end' x='%d' y='%.1f'>",
            LEFT, y, WIDTH - RIGHT, y, WIDTH - RIGHT, y - 5);
    html_text(frame->out, curves->mark_text);
    fprintf(frame->out, "</text>\n");
}

void html_curves(const struct html_curves *curves, FILE *out)
{
    struct frame frame = {.curves = curves, .out = out};
    int columns = (WIDTH - LEFT) / LEGEND_COLUMN;
    find_range(&frame);
    fprintf(out, "<div class='card'><p class='note'>");
    html_text(out, curves->title);
    fprintf(out, "</p>\n<svg viewBox='0 0 %d %d' role='img' aria-label='", WIDTH,
            HEIGHT + 8 + (curves->n + columns - 1) / columns * LEGEND_ROW);
    html_text(out, curves->title);
    fprintf(out, "'>\n");
    draw_y_axis(&frame);
    draw_x_axis(&frame);
    for (int i = 0; i < curves->n; i++)
        draw_curve(&frame, i);
    draw_mark(&frame);
    draw_legend(&frame);
    fprintf(out, "</svg></div>\n");
}
