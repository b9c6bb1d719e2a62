/* The real monotonic clock, for waits in the kernel: a clock that is injected has no say in them.
 */
#ifndef LOCKKIT_MONOTONIC_H
#define LOCKKIT_MONOTONIC_H

#include <stdint.h>
#include <time.h>

int64_t lk_monotonic_us(void);
/* The instant that is us microseconds from now; negative: now. For condition variables whose clock
 * is CLOCK_MONOTONIC, and futexes. */
struct timespec lk_monotonic_after(int64_t us);
/* The same length, or instant. us >= 0. */
struct timespec lk_timespec(int64_t us);

#endif
