/* The timeline of a run: what the instances traced, and what the lab itself did. */
#include "hazard_run.h"
#include "steady.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_MAX = 256 };

static struct run_event *add(struct hazard_run *run)
{
    return run->n_events < RUN_EVENTS_MAX ? &run->events[run->n_events++] : NULL;
}

void run_node_list(const char *nodes, char out[RUN_NODES_MAX])
{
    size_t n = 0;
    for (; *nodes != '\0' && n + 4 < RUN_NODES_MAX; nodes++)
        n += (size_t)snprintf(out + n, RUN_NODES_MAX - n, "%s%c", n > 0 ? ", " : "", *nodes);
    out[n] = '\0';
}

void run_note(struct hazard_run *run, const char *actor, const char *format, ...)
{
    struct run_event *event = add(run);
    va_list args;
    if (event == NULL)
        return;
    *event = (struct run_event){.t_us = steady_us()};
    snprintf(event->actor, sizeof event->actor, "%s", actor);
    va_start(args, format);
    vsnprintf(event->point, sizeof event->point, format, args);
    va_end(args);
}

/* The scheduled task's operation on A's order. */
static bool is_tasks(const struct hazard_run *run, const struct lab_event *event)
{
    const char *order = run->actors[A].order;
    return order[0] != '\0' && strncmp(event->key, "close:", 6) == 0 &&
           strcmp(event->key + 6, order) == 0;
}

/* "h12-A1" is A's. The thread without a request keeps the leases: it renews them as a watchdog, or
 * sees them end. */
static bool name_actor(const struct hazard_run *run, const struct lab_event *event, char *out,
                       size_t size)
{
    size_t length = strlen(run->id);
    if (is_tasks(run, event)) {
        snprintf(out, size, "tasks");
        return true;
    }
    if (strncmp(event->key, run->id, length) == 0 && event->key[length] == '-') {
        const char *who = event->key + length + 1; /* "A1"; "u17" is one of the crowd */
        if (*who == 'u')
            snprintf(out, size, "crowd");
        else
            snprintf(out, size, "%c", *who);
        return true;
    }
    snprintf(out, size, run->with.watchdog == ON ? "watchdog" : "lease timer");
    return event->key[0] == '\0' && strcmp(event->lock, run->lock) == 0;
}

/* The waits of a crowd are counted, not listed: they would hide the rest. */
static bool is_one_of_many(const char *actor, const struct lab_event *event)
{
    static const char *const points[] = {"submitted", "waiting", "lock.wait", "lock.woken"};
    bool many = false;
    for (size_t i = 0; i < sizeof points / sizeof points[0] && strcmp(actor, "crowd") == 0; i++)
        many |= strcmp(event->point, points[i]) == 0;
    return many;
}

void run_take_trace(struct hazard_run *run, const struct world_instance *instance)
{
    struct lab_event *events = calloc(TRACE_MAX, sizeof *events);
    char message[LAB_MESSAGE_MAX], instance_name[24];
    int n = 0;
    snprintf(instance_name, sizeof instance_name, "shop-%d",
             (int)(instance - run->world->instances) + 1);
    if (events != NULL && lab_trace(&instance->target, events, TRACE_MAX, &n, message) != 0)
        n = 0; /* an instance that is dead or stands still: what it saw is lost with it */
    for (int i = 0; i < n; i++) {
        char actor[sizeof run->events[0].actor];
        if (!name_actor(run, &events[i], actor, sizeof actor) || is_one_of_many(actor, &events[i]))
            continue;
        struct run_event *event = add(run);
        if (event == NULL)
            break;
        *event = (struct run_event){.t_us = events[i].t_us,
                                    .has_value = events[i].has_value,
                                    .value = events[i].value,
                                    .fence = events[i].fence};
        snprintf(event->actor, sizeof event->actor, "%s", actor);
        const char *which = strcmp(actor, "crowd") == 0   ? events[i].key + strlen(run->id) + 1
                            : strcmp(actor, "tasks") == 0 ? instance_name
                                                          : "";
        snprintf(event->point, sizeof event->point, "%s%s%s", which, which[0] != '\0' ? " " : "",
                 events[i].point);
    }
    free(events);
}

static int by_time(const void *a, const void *b)
{
    int64_t at_a = ((const struct run_event *)a)->t_us, at_b = ((const struct run_event *)b)->t_us;
    return (at_a > at_b) - (at_a < at_b);
}

/* -- retries ----------------------------------------------------------------------------------- */

#define TURNED_AWAY "answer 503 unavailable"

static bool is_any_of(const char *point, const char *const *points)
{
    for (; *points != NULL; points++)
        if (strcmp(point, *points) == 0)
            return true;
    return false;
}

/* The tries of one actor. A try that ends as the one before it did, without the lock, is folded. */
struct tries {
    const char *actor;
    int first; /* event that began the try; -1: none runs */
    int folded, last;
    bool alike; /* the try before was turned away, too */
};

/* The streak ends: its last event says how many tries were folded. */
static void end_streak(struct hazard_run *run, struct tries *tries, bool *drop)
{
    if (tries->folded > 0) {
        struct run_event *event = &run->events[tries->last];
        snprintf(event->point, sizeof event->point, "%d more times: " TURNED_AWAY, tries->folded);
        drop[tries->last] = false;
    }
    tries->folded = 0;
    tries->alike = false;
}

static void end_try(struct hazard_run *run, struct tries *tries, int end, bool *drop)
{
    for (int i = tries->first; tries->alike && i <= end; i++)
        drop[i] |= strcmp(run->events[i].actor, tries->actor) == 0;
    tries->folded += tries->alike;
    tries->last = end;
    tries->alike = true;
    tries->first = -1;
}

static void fold_tries(struct hazard_run *run, const char *actor, bool *drop)
{
    static const char *const vain[] = {"submitted", "waiting", "rejected", NULL};
    struct tries tries = {.actor = actor, .first = -1};
    for (int i = 0; i < run->n_events; i++) {
        const struct run_event *event = &run->events[i];
        if (strcmp(event->actor, actor) != 0)
            continue;
        if (strcmp(event->point, "sends") == 0)
            tries.first = i;
        else if (strcmp(event->point, TURNED_AWAY) == 0 && tries.first >= 0)
            end_try(run, &tries, i, drop);
        else if (!is_any_of(event->point, vain)) {
            tries.first = -1;
            end_streak(run, &tries, drop);
        }
    }
    end_streak(run, &tries, drop);
}

/* A client that asks again and again while no lock server answers would hide the rest. */
static void fold_retries(struct hazard_run *run)
{
    bool drop[RUN_EVENTS_MAX] = {false};
    int n = 0;
    for (enum hazard_who who = A; who < HAZARD_ACTORS; who++)
        fold_tries(run, who_name(who), drop);
    for (int i = 0; i < run->n_events; i++)
        if (!drop[i])
            run->events[n++] = run->events[i];
    run->n_events = n;
}

void run_sort_events(struct hazard_run *run)
{
    qsort(run->events, (size_t)run->n_events, sizeof run->events[0], by_time);
    int64_t first_us = run->n_events > 0 ? run->events[0].t_us : 0;
    for (int i = 0; i < run->n_events; i++)
        run->events[i].t_us -= first_us;
    fold_retries(run);
}
