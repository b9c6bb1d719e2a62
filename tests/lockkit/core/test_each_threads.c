/* Many threads with many locks each, on one client and on two: never two holders, no waiter is
 * forgotten. */
#include "lock_batch.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <signal.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* More commands are pending than one batch holds (LK_REDIS_BATCH_MAX). OF_EACH does not divide that
 * bound, so batches end in the middle of a caller's commands. */
enum { THREADS = 8, OF_EACH = 30, KEYS = 45, LEASE_MS = 600000, LONG_MS = 30000 };

struct crowd;
struct member {
    struct crowd *crowd;
    lk_client *client;
    unsigned seed;
    bool singly; /* acquires one lock at a time, beside the others */
    pthread_t thread;
    struct lock_batch batch;
};

struct crowd {
    int64_t times;
    atomic_int inside[KEYS];
    _Atomic uint64_t fence[KEYS]; /* last one granted */
    atomic_int together, stale, odd;
    atomic_int_fast64_t granted;
    struct member member[THREADS];
};

static struct crowd crowd;

static void enter(size_t key, uint64_t fence)
{
    atomic_fetch_add(&crowd.together, atomic_fetch_add(&crowd.inside[key], 1) > 0);
    atomic_fetch_add(&crowd.stale, atomic_exchange(&crowd.fence[key], fence) >= fence);
    atomic_fetch_add(&crowd.granted, 1);
}

static void leave(size_t key)
{
    atomic_fetch_sub(&crowd.inside[key], 1);
}

static void take_many(struct member *m)
{
    struct lock_batch *batch = &m->batch;
    size_t first = (size_t)rand_r(&m->seed) % (KEYS - OF_EACH + 1);
    bool granted[OF_EACH];
    batch_init(batch, first, OF_EACH, LEASE_MS);
    batch_try(batch, m->client);
    for (size_t i = 0; i < OF_EACH; i++) {
        granted[i] = batch->statuses[i] == LK_OK;
        atomic_fetch_add(&crowd.odd, !granted[i] && batch->statuses[i] != LK_TIMEOUT);
        if (granted[i])
            enter(first + i, batch->hold[i].fence);
    }
    for (size_t i = 0; i < OF_EACH; i++)
        if (granted[i])
            leave(first + i);
    batch_release(batch);
    for (size_t i = 0; i < OF_EACH; i++)
        atomic_fetch_add(&crowd.odd, batch->statuses[i] != (granted[i] ? LK_OK : LK_LOST));
}

static void take_one(struct member *m)
{
    lk_hold hold;
    size_t key = (size_t)rand_r(&m->seed) % KEYS;
    batch_init(&m->batch, key, 1, LEASE_MS);
    lk_status status = world_acquire(m->client, m->batch.keys[0], LEASE_MS, 0, &hold);
    atomic_fetch_add(&crowd.odd, status != LK_OK && status != LK_TIMEOUT);
    if (status != LK_OK)
        return;
    enter(key, hold.fence);
    leave(key);
    atomic_fetch_add(&crowd.odd, lk_release(&hold) != LK_OK);
}

static void *come_and_go(void *arg)
{
    struct member *m = arg;
    for (int64_t i = 0; i < crowd.times; i++)
        (m->singly ? take_one : take_many)(m);
    return NULL;
}

