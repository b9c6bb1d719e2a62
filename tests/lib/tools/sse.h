/* A listener of GET /v1/events that reads only when it is called. */
#ifndef TEST_SSE_H
#define TEST_SSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sse {
    int fd;
    char *text; /* everything received, the head too; NUL-terminated */
    size_t n, room;
    bool ended;
};

/* Requests path; last_id: Last-Event-ID, or NULL. small: the smallest receive buffer that the
 * kernel allows. False if it cannot connect. */
bool sse_open(struct sse *sse, int port, const char *path, const char *last_id, bool small);
/* Reads what arrives, for wait_ms at most. */
void sse_read(struct sse *sse, int64_t wait_ms);
/* Reads until text has come `times` times. False if the stream ended or a long timeout passed
 * before. */
bool sse_await(struct sse *sse, const char *text, size_t times);
size_t sse_count(const struct sse *sse, const char *text);
/* All events of the complete trace messages; to be released with json_decref(). */
json_t *sse_events(const struct sse *sse);
/* The data of the nth message of this name, from 0; negative: the last. NULL if there is none. */
json_t *sse_data(const struct sse *sse, const char *name, int nth);
/* The id of the last complete message; "" if there is none. */
void sse_last_id(const struct sse *sse, char *ret, size_t size);
void sse_close(struct sse *sse);

#endif
