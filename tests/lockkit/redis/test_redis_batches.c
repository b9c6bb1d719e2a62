/* A call of several commands whose answers come in two batches, read by two threads
 * (lockkit/redis/redis_mux.c). */
#include "event_set.h"
#include "lock_world.h"
#include "process.h"
#include "redis_link.h"
#include "tests.h"

#include <signal.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = LK_EACH_MAX, BATCH = LK_REDIS_BATCH_MAX, ROUNDS = 5, PATIENCE_MS = 30000 };

/* Callers in queue order; the server is stopped meanwhile. The first caller's command is written at
 * once. The next caller's commands may be written ahead. */
enum { FIRST, AHEAD, READER, FILLER, HALF, WHOLE, STRADDLER, LAST, CALLERS };
static const size_t commands_of[CALLERS] = {
    [FIRST] = 1,    [AHEAD] = N, [READER] = N,    [FILLER] = N,
    [HALF] = N / 2, [WHOLE] = N, [STRADDLER] = N, [LAST] = N};

struct caller {
    pthread_t thread;
    struct process process;
    size_t n;
    atomic_bool begun, answered;
};

static struct link link_;
static struct caller callers[CALLERS];
static atomic_int failed; /* commands */

/* The reader of the first full batch wakes the reader of the next one, then stops at the gate. It
 * has not delivered its own answers yet. */
static _Thread_local bool stands_at_gate;
static atomic_bool gate_is_used;
static sem_t gate;

void __real_lk_event_set_signal(lk_event_set *set, uint32_t events);
void __wrap_lk_event_set_signal(lk_event_set *set, uint32_t events);

void __wrap_lk_event_set_signal(lk_event_set *set, uint32_t events)
{
    __real_lk_event_set_signal(set, events);
    if (!stands_at_gate)
        return;
    stands_at_gate = false;
    atomic_store(&gate_is_used, true);
    while (sem_wait(&gate) != 0)
        continue;
}

static void ask(size_t n)
{
    lk_redis_query queries[N], *asked[N] = {NULL};
    lk_redis_reply replies[N];
    for (size_t i = 0; i < n; i++) {
        queries[i] = (lk_redis_query){.n = 2, .words = {"ECHO", "text"}, .reply = &replies[i]};
        asked[i] = &queries[i];
    }
    lk_redis_run_each(link_.redis, asked, n);
    for (size_t i = 0; i < n; i++)
        atomic_fetch_add(&failed, queries[i].status != LK_OK);
}

static void *call(void *arg)
{
    struct caller *caller = arg;
    stands_at_gate = caller == &callers[READER];
    caller->process = process_of(gettid());
    atomic_store(&caller->begun, true);
    ask(caller->n);
    atomic_store(&caller->answered, true);
    return NULL;
}

static bool is_true(void *flag)
{
    return atomic_load((atomic_bool *)flag);
}

static bool sleeps(void *process)
{
    return process_sleeps(*(struct process *)process);
}

/* Starts each of the first n callers once the previous one sleeps in the queue. */
static void queue_up(int n)
{
    assert_int_equal(sandbox_signal(world_redis, SIGSTOP), 0);
    for (int i = 0; i < n; i++) {
        struct caller *caller = &callers[i];
        caller->n = commands_of[i];
        caller->begun = caller->answered = false;
        assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
        assert_true(wait_until(is_true, &caller->begun, PATIENCE_MS));
        assert_true(wait_until(sleeps, &caller->process, PATIENCE_MS));
    }
    assert_int_equal(sandbox_signal(world_redis, SIGCONT), 0);
}

GROUP_FIXTURE(world_open, world_close);

/* The reader's batch contains half of the straddler's commands. The straddler reads the next batch
 * and finishes it before it gets the answers of the first. That later wake-up must not make it read
 * another batch. */
TEST_THAT(a_caller_that_is_told_late_reads_no_batch_that_is_not_there)
{
    for (int round = 0; round < ROUNDS; round++) {
        gate_is_used = false;
        queue_up(CALLERS);
        assert_true(wait_until(is_true, &callers[LAST].answered, PATIENCE_MS));
        assert_true(wait_until(is_true, &gate_is_used, PATIENCE_MS));
        assert_false(callers[STRADDLER].answered);
        sem_post(&gate);
        for (int i = 0; i < CALLERS; i++)
            pthread_join(callers[i].thread, NULL);
        assert_int_equal(failed, 0);
    }
}

/* The connection is new after an outage: nothing of the old one makes the second batch unknown. */
TEST_THAT(a_batch_written_ahead_after_an_outage_is_answered)
{
    sandbox_signal(world_redis, SIGKILL);
    ask(1);
    assert_int_equal(atomic_exchange(&failed, 0), 1);
    assert_int_equal(sandbox_restart(world_redis), 0);
    queue_up(AHEAD + 1);
    for (int i = 0; i <= AHEAD; i++)
        pthread_join(callers[i].thread, NULL);
    assert_int_equal(failed, 0);
}

static int open_link(void **state)
{
    (void)state;
    _Static_assert(N + N + N / 2 + N + N / 2 == BATCH, "the straddler stands in two");
    sem_init(&gate, 0, 0);
    if (!link_open_for(&link_, world_redis->url, PATIENCE_MS))
        return -1;
    ask(1);
    return 0;
}

static int close_link(void **state)
{
    (void)state;
    link_close(&link_);
    sem_destroy(&gate);
    return 0;
}

TEST_FIXTURE(open_link, close_link);
