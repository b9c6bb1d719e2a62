/*
 * The two contradicting writes. The ledger records that both came from the same version, and when
 * each was committed. It does not record when each was read, only that both reads came before the
 * first write. The picture shows that order.
 */
#include "html.h"
#include "text.h"

#include <string.h>

enum {
    WIDTH = 900,
    LANE_A = 60,
    LANE_STORE = 150,
    LANE_B = 240,
    HEIGHT = 290,
    BOX_WIDTH = 104,
    BOX_HEIGHT = 34,
    X_LANES = 160,
    X_READ_A = 235,
    X_READ_B = 355,
    X_WRITE_A = 510,
    X_WRITE_B = 690,
    X_END = 870
};

static void draw_text(FILE *out, const char *classes, int x, int y, const char *text)
{
    fprintf(out, "<text class='%s' x='%d' y='%d'>", classes, x, y);
    html_text(out, text);
    fprintf(out, "</text>\n");
}

static void draw_lane(FILE *out, int y, const char *name, const char *below)
{
    char shown[24];
    snprintf(shown, sizeof shown, "%s", name);
    fprintf(out, "<line class='lane' x1='%d' y1='%d' x2='%d' y2='%d'/>\n", X_LANES, y, X_END, y);
    draw_text(out, "strong", 0, y - 2, shown);
    draw_text(out, "small", 0, y + 15, below);
}

static void draw_wide_box(FILE *out, const char *class, int from, int to, int y, const char *text)
{
    fprintf(out, "<rect class='%s' x='%d' y='%d' width='%d' height='%d' rx='5'/>\n", class, from,
            y - BOX_HEIGHT / 2, to - from, BOX_HEIGHT);
    draw_text(out, "middle", (from + to) / 2, y + 5, text);
}

static void draw_box(FILE *out, const char *class, int x, int y, const char *text)
{
    draw_wide_box(out, class, x - BOX_WIDTH / 2, x + BOX_WIDTH / 2, y, text);
}

static void draw_arrow(FILE *out, int x, int from, int to)
{
    int step = to > from ? 1 : -1;
    int y1 = from + step * (BOX_HEIGHT / 2 + 1), y2 = to - step * (BOX_HEIGHT / 2 + 7);
    fprintf(out, "<path class='arrow' d='M%d %dV%d'/><path class='head' d='M%d %dl-5 %dh10z'/>\n",
            x, y1, y2, x, y2 + step * 7, -step * 8);
}

/* Keeps the end of a long key: the end distinguishes keys. */
static char *shorten(const char *txn_id, char ret[40])
{
    enum { SHOWN_MAX = 24 };
    size_t length = strlen(txn_id);
    snprintf(ret, 40, "%s%.24s", length > SHOWN_MAX ? "…" : "",
             length > SHOWN_MAX ? txn_id + length - SHOWN_MAX + 1 : txn_id);
    return ret;
}

static void draw_client(FILE *out, const struct ledger_row *row, int lane, int x_read, int x_write,
                        const char *write_class)
{
    char text[64], number[TEXT_MAX], key[40];
    draw_lane(out, lane, row->instance, shorten(row->txn_id, key));
    snprintf(text, sizeof text, "read %s", text_count(number, row->before));
    draw_box(out, "box", x_read, lane, text);
    snprintf(text, sizeof text, "wrote %s", text_count(number, row->after));
    draw_box(out, write_class, x_write, lane, text);
    draw_arrow(out, x_read, LANE_STORE, lane);
    draw_arrow(out, x_write, lane, LANE_STORE);
}

void html_lanes(const struct run *run, FILE *out)
{
    const struct ledger_row *a = &run->counterexample[0], *b = &run->counterexample[1];
    char text[128], number[TEXT_MAX], version[40];
    fprintf(out, "<svg viewBox='0 0 %d %d' role='img' aria-label='", WIDTH, HEIGHT);
    html_text(out, "Two requests read the same value; the second write overwrites the first.");
    fprintf(out, "'>\n");
    snprintf(version, sizeof version, "version %lld", (long long)a->version_before);
    draw_lane(out, LANE_STORE, "stored value", version);
    draw_client(out, a, LANE_A, X_READ_A, X_WRITE_A, "box");
    draw_client(out, b, LANE_B, X_READ_B, X_WRITE_B, "boxbad");
    /* The store has this value until the first write. */
    snprintf(text, sizeof text, "%s", text_count(number, a->before));
    draw_wide_box(out, "box", X_READ_A - BOX_WIDTH / 2, X_READ_B + BOX_WIDTH / 2, LANE_STORE, text);
    snprintf(text, sizeof text, "%s", text_count(number, a->after));
    draw_box(out, "box", X_WRITE_A, LANE_STORE, text);
    snprintf(text, sizeof text, "%s", text_count(number, b->after));
    draw_box(out, "boxbad", X_WRITE_B, LANE_STORE, text);
    snprintf(text, sizeof text, "should be %s",
             text_count(number, a->before + a->delta + b->delta));
    draw_text(out, "badtext", X_WRITE_B + BOX_WIDTH / 2 + 12, LANE_STORE - 8, text);
    char later[TEXT_MAX];
    snprintf(text, sizeof text, "%s after the first",
             text_time_us(later, b->at_us > a->at_us ? b->at_us - a->at_us : 0));
    draw_text(out, "small", X_WRITE_B + BOX_WIDTH / 2 + 12, LANE_B - 8, text);
    draw_text(out, "small", X_READ_A - BOX_WIDTH / 2, HEIGHT - 6,
              "time, not to scale: both readings came before the first write");
    fprintf(out, "</svg>\n");
}
