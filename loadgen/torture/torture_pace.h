/*
 * How much slower this machine runs a thread than an idle one would: the time that the calling
 * thread ran and waited for a core, by the time that it ran (/proc/thread-self/schedstat).
 *
 * The limits of a round are meant for an idle machine. One that is shared with others is given more
 * time, in proportion, so that a verdict does not depend on the neighbours.
 */
#ifndef TORTURE_PACE_H
#define TORTURE_PACE_H

#include <stdint.h>

enum { TORTURE_SLOWDOWN_MAX = 20 };

struct torture_pace {
    int64_t run_ns, wait_ns;
};

void torture_pace_begin(struct torture_pace *ret);
/* Since then, on the same thread: 1 to TORTURE_SLOWDOWN_MAX. 1: the kernel does not tell. */
double torture_slowdown(const struct torture_pace *since);
/* The same of two counts. */
double torture_slowdown_of(const struct torture_pace *since, const struct torture_pace *until);

#endif
