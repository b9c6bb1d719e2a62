/* A listener of GET /v1/events that reads when it is told to. */
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

/* Asks for path; last_id NULL: without. small: a receive buffer as small as the kernel allows.
 * False when it cannot connect. */
bool sse_open(struct sse *sse, int port, const char *path, const char *last_id, bool small);
/* Reads what is there, for wait_ms at most. */
void sse_read(struct sse *sse, int64_t wait_ms);
/* Reads until text has come so many times, or the stream has ended, or a generous time has passed.
 * False: it has not come. */
bool sse_await(struct sse *sse, const char *text, size_t times);
size_t sse_count(const struct sse *sse, const char *text);
/* All events of the trace messages received whole; to be released with json_decref(). */
json_t *sse_events(const struct sse *sse);
/* The data of the nth message of this name, from 0; negative: the last. NULL without. */
json_t *sse_data(const struct sse *sse, const char *name, int nth);
/* The id of the last message received whole; "" without. */
void sse_last_id(const struct sse *sse, char *ret, size_t size);
void sse_close(struct sse *sse);

#endif
