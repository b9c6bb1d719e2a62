/* A run as a list: what happened, in order. */
#include "hazard_facts.h"
#include "hazard_html.h"
#include "html.h"
#include "text.h"

#include <string.h>

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

static void write_event(const struct lab_result *result, const struct run_event *event, FILE *out)
{
    char time[TEXT_MAX], more[96];
    remark(result, event, more, sizeof more);
    const bool stressed = strcmp(event->point, "committed") == 0 || strstr(more, "fence");
    fprintf(out, "<li><time>%s</time><b>%s</b><%s>", text_time_us(time, event->t_us), event->actor,
            stressed ? "strong" : "span");
    html_text(out, event->point);
    html_text(out, more);
    fprintf(out, "</%s></li>\n", stressed ? "strong" : "span");
}

void hazard_html_trace(const struct lab_result *result, FILE *out)
{
    fputs("<ol class='trace' aria-label='What happened, in order'>\n", out);
    for (int i = 0; i < result->n_events; i++)
        if (is_shown(result->events[i].point))
            write_event(result, &result->events[i], out);
    fputs("</ol>\n", out);
}
