/* A thread that does one thing again and again, with a pause before each time. The scheduled tasks
 * stand on it. */
#ifndef REPEATED_H
#define REPEATED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct repeated {
    int64_t (*run)(void *arg); /* returns the pause before the next time, in us */
    void *arg;
    int64_t pause_us;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopping, started;
};

/* Calls run(arg) for the first time after pause_us. False: no thread; nothing is to be stopped. */
bool repeated_start(struct repeated *repeated, int64_t pause_us, int64_t (*run)(void *arg),
                    void *arg);
/* For run(): whether to end early. */
bool repeated_is_stopping(struct repeated *repeated);
/* Returns once run() is over. A zeroed struct that was not started is allowed. */
void repeated_stop(struct repeated *repeated);

#endif
