/* A run as a swim-lane picture: time goes down, each actor has a lane, and a bar on it while it
 * holds the lock. Two bars side by side under a lock that lets in one at a time: there it broke. */
#include "hazard_facts.h"
#include "hazard_html.h"
#include "html.h"
#include "text.h"

#include <string.h>

enum {
    WIDTH = 900,
    LEFT = 90, /* of the lanes; before it stands the time */
    TOP = 34,
    ROW = 20,
    ROWS_MAX = 70,
    LANES_MAX = 10,
    BAR = 10
};

struct lane {
    const char *actor;
    int x, held_from; /* y of the bar's beginning; -1: holds nothing */
};

struct picture {
    const struct lab_result *result;
    struct lane lanes[LANES_MAX];
    int n_lanes;
};

/* False for points that add nothing to the points beside them. */
static bool is_shown(const char *point)
{
    static const char *const quiet[] = {"submitted",    "waiting",       "acquired",
                                        "lock.release", "lock.released", "lock.subscribe"};
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
        if (strcmp(point, quiet[i]) == 0)
            return false;
    return true;
}

static int n_shown(const struct lab_result *result)
{
    int n = 0;
    for (int i = 0; i < result->n_events; i++)
        n += is_shown(result->events[i].point);
    return n < ROWS_MAX ? n : ROWS_MAX;
}

static struct lane *lane_of(struct picture *picture, const char *actor)
{
    for (int i = 0; i < picture->n_lanes; i++)
        if (strcmp(picture->lanes[i].actor, actor) == 0)
            return &picture->lanes[i];
    return NULL;
}

static void find_lanes(struct picture *picture)
{
    static const char *const order[LANES_MAX] = {"A",     "B",       "C",     "crowd", "queue",
                                                 "tasks", "readers", "locks", "store", "watchdog"};
    const struct lab_result *result = picture->result;
    for (int i = 0; i < LANES_MAX; i++) {
        bool acts = false;
        for (int j = 0; j < result->n_events && !acts; j++)
            acts = strcmp(result->events[j].actor, order[i]) == 0;
        if (acts)
            picture->lanes[picture->n_lanes++] = (struct lane){.actor = order[i], .held_from = -1};
    }
    int step = picture->n_lanes > 0 ? (WIDTH - LEFT) / picture->n_lanes : WIDTH;
    for (int i = 0; i < picture->n_lanes; i++)
        picture->lanes[i].x = LEFT + 14 + i * step;
}

static bool is_change_of(const struct run_event *event)
{
    return strcmp(event->point, "committed") == 0;
}

/* What stands behind the name of the point. */
static void remark(const struct lab_result *result, const struct run_event *event, char *out,
                   size_t size)
{
    char number[TEXT_MAX], newer[TEXT_MAX];
    int64_t fence = strcmp(event->point, "rejected") == 0 ? lab_refusing_fence(result, event) : 0;
    out[0] = '\0';
    if (fence != 0)
        snprintf(out, size, ": fence %s < %s", text_count(number, event->fence),
                 text_count(newer, fence));
    else if (event->has_value)
        snprintf(out, size, " %s", text_count(number, event->value));
    else if (strcmp(event->point, "killed") == 0)
        snprintf(out, size, " (kill -9)");
}

static void draw_event(const struct lab_result *result, const struct run_event *event,
                       const struct lane *lane, int y, FILE *out)
{
    char time[TEXT_MAX], more[96], text[256];
    remark(result, event, more, sizeof more);
    snprintf(text, sizeof text, "%s%s", event->point, more);
    fprintf(out, "<text class='small end' x='%d' y='%d'>%s</text>", LEFT - 14, y + 4,
            text_time_us(time, event->t_us));
    fprintf(out, "<circle class='dot' cx='%d' cy='%d' r='4'/><text%s x='%d' y='%d'>", lane->x, y,
            is_change_of(event) || strstr(more, "fence") ? " class='strong'" : "", lane->x + 14,
            y + 4);
    html_text(out, text);
    fputs("</text>\n", out);
}

static void draw_bar(const struct lane *lane, int until, FILE *out)
{
    fprintf(out, "<rect class='held' x='%d' y='%d' width='%d' height='%d' rx='3'/>\n",
            lane->x - BAR / 2, lane->held_from, BAR, until - lane->held_from);
}

/* Does the holding begin (1) or end (-1) with this event? */
static int turns(const char *point)
{
    if (strcmp(point, "acquired") == 0)
        return 1;
    return strcmp(point, "released") == 0 || strcmp(point, "killed") == 0 ? -1 : 0;
}

static void draw_lanes(struct picture *picture, int height, FILE *out)
{
    for (int i = 0; i < picture->n_lanes; i++) {
        const struct lane *lane = &picture->lanes[i];
        fprintf(out,
                "<line class='lane' x1='%d' y1='%d' x2='%d' y2='%d'/>"
                "<text class='strong' x='%d' y='16'>%s</text>\n",
                lane->x, TOP - 8, lane->x, height - 8, lane->x - 4, lane->actor);
    }
    int y = TOP; /* bars first, so that the words lie over them */
    for (int i = 0, n = 0; i < picture->result->n_events && n < ROWS_MAX; i++) {
        const struct run_event *event = &picture->result->events[i];
        struct lane *lane = lane_of(picture, event->actor);
        int turn = lane == NULL ? 0 : turns(event->point);
        if (turn > 0)
            lane->held_from = y;
        if (turn < 0 && lane->held_from >= 0) {
            draw_bar(lane, y + ROW / 2, out);
            lane->held_from = -1;
        }
        if (lane != NULL && is_shown(event->point)) {
            y += ROW;
            n++;
        }
    }
    for (int i = 0; i < picture->n_lanes; i++)
        if (picture->lanes[i].held_from >= 0)
            draw_bar(&picture->lanes[i], height - 8, out);
}

void hazard_html_lanes(const struct lab_result *result, FILE *out)
{
    struct picture picture = {.result = result};
    int height = TOP + n_shown(result) * ROW + 12, y = TOP;
    find_lanes(&picture);
    fprintf(out, "<svg viewBox='0 0 %d %d' role='img' aria-label='", WIDTH, height);
    html_text(out, "What happened, step by step. Time runs down. A bar marks an actor that "
                   "believes it holds the lock.");
    fputs("'>\n", out);
    draw_lanes(&picture, height, out);
    for (int i = 0, n = 0; i < result->n_events && n < ROWS_MAX; i++) {
        const struct run_event *event = &result->events[i];
        const struct lane *lane = lane_of(&picture, event->actor);
        if (lane == NULL || !is_shown(event->point))
            continue;
        draw_event(result, event, lane, y, out);
        y += ROW;
        n++;
    }
    fputs("</svg>\n", out);
}
