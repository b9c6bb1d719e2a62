/* Threads of the library's own. */
#ifndef LOCKKIT_THREAD_H
#define LOCKKIT_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* With all signals blocked: the program's signals are for the program's threads. False: no memory,
 * or too many threads. */
bool lk_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
