#include "html.h"

#include <string.h>

/* In units of the view box. The browser scales it to the page's width. */
enum { WIDTH = 900, LABEL_WIDTH = 190, BARS_WIDTH = 520, ROW = 30, BAR = 18, TOP = 26 };
enum { TEXT_GAP = 8, BAD_WIDTH_MIN = 5, BYTE_WIDTH = 8 /* of bold digits, the widest */ };

/* View box units per unit of the chart. Each bar leaves room for the text after it. */
static double scale_of(const struct html_chart *chart)
{
    double scale = chart->mark > 0 ? BARS_WIDTH / chart->mark : BARS_WIDTH;
    for (int i = 0; i < chart->n_bars; i++) {
        const struct html_bar *bar = &chart->bars[i];
        double sum = bar->good + bar->bad;
        double text = TEXT_GAP + BAD_WIDTH_MIN + BYTE_WIDTH * (double)strlen(bar->text);
        double room = WIDTH - LABEL_WIDTH - text;
        room = room < BARS_WIDTH ? room : BARS_WIDTH;
        if (sum * scale > room)
            scale = room / sum;
    }
    return scale;
}

static void draw_bar(const struct html_bar *bar, int y, double scale, FILE *out)
{
    double good = bar->good * scale, bad = bar->bad * scale;
    fprintf(out, "<text class='end%s' x='%d' y='%d'>", bar->is_bad ? " badtext" : "",
            LABEL_WIDTH - 10, y + 14);
    html_text(out, bar->label);
    fprintf(out, "</text>");
    if (good > 0)
        fprintf(out, "<rect class='good' x='%d' y='%d' width='%.1f' height='%d' rx='2'/>",
                LABEL_WIDTH, y, good, BAR);
    /* The bad part is marked by a gap as well as by its colour. */
    double gap = good > 0 ? 2 : 0;
    if (bad > 0)
        fprintf(out, "<rect class='bad' x='%.1f' y='%d' width='%.1f' height='%d' rx='2'/>",
                LABEL_WIDTH + good + gap, y, bad > 3 ? bad - gap : 3, BAR);
    fprintf(out, "<text%s x='%.1f' y='%d'>", bar->is_bad ? " class='badtext'" : "",
            LABEL_WIDTH + good + (bad > 3 || bad <= 0 ? bad : 3 + gap) + TEXT_GAP, y + 14);
    html_text(out, bar->text);
    fprintf(out, "</text>\n");
}

void html_chart(const struct html_chart *chart, FILE *out)
{
    double scale = scale_of(chart);
    int top = chart->mark > 0 ? TOP : 4;
    int height = top + chart->n_bars * ROW;
    fprintf(out, "<svg viewBox='0 0 %d %d' role='img' aria-label='", WIDTH, height);
    html_text(out, chart->description);
    fprintf(out, "'>\n");
    for (int i = 0; i < chart->n_bars; i++)
        draw_bar(&chart->bars[i], top + i * ROW + 4, scale, out);
    if (chart->mark > 0) {
        double x = LABEL_WIDTH + chart->mark * scale;
        fprintf(out,
                "<line class='mark' x1='%.1f' y1='%d' x2='%.1f' y2='%d'/>"
                "<text class='small middle' x='%.1f' y='14'>",
                x, TOP - 6, x, height, x);
        html_text(out, chart->mark_text);
        fprintf(out, "</text>\n");
    }
    fprintf(out, "</svg>\n");
}
