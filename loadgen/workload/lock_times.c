#include "lock_times.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };
static const double VALUE_END = 0x1p53; /* from here on a double is not an exact count */

/* The index of a bound, added if it is new; -1: no room. */
static int bound_index(struct lock_times *times, double us)
{
    for (int i = 0; i < times->n_bounds; i++)
        if (times->bounds_us[i] == us)
            return i;
    if (times->n_bounds == LOCK_TIMES_BOUNDS_MAX)
        return -1;
    times->bounds_us[times->n_bounds] = us;
    return times->n_bounds++;
}

/* One line: name{guard="redis-token",le="0.001"} 12 */
static void take_line(struct lock_times *times, const char *line, const char *guard)
{
    static const char prefix[] = "seckill_lock_";
    char what[8], kind[8], name[NAME_MAX_BYTES], le[32];
    double value;
    if (strncmp(line, prefix, sizeof prefix - 1) != 0)
        return;
    line += sizeof prefix - 1;
    int bucket = sscanf(line, "%7[a-z]_seconds_%7[a-z]{guard=\"%63[^\"]\",le=\"%31[^\"]\"} %lf",
                        what, kind, name, le, &value);
    if (bucket != 5 && sscanf(line, "%7[a-z]_seconds_%7[a-z]{guard=\"%63[^\"]\"} %lf", what, kind,
                              name, &value) != 4)
        return;
    if (strcmp(name, guard) != 0 || !(value >= 0 && value < VALUE_END))
        return;
    struct lock_times_histogram *into = strcmp(what, "wait") == 0 ? &times->wait : &times->hold;
    if (bucket != 5) {
        if (strcmp(kind, "sum") == 0)
            into->sum_us += value * 1e6;
        else if (strcmp(kind, "count") == 0)
            into->count += (uint64_t)value;
        return;
    }
    double bound = strtod(le, NULL); /* +Inf is the count */
    int i = isfinite(bound) ? bound_index(times, round(bound * 1e6)) : -1;
    if (i >= 0)
        into->below[i] += (uint64_t)value;
}

void lock_times_add(struct lock_times *times, const char *metrics, const char *guard)
{
    for (const char *line = metrics; line != NULL && *line != '\0';) {
        take_line(times, line, guard);
        line = strchr(line, '\n');
        line += line != NULL;
    }
}

int lock_times_read(const struct options *options, const char *guard, struct lock_times *ret)
{
    *ret = (struct lock_times){0};
    for (int i = 0; i < options->n_targets; i++) {
        char *body;
        int status = load_fetch_until(options->stop, &options->targets[i], "GET", "/metrics", "",
                                      NULL, options->timeout_ms, &body);
        if (status == 200)
            lock_times_add(ret, body, guard);
        free(body);
        if (status != 200)
            return -1;
    }
    return 0;
}

/* Does nothing if an instance has started again and counts from 0. */
static void subtract(struct lock_times_histogram *now, const struct lock_times_histogram *before)
{
    bool anew = now->count < before->count || now->sum_us < before->sum_us;
    for (int i = 0; i < LOCK_TIMES_BOUNDS_MAX; i++)
        anew = anew || now->below[i] < before->below[i];
    if (anew)
        return;
    for (int i = 0; i < LOCK_TIMES_BOUNDS_MAX; i++)
        now->below[i] -= before->below[i];
    now->count -= before->count;
    now->sum_us -= before->sum_us;
}

void lock_times_since(struct lock_times *now, const struct lock_times *before)
{
    subtract(&now->wait, &before->wait);
    subtract(&now->hold, &before->hold);
}

double lock_times_mean_us(const struct lock_times_histogram *histogram)
{
    return histogram->count == 0 ? 0 : histogram->sum_us / (double)histogram->count;
}

double lock_times_percentile_us(const struct lock_times *times,
                                const struct lock_times_histogram *histogram, double percentile)
{
    double wanted = percentile / 100 * (double)histogram->count;
    if (histogram->count == 0)
        return 0;
    for (int i = 0; i < times->n_bounds; i++)
        if ((double)histogram->below[i] >= wanted)
            return times->bounds_us[i];
    return HUGE_VAL;
}
