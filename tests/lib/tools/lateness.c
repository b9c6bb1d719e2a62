#include "lateness.h"
#include "process.h"

#include <assert.h>
#include <time.h>

enum { NAP_MS = 5, NS_PER_MS = 1000000 };

static void *keep_watch(void *arg)
{
    struct lateness *lateness = arg;
    while (!atomic_load(&lateness->over)) {
        int64_t before_ms = test_now_ms();
        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * NS_PER_MS}, NULL);
        int64_t late_ms = test_now_ms() - before_ms - NAP_MS;
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
