/* The last points that requests passed. A full ring drops the oldest ones and counts them. */
#include "lab_private.h"
#include "point.h"

#include <pthread.h>
#include <stdio.h>

struct event {
    int64_t t_us, value, fence;
    bool has_value;
    char point[LAB_POINT_MAX + 1], key[LAB_KEY_MAX + 1], lock[LAB_KEY_MAX + 1];
};

static struct {
    pthread_mutex_t mutex;
    uint64_t n; /* events since lab_trace_clear() */
    struct event ring[LAB_EVENTS_MAX];
} trace = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void lab_trace_add(const struct lab_passage *passage)
{
    pthread_mutex_lock(&trace.mutex);
    struct event *event = &trace.ring[trace.n++ % LAB_EVENTS_MAX];
    *event = (struct event){.t_us = now_us(),
                            .value = passage->value,
                            .fence = passage->fence,
                            .has_value = passage->has_value};
    snprintf(event->point, sizeof event->point, "%s", passage->point);
    snprintf(event->key, sizeof event->key, "%.*s", LAB_KEY_MAX, passage->key);
    snprintf(event->lock, sizeof event->lock, "%.*s", LAB_KEY_MAX, passage->lock);
    pthread_mutex_unlock(&trace.mutex);
}

void lab_trace_clear(void)
{
    pthread_mutex_lock(&trace.mutex);
    trace.n = 0;
    pthread_mutex_unlock(&trace.mutex);
}

static json_t *event_json(const struct event *event)
{
    json_t *value = event->has_value ? json_integer(event->value) : json_null();
    return json_pack("{s:I, s:s, s:s, s:s, s:o, s:I}", "t_us", (json_int_t)event->t_us, "point",
                     event->point, "key", event->key, "lock", event->lock, "value", value, "fence",
                     (json_int_t)event->fence);
}

json_t *lab_trace_list(const char *instance)
{
    json_t *events = json_array();
    pthread_mutex_lock(&trace.mutex);
    uint64_t first = trace.n > LAB_EVENTS_MAX ? trace.n - LAB_EVENTS_MAX : 0;
    for (uint64_t i = first; i < trace.n; i++)
        json_array_append_new(events, event_json(&trace.ring[i % LAB_EVENTS_MAX]));
    pthread_mutex_unlock(&trace.mutex);
    return json_pack("{s:s, s:I, s:o}", "instance", instance, "dropped", (json_int_t)first,
                     "events", events);
}
