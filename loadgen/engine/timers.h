/* Timers: retries, and connections to look at again. A binary heap, earliest first; J. W. J.
 * Williams, "Algorithm 232: Heapsort" (1964). */
#ifndef TIMERS_H
#define TIMERS_H

#include "connection.h"

struct timer {
    int64_t due_us;
    struct sending sending;        /* of a retry */
    struct connection *connection; /* to look at; NULL: a retry */
};

struct timers {
    struct timer *heap;
    size_t count, size;
};

bool timers_add(struct timers *timers, const struct timer *timer); /* false: out of memory */
/* When the first is due; INT64_MAX: there is none. */
int64_t timers_next_us(const struct timers *timers);
/* Takes the first if it is due. */
bool timers_take(struct timers *timers, int64_t now_us, struct timer *ret);
void timers_free(struct timers *timers);

#endif
