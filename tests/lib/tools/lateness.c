#include "lateness.h"
#include "process.h"

#include <assert.h>
#include <time.h>

enum { NAP_MS = 20, WORK_MS = 2, NS_PER_MS = 1000000 };

/* Some CPU work: on a busy machine waking can be quick although work is slow. */
static void work(void)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / NS_PER_MS <
           WORK_MS);
}

static void *keep_watch(void *arg)
{
    struct lateness *lateness = arg;
    while (!atomic_load(&lateness->over)) {
        int64_t before_ms = test_now_ms();
        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * NS_PER_MS}, NULL);
        work();
        int64_t late_ms = test_now_ms() - before_ms - NAP_MS - WORK_MS;
        if (late_ms > lateness->latest_ms)
            lateness->latest_ms = late_ms;
    }
    return NULL;
}

void lateness_begin(struct lateness *lateness)
{
    *lateness = (struct lateness){.latest_ms = 0};
    int failed = pthread_create(&lateness->thread, NULL, keep_watch, lateness);
    assert(failed == 0);
}

int64_t lateness_end(struct lateness *lateness)
{
    atomic_store(&lateness->over, true);
    pthread_join(lateness->thread, NULL);
    return lateness->latest_ms;
}
