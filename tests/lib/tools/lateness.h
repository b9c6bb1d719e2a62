/* How late the machine is: a thread that wakes and works a little, again and again. For tests whose
 * bound on time means nothing while others have the processor. */
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

/* Watches from now on. The struct must not move. */
void lateness_begin(struct lateness *lateness);
/* Ends the watch; returns by how many milliseconds the thread was late, at the most. */
int64_t lateness_end(struct lateness *lateness);

#endif
