/* The real clock, sleep and random numbers: see lk_env. */
#include "lockkit.h"
#include "monotonic.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static int64_t system_now_us(void *ctx)
{
    (void)ctx;
    return lk_monotonic_us();
}

static int64_t system_wall_us(void *ctx)
{
    (void)ctx;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void system_sleep_us(void *ctx, int64_t us)
{
    (void)ctx;
    struct timespec t = lk_timespec(us);
    if (us > 0)
        nanosleep(&t, NULL); /* a signal may end it early: the core looks at the clock */
}

/* getrandom(2) costs as much as the rest of an acquire, so each thread fills a buffer. A forked
 * child discards its copy, which would give it the next tokens of its parent. */
static struct {
    pthread_once_t once;
    bool unwatched; /* no memory for the handler: each buffer gives one number */
    _Atomic unsigned n_forks;
} forks = {.once = PTHREAD_ONCE_INIT};

static void count_fork(void)
{
    atomic_fetch_add(&forks.n_forks, 1);
}

static void watch_forks(void)
{
    forks.unwatched = pthread_atfork(NULL, NULL, count_fork) != 0;
}

static uint64_t system_random(void *ctx)
{
    (void)ctx;
    enum { WORDS = 32 }; /* 256 bytes: what getrandom() gives whole, whatever the signals */
    static _Thread_local struct {
        uint64_t words[WORDS];
        size_t n;
        unsigned n_forks;
    } drawn;
    pthread_once(&forks.once, watch_forks);
    unsigned n_forks = atomic_load(&forks.n_forks);
    if (drawn.n == 0 || drawn.n_forks != n_forks) {
        ssize_t got;
        do
            got = getrandom(drawn.words, sizeof drawn.words, 0);
        while (got < 0 && errno == EINTR); /* uncovered: no signal cuts so few bytes */
        /* uncovered: getrandom() does not fail */
        if (got != (ssize_t)sizeof drawn.words)
            abort(); /* does not happen; two locks must not have one token */
        drawn.n = forks.unwatched ? 1 : WORDS; /* uncovered: pthread_atfork() has memory */
        drawn.n_forks = n_forks;
    }
    return drawn.words[--drawn.n];
}

static void system_point(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    (void)point;
    (void)key;
}

const lk_env *lk_env_system(void)
{
    static const lk_env env = {
        .now_us = system_now_us,
        .wall_us = system_wall_us,
        .sleep_us = system_sleep_us,
        .random = system_random,
        .point = system_point,
    };
    return &env;
}
