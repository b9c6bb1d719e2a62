/* lk_options.replicas: a lock that too few replicas have is not granted. */
#include "lock_batch.h"
#include "lock_hooks.h"
#include "process.h"
#include "redis.h"
#include "redis_link.h"
#include "redis_set.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEY "lock:item:1"

enum {
    THREADS = 32,
    ENOUGH_MS = 5000,
    SHORT_MS = 150,
    PATIENT_MS = 30000, /* of commands and waits whose time is not the point */
    IMPATIENT_MS = 1000,
    LATE_THREADS_MAX = 4 /* that may have slept for another reason when the server went on */
};

static struct sandbox *sandbox;
static struct sandbox_server *master, *replica;

static int open_pair(void **state)
{
    (void)state;
    char port[8];
    if (sandbox_open(&sandbox) != 0 || (master = sandbox_redis(sandbox, NULL)) == NULL)
        return -1;
    snprintf(port, sizeof port, "%d", master->port);
    const char *const extra[] = {"--replicaof", "127.0.0.1", port, NULL};
    redis_do(master, "CONFIG SET repl-diskless-sync-delay 0");
    replica = sandbox_redis(sandbox, extra);
    return replica != NULL && set_caught_up(master, replica) ? 0 : -1;
}

static int close_pair(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static int empty(void **state)
{
    (void)state;
    return redis_do(master, "FLUSHALL") == 1 ? 0 : -1;
}

static lk_client *client_of(const char *guard, int32_t replicas, int64_t replicas_ms)
{
    lk_options options = {
        .replicas = replicas, .replicas_ms = replicas_ms, .command_timeout_ms = PATIENT_MS};
    return set_client(guard, master->url, &options);
}

/* Calls test for each Redis guard. */
static void with_every_redis_guard(void (*test)(const char *guard))
{
    const lk_provider_info *info;
    int n = 0;
    for (size_t i = 0; (info = lk_provider_at(i)) != NULL; i++) {
        if (strncmp(info->name, "redis-", 6) != 0)
            continue;
        print_message("           %s\n", info->name);
        test(info->name);
        n++;
    }
    assert_true(n >= 7);
}

static void replica_has_it(const char *guard)
{
    lk_client *client = client_of(guard, 1, ENOUGH_MS);
    for (int i = 0; i < 20; i++) {
        lk_hold hold;
        assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
        assert_int_equal(redis_do(replica, "EXISTS " KEY), 1); /* at once, without a wait */
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    lk_close(client);
}

GROUP_FIXTURE(open_pair, close_pair);
TEST_FIXTURE(empty, NULL);

TEST_THAT(granted_lock_stands_on_the_replica_by_then)
{
    with_every_redis_guard(replica_has_it);
}

TEST_THAT(locks_granted_at_once_stand_on_the_replica_by_then)
{
    static struct lock_batch batch;
    lk_client *client = client_of("redis-token", 1, ENOUGH_MS);
    batch_init(&batch, 0, LK_EACH_MAX, 0);
    batch_try(&batch, client);
    int64_t keys = redis_do(replica, "DBSIZE");
    assert_true(batch_ok(&batch));
    assert_int_equal(keys, 2 * LK_EACH_MAX); /* locks and fence counters */
    batch_release(&batch);
    lk_close(client);
}

TEST_THAT(lock_that_was_handed_over_stands_on_the_replica_as_well)
{
    struct hooked hooked;
    lk_options options = {.replicas = 1,
                          .replicas_ms = ENOUGH_MS,
                          .command_timeout_ms = PATIENT_MS,
                          .env = hook(&hooked)};
    lk_client *one = client_of("redis-fair", 1, ENOUGH_MS);
    lk_client *two = set_client("redis-fair", master->url, &options);
    lk_hold first;
    struct asker waiter = {
        .client = two, .key = KEY, .lease_ms = PATIENT_MS, .wait_ms = PATIENT_MS};
    assert_int_equal(lk_raise_fence(one, KEY, REDIS_FENCE_AHEAD), LK_OK);
    assert_int_equal(set_acquire(one, KEY, 0, &first), LK_OK);
    asker_start(&waiter);
    bool queued = wait_until(refused_twice, &hooked, PATIENT_MS);
    lk_status released = lk_release(&first), granted = asker_join(&waiter);
    assert_true(queued);
    assert_int_equal(released, LK_OK);
    assert_int_equal(granted, LK_OK);
    assert_true(waiter.hold.fence == first.fence + 1); /* granted once, not undone and repeated */
    assert_int_equal(redis_do(replica, "EXISTS " KEY), 1);
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
    lk_close(two);
    lk_close(one);
}

static void nothing_is_left(const char *guard)
{
    lk_client *client = client_of(guard, 2, SHORT_MS), *other = client_of(guard, 0, 0);
    lk_hold hold;
    char message[LK_MESSAGE_MAX];
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_UNAVAILABLE);
    assert_int_equal(redis_do(master, "EXISTS " KEY), 0);
    lk_last_error(client, message, sizeof message);
    assert_string_equal(message, "1 of the 2 replicas asked for have it after 150 ms");
    assert_int_equal(set_acquire(other, KEY, 0, &hold), LK_OK); /* this client needs no replicas */
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(other);
    lk_close(client);
}

TEST_THAT(lock_with_too_few_copies_is_undone_and_unavailable)
{
    with_every_redis_guard(nothing_is_left);
}

TEST_THAT(refusal_by_another_holder_is_a_refusal_whatever_the_replicas_do)
{
    lk_client *client = client_of("redis-token", 2, SHORT_MS);
    lk_client *holder = client_of("redis-token", 0, 0);
    lk_hold hold, refused;
    assert_int_equal(set_acquire(holder, KEY, 0, &hold), LK_OK);
    assert_int_equal(set_acquire(client, KEY, 0, &refused), LK_TIMEOUT);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(holder);
    lk_close(client);
}

/* The wait exceeds the command timeout, but the client keeps the connection. */
TEST_THAT(waiting_for_replicas_is_no_lost_answer)
{
    lk_options options = {
        .replicas = 2, .replicas_ms = 2 * IMPATIENT_MS, .command_timeout_ms = IMPATIENT_MS};
    lk_client *client = set_client("redis-token", master->url, &options);
    lk_hold hold;
    int64_t start_ms = test_now_ms();
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_UNAVAILABLE);
    assert_true(test_now_ms() - start_ms >= 2 * IMPATIENT_MS);
    lk_close(client);
}