/* Thread i uses clients[i % n_clients]; every fourth thread acquires one lock at a time. */
static void run_crowd(lk_client *const *clients, size_t n_clients)
{
    crowd = (struct crowd){.times = test_size(400, 5000)};
    for (size_t i = 0; i < THREADS; i++)
        crowd.member[i] = (struct member){.crowd = &crowd,
                                          .client = clients[i % n_clients],
                                          .seed = (unsigned)i,
                                          .singly = i % 4 == 3};
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&crowd.member[i].thread, NULL, come_and_go, &crowd.member[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(crowd.member[i].thread, NULL);
    assert_int_equal(crowd.together, 0);
    assert_int_equal(crowd.stale, 0);
    assert_int_equal(crowd.odd, 0);
    assert_true(crowd.granted >= crowd.times);
}

static lk_client *open_client(const char *guard)
{
    lk_client *client = world_client(guard, &(lk_options){.command_timeout_ms = LONG_MS});
    assert_non_null(client);
    return client;
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(threads_of_one_client_are_never_inside_together)
{
    lk_client *client = open_client("redis-token");
    run_crowd(&client, 1);
    lk_close(client);
    assert_int_equal(world->leftovers(), 0);
}

/* -- batches ------------------------------------------------------------------------------------
 */

static void *try_all(void *arg)
{
    struct member *m = arg;
    batch_try(&m->batch, m->client);
    return NULL;
}

static bool all_ask(void *client)
{
    return world_stats(client).attempts % (THREADS * OF_EACH) == 0;
}

/* While the server is stopped, more commands queue than one batch holds. The batch ends in the
 * middle of a caller's commands. */
TEST_THAT(who_stands_in_two_batches_gets_all_answers)
{
    enum { ROUNDS = 10 };
    lk_client *client = open_client("redis-token");
    crowd = (struct crowd){.times = 0};
    for (int round = 0; round < ROUNDS; round++) {
        assert_int_equal(sandbox_signal(world_redis, SIGSTOP), 0);
        for (size_t i = 0; i < THREADS; i++) {
            struct member *m = &crowd.member[i];
            m->client = client;
            batch_init(&m->batch, i * OF_EACH, OF_EACH, LEASE_MS);
            assert_int_equal(pthread_create(&m->thread, NULL, try_all, m), 0);
        }
        bool asked = wait_until(all_ask, client, LONG_MS);
        assert_int_equal(sandbox_signal(world_redis, SIGCONT), 0);
        for (size_t i = 0; i < THREADS; i++)
            pthread_join(crowd.member[i].thread, NULL);
        assert_true(asked);
        for (size_t i = 0; i < THREADS; i++) {
            assert_true(batch_ok(&crowd.member[i].batch));
            batch_release(&crowd.member[i].batch);
            assert_true(batch_ok(&crowd.member[i].batch));
        }
    }
    lk_close(client);
    assert_int_equal(world->leftovers(), 0);
}

/* -- waiters ------------------------------------------------------------------------------------
 */

struct waiter {
    lk_client *client;
    pthread_t thread;
    lk_hold hold;
    lk_status status;
};

static void *wait_in_line(void *arg)
{
    struct waiter *w = arg;
    w->status = world_acquire(w->client, "lock:item:1", LEASE_MS, LONG_MS, &w->hold);
    return NULL;
}

static bool somebody_was_refused(void *client)
{
    return world_stats(client).refusals > 0;
}

TEST_THAT(waiter_in_line_is_given_what_is_released_with_others)
{
    static struct lock_batch mine;
    static const lk_options options = {.command_timeout_ms = LONG_MS,
                                       .local_queue = true,
                                       .local_handovers = 1000,
                                       .retry_min_ms = LONG_MS,
                                       .retry_max_ms = LONG_MS};
    struct waiter w = {.client = world_client("redis-token", &options)};
    batch_init(&mine, 0, 3, LEASE_MS);
    batch_try(&mine, w.client);
    assert_true(batch_ok(&mine));
    assert_int_equal(pthread_create(&w.thread, NULL, wait_in_line, &w), 0);
    bool asked = wait_until(somebody_was_refused, w.client, LONG_MS);
    batch_release(&mine);
    pthread_join(w.thread, NULL);
    assert_true(asked);
    assert_true(batch_ok(&mine));
    assert_int_equal(w.status, LK_OK);
    assert_true(w.hold.wait_us < LONG_MS * 1000 / 2); /* woken long before its next poll */
    assert_int_equal(world->leftovers(), 1);
    assert_int_equal(lk_release(&w.hold), LK_OK);
    lk_close(w.client);
}
