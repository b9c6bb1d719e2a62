/* An event of a record in words: who, at which point, with which value. */
#ifndef TRACE_H
#define TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { TRACE_WHO_MAX = 24, TRACE_POINT_MAX = 96, TRACE_PARTS = 4, TRACE_PART_MAX = 48 };

struct trace_event {
    json_int_t t_us, value, fence;
    bool has_value;
    char who[TRACE_WHO_MAX];                 /* "u17" of the crowd has a name of its own */
    char point[TRACE_POINT_MAX];             /* without that name */
    char words[TRACE_POINT_MAX];             /* key of its words, without "at." */
    char parts[TRACE_PARTS][TRACE_PART_MAX]; /* what stands in the place of {1}, {2} ... */
    bool landed; /* a COMMIT that was held arrives: it is the change of parts[0], with this value */
};

/* The ith event of the record. False: its point has no words. */
bool trace_event(const json_t *record, size_t i, struct trace_event *ret);

void trace_write(const struct trace_event *event, const json_t *words, FILE *out);

#endif
