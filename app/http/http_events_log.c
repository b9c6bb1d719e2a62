#include "http_events_log.h"
#include "answer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t event_text(char ret[EVENT_TEXT_MAX], uint64_t id, const struct event *event)
{
    char key[2 * EVENTS_KEY_MAX + 1], value[24] = "null", problem[40] = "";
    json_escape(key, sizeof key, event->key);
    if (event->has_value)
        snprintf(value, sizeof value, "%" PRId64, event->value);
    if (event->problem != PROBLEM_NONE)
        snprintf(problem, sizeof problem, ",\"problem\":\"%s\"", problem_info(event->problem)->id);
    int n = snprintf(ret, EVENT_TEXT_MAX,
                     "{\"id\":%" PRIu64 ",\"t_us\":%" PRId64
                     ",\"point\":\"%s\",\"op\":\"%s\",\"resource\":\"%s\",\"key\":\"%s\","
                     "\"request_id\":\"%s\",\"value\":%s,\"fence\":%" PRId64 "%s}",
                     id, event->t_us, event_point_text(event->point), event_kind_text(event->kind),
                     event->resource, key, event->request_id, value, event->fence, problem);
    assert(n > 0 && n < EVENT_TEXT_MAX);
    return (size_t)n;
}

static size_t event_counts_text(char ret[EVENT_COUNTS_TEXT_MAX], const struct event_counts *counts)
{
    int n = snprintf(ret, EVENT_COUNTS_TEXT_MAX,
                     "event: counters\ndata: {\"resource\":\"%s\",\"initial\":%" PRId64
                     ",\"value\":%" PRId64 ",\"accepted\":%" PRId64 ",\"amount\":%" PRId64
                     ",\"decided_no\":%" PRId64 ",\"failed\":%" PRId64 ",\"p50_us\":%" PRId64
                     ",\"p99_us\":%" PRId64 ",\"max_us\":%" PRId64 "}\n\n",
                     counts->resource, counts->initial, counts->value, counts->accepted,
                     counts->amount, counts->decided_no, counts->failed, counts->p50_us,
                     counts->p99_us, counts->max_us);
    assert(n > 0 && n < EVENT_COUNTS_TEXT_MAX);
    return (size_t)n;
}

bool events_log_open(struct events_log *log)
{
    if (log->lines == NULL)
        log->lines = calloc(HTTP_EVENTS_KEPT, sizeof *log->lines);
    return log->lines != NULL;
}

void events_log_close(struct events_log *log)
{
    free(log->lines);
    log->lines = NULL;
}

uint64_t events_log_oldest(const struct events_log *log)
{
    return log->head > HTTP_EVENTS_KEPT ? log->head - HTTP_EVENTS_KEPT : 0;
}

static void take_events(struct events_log *log)
{
    const struct event *list;
    uint64_t lost, unnoted;
    const size_t n = events_take(&list, &lost, &unnoted);
    for (size_t i = 0; i < n; i++) {
        struct events_line *line = &log->lines[log->head % HTTP_EVENTS_KEPT];
        memcpy(line->resource, list[i].resource, sizeof line->resource);
        line->length = (uint16_t)event_text(line->text, log->head, &list[i]);
        log->head++;
    }
    if (lost != log->lost || unnoted != log->unnoted)
        log->limits_tick = log->tick;
    log->lost = lost;
    log->unnoted = unnoted;
}

static void take_counts(struct events_log *log)
{
    struct event_counts counts[EVENTS_RESOURCES_MAX];
    const size_t n = events_counts(counts);
    for (size_t i = 0; i < n; i++) {
        struct events_board *board = &log->boards[0]; /* its own, else the oldest */
        for (size_t k = 0; k < EVENTS_RESOURCES_MAX; k++) {
            if (strcmp(log->boards[k].resource, counts[i].resource) == 0) {
                board = &log->boards[k];
                break;
            }
            if (log->boards[k].tick < board->tick)
                board = &log->boards[k];
        }
        memcpy(board->resource, counts[i].resource, sizeof board->resource);
        board->length = event_counts_text(board->text, &counts[i]);
        board->tick = log->tick;
    }
}

void events_log_take(struct events_log *log)
{
    log->tick++;
    take_events(log);
    take_counts(log);
}
