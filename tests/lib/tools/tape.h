/* Answers of HTTP servers, recorded for a judge: one JSON object a line with method, path, status,
 * headers and body. */
#ifndef TEST_TAPE_H
#define TEST_TAPE_H

#include "raw_http.h"

#include <stdbool.h>
#include <stdio.h>

struct tape {
    FILE *out;
    int n;                  /* answers recorded */
    struct raw_reply reply; /* the last one */
};

bool tape_open(struct tape *tape, const char *file);
void tape_close(struct tape *tape);
/* Sends a request on a connection of its own, and records the answer. headers: lines that end in
 * CR LF; with a Host among them no other is sent. body may be NULL. Returns the status; 0 or -1 as
 * raw_read(), and then nothing is recorded. */
int tape_ask(struct tape *tape, int port, const char *method, const char *path, const char *headers,
             const char *body);
/* Records an answer that the caller has read into tape->reply. */
void tape_record(struct tape *tape, const char *method, const char *path);

#endif
