/* Threads that the library starts. */
#ifndef LOCKKIT_THREAD_H
#define LOCKKIT_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with all signals blocked, so that the program's own threads handle its signals.
 * False: no memory, or too many threads. */
bool lk_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