struct taker {
    pthread_t thread;
    lk_client *client;
    int number;
    _Atomic pid_t tid; /* 0: it does not run yet */
    lk_status status;
};

static void *take(void *arg)
{
    struct taker *taker = arg;
    char key[32];
    lk_hold hold;
    snprintf(key, sizeof key, "lock:item:%d", taker->number);
    atomic_store(&taker->tid, gettid());
    taker->status = set_acquire(taker->client, key, 0, &hold);
    return NULL;
}

/* For wait_until(): all of them sleep. */
static bool all_sleep(void *arg)
{
    struct taker *taker = arg;
    for (int i = 0; i < THREADS; i++) {
        pid_t tid = atomic_load(&taker[i].tid);
        if (tid == 0 || !process_sleeps(process_of(tid)))
            return false;
    }
    return true;
}

/* The server is stopped until each thread waits for it: one for the answer of the first batch, the
 * others in the queue. */
TEST_THAT(one_wait_serves_all_commands_of_a_batch)
{
    static struct taker taker[THREADS];
    lk_client *client = client_of("redis-token", 2, SHORT_MS);
    lk_hold hold;
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_UNAVAILABLE); /* connects */
    int64_t waits = set_calls_of(master, "wait");
    assert_int_equal(sandbox_signal(master, SIGSTOP), 0);
    for (int i = 0; i < THREADS; i++) {
        taker[i] = (struct taker){.client = client, .number = i};
        assert_int_equal(pthread_create(&taker[i].thread, NULL, take, &taker[i]), 0);
    }
    bool all_wait = wait_until(all_sleep, taker, PATIENT_MS / 2);
    sandbox_signal(master, SIGCONT);
    for (int i = 0; i < THREADS; i++)
        pthread_join(taker[i].thread, NULL);
    assert_true(all_wait);
    assert_in_range(set_calls_of(master, "wait") - waits, 1, 2 + LATE_THREADS_MAX);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(taker[i].status, LK_UNAVAILABLE);
    assert_int_equal(redis_do(master, "EXISTS lock:item:1 lock:item:7 lock:item:31"), 0);
    lk_close(client);
}

TEST_THAT(nobody_waits_for_replicas_unasked)
{
    lk_client *client = client_of("redis-token", 0, 0);
    lk_hold hold;
    int64_t waits = set_calls_of(master, "wait");
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(set_calls_of(master, "wait"), waits);
    lk_close(client);
}

/* The server's min-replicas-to-write refuses before a write. */
TEST_THAT(server_without_enough_replicas_is_unavailable_and_says_why)
{
    struct link link;
    lk_redis_reply reply;
    char message[LK_MESSAGE_MAX];
    assert_int_equal(redis_do(master, "CONFIG SET min-replicas-to-write 2"), 1);
    lk_client *client = client_of("redis-token", 0, 0);
    lk_hold hold;
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_UNAVAILABLE);
    assert_true(link_open(&link, master->url));
    lk_status status = lk_redis_command(link.redis, &reply, "SET", "k", "v");
    assert_int_equal(lk_redis_expect(link.redis, &reply, 0, status), LK_UNAVAILABLE);
    lk_redis_last_error(link.redis, message, sizeof message);
    assert_non_null(strstr(message, "NOREPLICAS Not enough good replicas to write"));
    assert_int_equal(redis_do(master, "CONFIG SET min-replicas-to-write 0"), 1);
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    link_close(&link);
    lk_close(client);
}

TEST_THAT_WITH(guard_without_replicas_refuses_the_option, NULL, NULL)
{
    static const struct {
        const char *guard;
        lk_options options;
        const char *says;
    } rows[] = {
        {"mutex", {.replicas = 1}, "mutex has no replicas"},
        {"redis-token", {.replicas = -1}, "replicas is -1"},
        {"redis-token", {.replicas = 101}, "replicas is 101"},
        {"redis-token", {.replicas = 1, .replicas_ms = -1}, "replicas_ms is -1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lk_client *client;
        lk_error error = {.message = ""};
        assert_int_equal(lk_open(rows[i].guard, master->url, &rows[i].options, &client, &error),
                         LK_INVALID);
        assert_non_null(strstr(error.message, rows[i].says));
    }
}
