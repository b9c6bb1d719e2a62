/*
 * How late the machine runs threads. A program that uses this has a thread that wakes and works a
 * little, again and again, and notes how late that was. For bounds on time: a bound that the code
 * keeps on a quiet machine is exceeded on a busy one although the code is right.
 */
#ifndef TEST_LATENESS_H
#define TEST_LATENESS_H

#include <stdbool.h>
#include <stdint.h>

enum { LATENESS_KEPT_S = 256 /* an older moment counts as this old */ };

/* The thread's greatest lateness in ms since a moment of test_now_ms(). */
int64_t lateness_since(int64_t since_ms);

/* What the machine may have added to a call in the last lasting_ms: a call is a row of wake-ups,
 * each as late as the thread's latest. */
int64_t lateness_of_call(int64_t lasting_ms);

/* True if a call that has just ended took at most bound_ms and lateness_of_call(). False: it says
 * so. */
bool took_at_most(int64_t took_ms, int64_t bound_ms);
/* The same for a call that began at start_ms. */
bool ended_within(int64_t start_ms, int64_t bound_ms);
/* wait_until() of process.h, for what comes by itself within bound_ms and lateness_of_call(). */
bool comes_within(bool (*is_so)(void *arg), void *arg, int64_t bound_ms);

#endif
