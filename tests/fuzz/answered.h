/* What the service has answered, read by loadgen's parser. In a file of its own because the two
 * sides give some constants the same name. */
#ifndef ANSWERED_H
#define ANSWERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWERS_MAX = 1 << 19 /* bytes */, ANSWERED_MAX = 512 };

struct answered {
    int n, status[ANSWERED_MAX];
    uint64_t body[ANSWERED_MAX]; /* a hash; 0 for the text of metrics */
    bool streams;                /* the last answer is a stream of events */
};

/* Reads answers to requests other than HEAD. Each must be whole, and JSON if it says so. */
void answered_read(const char *bytes, size_t size, struct answered *ret);

#endif
