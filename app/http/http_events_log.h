/* The events of the last moments and the counters, as texts, once for all listeners. */
#ifndef HTTP_EVENTS_LOG_H
#define HTTP_EVENTS_LOG_H

#include "events.h"
#include "http_events.h"

#include <stdbool.h>

enum { EVENT_TEXT_MAX = 512, EVENT_COUNTS_TEXT_MAX = 512 };

struct events_line {
    char resource[DB_RESOURCE_MAX + 1];
    uint16_t length;
    char text[EVENT_TEXT_MAX]; /* one JSON object */
};

/* The counters of one resource. */
struct events_board {
    char resource[DB_RESOURCE_MAX + 1];
    uint64_t tick; /* of the last change; 0: unused */
    size_t length;
    char text[EVENT_COUNTS_TEXT_MAX]; /* a whole message */
};

struct events_log {
    struct events_line *lines; /* a ring of HTTP_EVENTS_KEPT, by the event's id */
    uint64_t head;             /* the next event's id */
    struct events_board boards[EVENTS_RESOURCES_MAX];
    uint64_t tick;          /* one more with each events_log_take() */
    uint64_t lost, unnoted; /* see events_take() */
    uint64_t limits_tick;   /* when one of these two last changed */
};

/* Memory for the ring, unless it has it. False: there is none. */
bool events_log_open(struct events_log *log);
void events_log_close(struct events_log *log);

/* Takes what has happened since the last time. */
void events_log_take(struct events_log *log);
/* The id of the oldest event still there. */
uint64_t events_log_oldest(const struct events_log *log);

#endif
