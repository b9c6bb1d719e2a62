/* The monotonic clock of the machine, and waiting by it. A clock that is injected (lk_env) has no
 * say in these waits. */
#ifndef LOCKKIT_MONOTONIC_H
#define LOCKKIT_MONOTONIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

int64_t lk_monotonic_us(void);
/* The instant that is us microseconds from now; negative: now. For futexes. */
struct timespec lk_monotonic_after(int64_t us);
/* The same length, or instant. us >= 0. */
struct timespec lk_timespec(int64_t us);

/* Waits on cond, which needs no clock of its own, with the mutex held. False once lk_monotonic_us()
 * is until_us; true when it was signalled, or for no reason. */
bool lk_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us);
/* The same for at most us, which may be INT64_MAX; 0 or less: does not wait. */
bool lk_wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us);

#endif
