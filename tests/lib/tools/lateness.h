/* Measures how late the machine runs threads: a thread wakes and works a little, again and again.
 * For tests whose time bound is meaningless while other programs use the CPU. */
#ifndef TEST_LATENESS_H
#define TEST_LATENESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct lateness {
    pthread_t thread;
    atomic_bool over;
    int64_t latest_ms;
};

/* Starts to measure. The struct must not move. */
void lateness_begin(struct lateness *lateness);
/* Ends the measurement. Returns the thread's greatest lateness in ms. */
int64_t lateness_end(struct lateness *lateness);

#endif
