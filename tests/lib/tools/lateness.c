#include "lateness.h"
#include "process.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum {
    NAP_MS = 40,
    WORK_MS = 2, /* CPU time: on a busy machine waking can be quick although work is slow */
    NS_PER_MS = 1000000,
    MS_PER_S = 1000,
    LOOK_MS = 5,
    WAKE_UPS = 20,       /* of client, proxy and server in one call, one after the other */
    JOINED_MS = 2 * 1000 /* from the end of a call in another thread to its judgement */
};

/* The greatest lateness of each second. */
static struct second {
    _Atomic int64_t number; /* of test_now_ms() */
    _Atomic int64_t latest_ms;
} seconds[LATENESS_KEPT_S];

static _Atomic int64_t round_ms; /* when the present nap began */

static void work(void)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begun.tv_sec) * MS_PER_S + (now.tv_nsec - begun.tv_nsec) / NS_PER_MS <
           WORK_MS);
}

static void note(int64_t now_ms, int64_t late_ms)
{
    struct second *second = &seconds[now_ms / MS_PER_S % LATENESS_KEPT_S];
    if (atomic_load(&second->number) != now_ms / MS_PER_S) {
        atomic_store(&second->latest_ms, 0);
        atomic_store(&second->number, now_ms / MS_PER_S);
    }
    if (late_ms > atomic_load(&second->latest_ms))
        atomic_store(&second->latest_ms, late_ms);
}

static void *keep_watch(void *unused)
{
    (void)unused;
    for (;;) {
        int64_t start_ms = test_now_ms();
        atomic_store(&round_ms, start_ms);
        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * NS_PER_MS}, NULL);
        work();
        int64_t now_ms = test_now_ms();
        note(now_ms, now_ms - start_ms - NAP_MS - WORK_MS);
    }
    return NULL;
}

/* Before main(): the moment that a test asks about may be any. */
__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    sigset_t all, before; /* the program's signals are for its other threads */
    sigfillset(&all);
    atomic_store(&round_ms, test_now_ms());
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&thread, NULL, keep_watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert(failed == 0);
    pthread_detach(thread);
}

int64_t lateness_since(int64_t since_ms)
{
    int64_t latest_ms = test_now_ms() - atomic_load(&round_ms) - NAP_MS - WORK_MS; /* it is late */
    for (int i = 0; i < LATENESS_KEPT_S; i++) {
        int64_t ms = atomic_load(&seconds[i].latest_ms);
        if (atomic_load(&seconds[i].number) >= since_ms / MS_PER_S && ms > latest_ms)
            latest_ms = ms;
    }
    return latest_ms > 0 ? latest_ms : 0;
}

int64_t lateness_of_call(int64_t lasting_ms)
{
    return WAKE_UPS * lateness_since(test_now_ms() - lasting_ms);
}

bool took_at_most(int64_t took_ms, int64_t bound_ms)
{
    int64_t machine_ms = lateness_of_call(took_ms + JOINED_MS);
    if (took_ms <= bound_ms + machine_ms)
        return true;
    fprintf(stderr, "took %d ms: more than %d ms, and %d ms that the machine may have been late\n",
            (int)took_ms, (int)bound_ms, (int)machine_ms);
    return false;
}

bool comes_within(bool (*is_so)(void *arg), void *arg, int64_t bound_ms)
{
    int64_t start_ms = test_now_ms();
    while (!wait_until(is_so, arg, LOOK_MS))
        if (test_now_ms() - start_ms > bound_ms && !ended_within(start_ms, bound_ms))
            return false;
    return true;
}

bool ended_within(int64_t start_ms, int64_t bound_ms)
{
    return took_at_most(test_now_ms() - start_ms, bound_ms);
}
