#include "point.h"
#include "events.h"
#include "seams.h"

#include <errno.h>
#include <time.h>

const struct seams seams_none;

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t now_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

int64_t wall_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

int64_t backoff_us(int64_t first_us, int64_t most_us, int n)
{
    for (; n > 0 && first_us < most_us; n--)
        first_us *= 2;
    return first_us < most_us ? first_us : most_us;
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

void op_pass(struct op *op, enum op_point point)
{
    op_pass_all(&op, 1, point);
}

void op_pass_all(struct op **ops, size_t n, enum op_point point)
{
    int64_t at_us = now_us();
    for (size_t i = 0; i < n; i++)
        ops[i]->point_us[point] = at_us;
    if (events_wanted(at_us))
        events_pass(ops, n, point, at_us);
    for (size_t i = 0; i < n; i++)
        if (ops[i]->seams && ops[i]->seams->at_point)
            ops[i]->seams->at_point(ops[i], point);
}
