/* A caller of several commands, some of which are answered with one batch and some with the next,
 * each read by another thread (lockkit/redis/redis_pipe.c). */
#include "lock_world.h"
#include "process.h"
#include "redis_link.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

enum { ASKERS = 3, N = LK_EACH_MAX, POSTS_MAX = LK_REDIS_BATCH_MAX };
enum { ROUNDS = 5, PATIENCE_MS = 30000 };

static struct link link_;
static struct {
    pthread_t first, asker[ASKERS];
    struct process asking_first, asking[ASKERS];
    atomic_int begun, answered, failed; /* askers; commands */
    lk_redis_call posts[POSTS_MAX];
    lk_redis_reply replies[POSTS_MAX];
    sem_t gate; /* who reads the batch of the posts stands there before he tells the askers */
} seen;

static void ask(size_t n)
{
    lk_redis_query queries[N], *asked[N];
    lk_redis_reply replies[N];
    for (size_t i = 0; i < n; i++) {
        queries[i] = (lk_redis_query){.n = 2, .words = {"ECHO", "text"}, .reply = &replies[i]};
        asked[i] = &queries[i];
    }
    lk_redis_run_each(link_.redis, asked, n);
    for (size_t i = 0; i < n; i++)
        atomic_fetch_add(&seen.failed, queries[i].status != LK_OK);
}

static void *ask_first(void *arg)
{
    seen.asking_first = process_of(gettid());
    ask(1);
    return arg;
}

static void *ask_many(void *arg)
{
    *(struct process *)arg = process_of(gettid());
    atomic_fetch_add(&seen.begun, 1);
    ask(N);
    atomic_fetch_add(&seen.answered, 1);
    return arg;
}

static bool has_reached(void *number)
{
    return *(atomic_int *)number >= ASKERS;
}

static bool sleeps(void *process)
{
    return process_sleeps(*(struct process *)process);
}

/* Each once for each of the others, for whose mutex it may have slept. */
static void expect_asleep(struct process *threads, int n)
{
    for (int look = 0; look < n; look++)
        for (int i = 0; i < n; i++)
            assert_true(wait_until(sleeps, &threads[i], PATIENCE_MS));
}

static bool somebody_is_answered(void *number)
{
    return *(atomic_int *)number > 0;
}

static bool first_is_written(void *before)
{
    return link_.commands > *(uint64_t *)before;
}

static void stand_at_gate(lk_redis_call *call)
{
    (void)call;
    while (sem_wait(&seen.gate) != 0)
        continue;
}

static void pass(lk_redis_call *call)
{
    (void)call;
}

static void post(size_t n)
{
    static const char *words[] = {"PING"};
    for (size_t i = 0; i < n; i++) {
        seen.posts[i].reply = &seen.replies[i];
        seen.posts[i].answered = i == 1 ? stand_at_gate : pass;
        assert_true(lk_redis_post(link_.redis, &seen.posts[i], 1, words));
    }
}

/* While the server stands still: one post that is written ahead of its answers, so many posts in
 * the queue, and behind them the askers. */
static void gather(size_t n_posts)
{
    uint64_t before = link_.commands;
    seen.begun = seen.answered = 0;
    assert_int_equal(sandbox_signal(world_redis, SIGSTOP), 0);
    assert_int_equal(pthread_create(&seen.first, NULL, ask_first, NULL), 0);
    assert_true(wait_until(first_is_written, &before, PATIENCE_MS));
    expect_asleep(&seen.asking_first, 1);
    post(1 + n_posts);
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&seen.asker[i], NULL, ask_many, &seen.asking[i]), 0);
    assert_true(wait_until(has_reached, &seen.begun, PATIENCE_MS));
    expect_asleep(seen.asking, ASKERS);
    assert_int_equal(sandbox_signal(world_redis, SIGCONT), 0);
}

static void expect_all_answered(void)
{
    assert_true(wait_until(has_reached, &seen.answered, PATIENCE_MS));
    for (int i = 0; i < ASKERS; i++)
        pthread_join(seen.asker[i], NULL);
    pthread_join(seen.first, NULL);
    assert_int_equal(seen.failed, 0);
}

/* All but one of an asker's commands are left when he has served the first batch. */
static void who_has_served_a_batch_serves_the_next_for_what_is_left(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        sem_post(&seen.gate);
        gather(LK_REDIS_BATCH_MAX - 1);
        expect_all_answered();
    }
}

/* All commands of one asker and half of another's are in the first batch. The second is served by
 * the other one, who is done with it before the answers of the first are told to him: what wakes
 * him then is no call to serve a batch. */
static void who_is_told_late_serves_no_batch_that_is_not_there(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        gather(LK_REDIS_BATCH_MAX - N - N / 2);
        assert_true(wait_until(somebody_is_answered, &seen.answered, PATIENCE_MS));
        sem_post(&seen.gate);
        expect_all_answered();
    }
}

static int open_link(void **state)
{
    (void)state;
    sem_init(&seen.gate, 0, 0);
    if (!link_open_for(&link_, world_redis->url, PATIENCE_MS))
        return -1;
    ask(1);
    return 0;
}

static int close_link(void **state)
{
    (void)state;
    link_close(&link_);
    sem_destroy(&seen.gate);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_link, close_link)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_has_served_a_batch_serves_the_next_for_what_is_left),
        TEST(who_is_told_late_serves_no_batch_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, world_open, world_close);
}
