#include "monotonic.h"
#include "number.h"

#include <errno.h>

enum { US_PER_S = 1000000, NS_PER_US = 1000 };

int64_t lk_monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

struct timespec lk_timespec(int64_t us)
{
    return (struct timespec){.tv_sec = us / US_PER_S, .tv_nsec = us % US_PER_S * NS_PER_US};
}

struct timespec lk_monotonic_after(int64_t us)
{
    return lk_timespec(lk_monotonic_us() + (us > 0 ? us : 0));
}

bool lk_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
    struct timespec until = lk_timespec(until_us);
    return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

bool lk_wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t us)
{
    return us > 0 && lk_wait_until(cond, mutex, lk_sum(lk_monotonic_us(), us));
}
