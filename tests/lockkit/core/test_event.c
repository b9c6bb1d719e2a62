/* Events: one thread waits until another signals. */
#include "event.h"
#include "process.h"
#include "tests.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAR_US = 60000000, SHORT_US = 20000, ROUNDS = 10000, MANY = 10000, PATIENCE_MS = 20000 };

static lk_event event;
static void (*meanwhile)(void); /* runs when a thread yields, as another thread would */

/* Replaces the C library's function in lockkit's calls. */
int sched_yield(void)
{
    if (meanwhile != NULL)
        meanwhile();
    return (int)syscall(SYS_sched_yield);
}

static int silent(void **state)
{
    (void)state;
    event = (lk_event){0};
    return 0;
}

TEST_FIXTURE(silent, NULL);

TEST_THAT(what_was_signalled_before_is_seen_at_once_and_once)
{
    assert_false(lk_event_signal(&event));
    assert_false(lk_event_signal(&event));
    lk_event_wait(&event, NULL, FAR_US);
    int64_t start_ms = test_now_ms();
    lk_event_wait(&event, NULL, SHORT_US);
    assert_true(test_now_ms() - start_ms >= SHORT_US / 1000 - 1); /* two roundings */
    assert_false(lk_event_signal(&event));
}

TEST_THAT(without_time_nobody_waits)
{
    lk_spin spin = {.most_us = FAR_US};
    lk_event_wait(&event, &spin, 0);
    lk_event_wait(&event, NULL, -FAR_US);
}

static void *wait_long(void *arg)
{
    lk_event_wait(&event, arg, FAR_US);
    return NULL;
}

static bool rings_a_sleeper(void *arg)
{
    (void)arg;
    uint32_t before = atomic_load(&event.state);
    return before != 0 && lk_event_signal(&event);
}

TEST_THAT(a_sleeper_has_to_be_woken)
{
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, wait_long, NULL));
    assert_true(wait_until(rings_a_sleeper, NULL, PATIENCE_MS));
    assert_false(lk_event_signal(&event)); /* the wake was already requested */
    lk_event_wake(&event);
    pthread_join(thread, NULL);
}

static bool slept;

static void signal_it(void)
{
    slept = slept || lk_event_signal(&event);
}

/* On a busy machine it may take several tries, as another process may run meanwhile. */
TEST_THAT(who_looks_before_sleeping_need_not_be_woken)
{
    lk_spin spin = {.most_us = FAR_US, .in_vain = 1};
    slept = false;
    meanwhile = signal_it;
    for (int i = 0; i < MANY && atomic_load(&spin.in_vain) > 0; i++) {
        event = (lk_event){0};
        lk_event_wait(&event, &spin, FAR_US);
    }
    meanwhile = NULL;
    assert_false(slept);
    assert_int_equal(0, atomic_load(&spin.in_vain)); /* the spin succeeded */
}

TEST_THAT(who_looked_in_vain_sleeps)
{
    lk_spin spin = {.most_us = 1};
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, wait_long, &spin));
    assert_true(wait_until(rings_a_sleeper, NULL, PATIENCE_MS));
    lk_event_wake(&event);
    pthread_join(thread, NULL);
}

TEST_THAT(a_wake_may_come_when_the_listener_is_gone)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    assert_int_equal(0, munmap(page, size));
    lk_event_wake(page);
}

static void *lock_and_unlock(void *arg)
{
    pthread_mutex_lock(arg);
    pthread_mutex_unlock(arg);
    return NULL;
}

static bool is_contended(void *arg)
{
    return (uint32_t)atomic_load((_Atomic int *)arg) >> 31; /* FUTEX_WAITERS */
}

/* The kernel then refuses the wake, as only the owner of such a lock may wake. */
TEST_THAT(a_wake_may_come_when_the_memory_has_become_a_lock_with_inheritance)
{
    pthread_mutex_t mutex;
    pthread_mutexattr_t attr;
    pthread_t thread;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &attr);
    pthread_mutex_lock(&mutex);
    assert_int_equal(0, pthread_create(&thread, NULL, lock_and_unlock, &mutex));
    assert_true(wait_until(is_contended, &mutex, PATIENCE_MS));
    lk_event_wake((lk_event *)&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attr);
}

static void heard_a_signal(int number)
{
    (void)number;
}

TEST_THAT(a_signal_may_end_a_wait_and_nothing_else)
{
    struct sigaction action = {.sa_handler = heard_a_signal}, before;
    pthread_t thread;
    sigaction(SIGUSR1, &action, &before);
    assert_int_equal(0, pthread_create(&thread, NULL, wait_long, NULL));
    while (atomic_load(&event.state) == 0)
        usleep(1000);
    usleep(SHORT_US);
    assert_int_equal(0, pthread_kill(thread, SIGUSR1));
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
}

/* Two threads signal each other in turn, as event.h describes. Only the mutex protects told and
 * turns. */
struct end {
    pthread_mutex_t *mutex;
    lk_event event;
    bool told;
    struct end *other;
    int turns;
};

static void *to_and_fro(void *arg)
{
    struct end *end = arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(end->mutex);
        while (!end->told) {
            pthread_mutex_unlock(end->mutex);
            lk_event_wait(&end->event, NULL, FAR_US);
            pthread_mutex_lock(end->mutex);
        }
        end->told = false;
        end->turns++;
        end->other->told = true;
        bool sleeps = lk_event_signal(&end->other->event);
        pthread_mutex_unlock(end->mutex);
        if (sleeps)
            lk_event_wake(&end->other->event);
    }
    return NULL;
}

TEST_THAT(no_ring_is_lost)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct end ends[2] = {{.mutex = &mutex, .told = true, .other = &ends[1]},
                          {.mutex = &mutex, .other = &ends[0]}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, to_and_fro, &ends[i]));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(ROUNDS, ends[i].turns);
    }
}
