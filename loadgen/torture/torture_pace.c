#include "torture_pace.h"

#include <inttypes.h>
#include <stdio.h>

void torture_pace_begin(struct torture_pace *ret)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    *ret = (struct torture_pace){0};
    if (file == NULL)
        return;
    if (fscanf(file, "%" SCNd64 " %" SCNd64, &ret->run_ns, &ret->wait_ns) != 2)
        *ret = (struct torture_pace){0};
    fclose(file);
}

double torture_slowdown_of(const struct torture_pace *since, const struct torture_pace *until)
{
    const double run_ns = (double)(until->run_ns - since->run_ns);
    const double wait_ns = (double)(until->wait_ns - since->wait_ns);
    if (run_ns <= 0 || wait_ns <= 0)
        return 1;
    const double slowdown = 1 + wait_ns / run_ns;
    return slowdown < TORTURE_SLOWDOWN_MAX ? slowdown : TORTURE_SLOWDOWN_MAX;
}

double torture_slowdown(const struct torture_pace *since)
{
    struct torture_pace until;
    torture_pace_begin(&until);
    return torture_slowdown_of(since, &until);
}
