/*
 * The blocking calls of the code under test, put on fibers: the linker (-Wl,--wrap) sends each call
 * of NAME from our objects to __wrap_NAME. Calls from within shared libraries are not touched:
 * SQLite runs without mutexes (sim_disk.c), and hiredis only parses.
 *
 * Objects that are waited for need no memory of their own: fibers wait for an address. A mutex
 * keeps its owner in its first word, a semaphore its count.
 */
#include "sim_threads.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

enum { US_PER_S = 1000000, NS_PER_US = 1000 };

/* -- threads ---------------------------------------------------------------------------------- */

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
pthread_t __wrap_pthread_self(void);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret);
int __wrap_pthread_once(pthread_once_t *once, void (*run)(void));
int __wrap_sched_yield(void);
int __wrap_prctl(int option, ...);

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    (void)attr;
    struct sim_fiber *fiber = sim_spawn(sim_group(), "thread", run, arg);
    if (!fiber)
        return EAGAIN;
    *ret = (pthread_t)fiber;
    sim_step();
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
    struct sim_fiber *fiber = (struct sim_fiber *)thread;
    while (!sim_ended(fiber, ret))
        sim_wait(fiber, SIM_FOREVER);
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    sim_name((struct sim_fiber *)thread, name);
    return 0;
}

pthread_t __wrap_pthread_self(void)
{
    return (pthread_t)sim_self();
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret)
{
    (void)how;
    (void)set;
    if (ret)
        sigemptyset(ret);
    return 0;
}

/* None of ours waits within. */
int __wrap_pthread_once(pthread_once_t *once, void (*run)(void))
{
    if (*once == PTHREAD_ONCE_INIT) {
        *once = PTHREAD_ONCE_INIT + 1;
        run();
    }
    return 0;
}

int __wrap_sched_yield(void)
{
    sim_sleep_us(1);
    return 0;
}

int __wrap_prctl(int option, ...)
{
    (void)option; /* the slack of real timers */
    return 0;
}

/* -- mutexes ---------------------------------------------------------------------------------- */

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    (void)attr;
    memset(mutex, 0, sizeof *mutex);
    return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    sim_lock(mutex);
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    sim_step();
    return sim_try_lock(mutex) ? 0 : EBUSY;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    sim_unlock(mutex);
    sim_step();
    return 0;
}

/* -- conditions: all of ours wait by the monotonic clock -------------------------------------- */

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int __wrap_pthread_cond_destroy(pthread_cond_t *cond);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);

static int64_t in_us(const struct timespec *time)
{
    return (int64_t)time->tv_sec * US_PER_S + (time->tv_nsec + NS_PER_US - 1) / NS_PER_US;
}

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    (void)attr;
    memset(cond, 0, sizeof *cond);
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
    (void)cond;
    return 0;
}

/* One in 50 wakes for no reason, as POSIX allows. */
static int wait_on(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
    int64_t end_us = sim_one_in(50) ? sim_now_us() + sim_below(1000) : until_us;
    sim_unlock(mutex);
    bool woken = sim_wait(cond, end_us < until_us ? end_us : until_us);
    bool late = !woken && sim_now_us() >= until_us;
    sim_lock(mutex);
    return late ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    return wait_on(cond, mutex, SIM_FOREVER);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    return wait_on(cond, mutex, in_us(until));
}

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
    assert(clock == CLOCK_MONOTONIC);
    return wait_on(cond, mutex, in_us(until));
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    sim_wake(cond, 1);
    sim_step();
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    sim_wake(cond, INT32_MAX);
    sim_step();
    return 0;
}

/* -- semaphores and futexes ------------------------------------------------------------------- */

int __wrap_sem_init(sem_t *sem, int shared, unsigned value);
int __wrap_sem_destroy(sem_t *sem);
int __wrap_sem_wait(sem_t *sem);
int __wrap_sem_post(sem_t *sem);
long __wrap_syscall(long number, ...);

int __wrap_sem_init(sem_t *sem, int shared, unsigned value)
{
    (void)shared;
    *(unsigned *)(void *)sem = value;
    return 0;
}

int __wrap_sem_destroy(sem_t *sem)
{
    (void)sem;
    return 0;
}

int __wrap_sem_wait(sem_t *sem)
{
    unsigned *count = (unsigned *)(void *)sem;
    sim_step();
    while (*count == 0)
        sim_wait(sem, SIM_FOREVER);
    --*count;
    return 0;
}

int __wrap_sem_post(sem_t *sem)
{
    ++*(unsigned *)(void *)sem;
    sim_wake(sem, 1);
    sim_step();
    return 0;
}

/* futex(2). Of a set of bells the mask is not looked at: who is woken for nothing looks again. */
long __wrap_syscall(long number, ...)
{
    va_list args;
    va_start(args, number);
    uint32_t *word = va_arg(args, uint32_t *);
    int op = va_arg(args, int) & ~FUTEX_PRIVATE_FLAG;
    uint32_t value = va_arg(args, uint32_t);
    const struct timespec *until = va_arg(args, const struct timespec *);
    va_end(args);
    if (number != SYS_futex) {
        errno = ENOSYS;
        return -1;
    }
    if (op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET) {
        int woken = sim_wake(word, op == FUTEX_WAKE ? (int)value : INT32_MAX);
        sim_step();
        return woken;
    }
    sim_step();
    if (*word != value) {
        errno = EAGAIN;
        return -1;
    }
    if (sim_wait(word, until ? in_us(until) : SIM_FOREVER))
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

/* -- clocks and chance ------------------------------------------------------------------------ */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
time_t __wrap_time(time_t *ret);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);

static int64_t wall_us(void)
{
    return sim_wall_begin_us + sim_now_us() + sim_wall_ahead_us[sim_group()];
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int64_t us = clock == CLOCK_REALTIME ? wall_us() : sim_now_us();
    *ret = (struct timespec){.tv_sec = us / US_PER_S, .tv_nsec = us % US_PER_S * NS_PER_US};
    return 0;
}

time_t __wrap_time(time_t *ret)
{
    time_t now = wall_us() / US_PER_S;
    if (ret)
        *ret = now;
    return now;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    sim_sleep_us(in_us(time));
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(sim_random() >> 32);
    return (ssize_t)n;
}
