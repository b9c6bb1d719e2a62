/* Spinning: how long it lasts, and when it is given up. */
#include "redis_mux_combine.h"
#include "lock_world.h"
#include "tests.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEY "lock:item:1"

enum {
    SHORT_US = 10,
    LONG_US = 10000000,
    IN_VAIN = 8,
    TRY_EVERY = 64,
    MANY = 10000,
    TIMEOUT_MS = 50
};

static _Thread_local int yields;
static void (*meanwhile)(void); /* runs when a thread yields, as another thread would */

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* Replaces the C library's function in lockkit's calls. */
int sched_yield(void)
{
    yields++;
    if (meanwhile != NULL)
        meanwhile();
    return (int)syscall(SYS_sched_yield);
}

/* A wait without an event. Returns whether it spun. */
static bool wait_in_vain(lk_spin *spin)
{
    lk_spinning spinning = lk_spin_begin(spin);
    sleep_us(2 * SHORT_US); /* longer than the whole spin may last */
    bool spun = lk_spin_on(&spinning);
    assert_false(spun && lk_spin_on(&spinning)); /* only one last look is allowed */
    return spun;
}

/* On a busy machine some waits do not count, as other processes ran meanwhile. */
static void give_up(lk_spin *spin)
{
    for (int i = 0; i < MANY && atomic_load(&spin->in_vain) < IN_VAIN; i++)
        assert_true(wait_in_vain(spin));
    assert_int_equal(IN_VAIN, atomic_load(&spin->in_vain));
}

GROUP_FIXTURE(world_open, world_close);

TEST_THAT(without_time_nobody_spins)
{
    for (int64_t most_us = -1; most_us <= 0; most_us++) {
        lk_spin spin = {.most_us = most_us};
        assert_false(lk_spin_pays(&spin));
        lk_spinning spinning = lk_spin_begin(&spin);
        assert_false(lk_spin_on(&spinning));
    }
}

TEST_THAT(what_was_in_vain_again_and_again_is_tried_now_and_then)
{
    lk_spin spin = {.most_us = SHORT_US};
    assert_true(lk_spin_pays(&spin));
    give_up(&spin);
    assert_false(lk_spin_pays(&spin));
    int tried = 0;
    for (int i = 0; i < 10 * TRY_EVERY; i++)
        tried += wait_in_vain(&spin);
    assert_in_range(tried, 9, 11);
}

/* An event before the first look does not count, nor one that came during a sleep. */
TEST_THAT(what_was_found_by_spinning_makes_it_worth_while_again)
{
    lk_spin spin = {.most_us = SHORT_US};
    give_up(&spin);
    spin.most_us = LONG_US;
    bool by_spinning = false;
    for (int i = 0; i < MANY && !by_spinning; i++) {
        lk_spinning spinning = lk_spin_begin(&spin);
        lk_spin_found(&spinning);
        assert_true(atomic_load(&spin.in_vain) >= IN_VAIN);
        by_spinning = lk_spin_on(&spinning) && lk_spins(&spinning);
        lk_spin_found(&spinning);
    }
    assert_int_equal(0, atomic_load(&spin.in_vain));
    assert_true(lk_spin_pays(&spin));
}

static void run_for_long(void)
{
    sleep_us(100);
}

TEST_THAT(where_others_run_nobody_spins_on)
{
    static const int64_t times_us[] = {SHORT_US, LONG_US};
    for (size_t i = 0; i < sizeof times_us / sizeof *times_us; i++) {
        lk_spin spin = {.most_us = times_us[i]};
        lk_spinning spinning = lk_spin_begin(&spin);
        meanwhile = run_for_long;
        yields = 0;
        assert_true(lk_spin_on(&spinning)); /* the other thread may have caused the event */
        assert_false(lk_spin_on(&spinning));
        meanwhile = NULL;
        assert_int_equal(1, yields);
        assert_int_equal(0, atomic_load(&spin.in_vain)); /* the server may still be quick */
    }
}

struct caller {
    pthread_t thread;
    lk_client *client;
    const char *key;
    lk_status status;
    int yields;
};

static void *call(void *arg)
{
    struct caller *caller = arg;
    lk_hold hold;
    yields = 0;
    caller->status = world_acquire(caller->client, caller->key, 0, 0, &hold);
    caller->yields = yields;
    return NULL;
}

/* With a stopped server one thread waits for the answer, the other for that thread. */
TEST_THAT_WITH(a_client_spins_as_it_is_told, world_empty, NULL)
{
    static const int64_t settings[] = {-1, 0, 1000};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        lk_client *client = world_warm(
            world_client("redis-token",
                         &(lk_options){.spin_us = settings[i], .command_timeout_ms = TIMEOUT_MS}));
        struct caller callers[] = {{.client = client, .key = KEY},
                                   {.client = client, .key = "lock:item:2"}};
        world_freeze(true);
        for (int c = 0; c < 2; c++)
            assert_int_equal(0, pthread_create(&callers[c].thread, NULL, call, &callers[c]));
        for (int c = 0; c < 2; c++)
            pthread_join(callers[c].thread, NULL);
        world_freeze(false);
        for (int c = 0; c < 2; c++) {
            assert_true(callers[c].status == LK_UNKNOWN || callers[c].status == LK_UNAVAILABLE);
            assert_int_equal(settings[i] >= 0, callers[c].yields > 0);
        }
        lk_close(client);
    }
}

static struct lk_redis_caller waiting;

static void tell(void)
{
    atomic_store(&waiting.unanswered, 0);
}

/* On a busy machine it may take several tries, as another process may run meanwhile. */
TEST_THAT(what_a_combiner_brings_makes_it_worth_while_again)
{
    lk_redis_mux mux = {.spin = {.most_us = LONG_US, .in_vain = TRY_EVERY}};
    lk_spin *spin = &mux.spin;
    meanwhile = tell;
    for (int i = 0; i < MANY && atomic_load(&spin->in_vain) > 0; i++) {
        waiting = (struct lk_redis_caller){.event = EVENT_FIRST, .unanswered = 1};
        atomic_store(&spin->in_vain, TRY_EVERY);
        assert_false(lk_redis_caller_sleep(&mux, &waiting));
    }
    meanwhile = NULL;
    assert_int_equal(0, atomic_load(&spin->in_vain));
}

static int server_fd;

static void answer(void)
{
    assert_int_equal(5, write(server_fd, "+OK\r\n", 5));
}

TEST_THAT(what_redis_answers_makes_it_worth_while_again)
{
    int fds[2];
    lk_redis_reply reply;
    assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    lk_redis_connection connection = {.fd = fds[0],
                                      .reader =
                                          redisReaderCreateWithFunctions(&lk_redis_reply_functions),
                                      .patience_us = LONG_US,
                                      .spin = {.most_us = LONG_US, .in_vain = TRY_EVERY}};
    server_fd = fds[1];
    meanwhile = answer;
    for (int i = 0; i < MANY && atomic_load(&connection.spin.in_vain) > 0; i++) {
        atomic_store(&connection.spin.in_vain, TRY_EVERY);
        yields = 0;
        assert_int_equal(LK_OK, lk_redis_connection_read(&connection, &reply,
                                                         lk_monotonic_us() + 2 * (int64_t)LONG_US));
        assert_int_equal(1, yields);
    }
    meanwhile = NULL;
    assert_int_equal(0, atomic_load(&connection.spin.in_vain));
    lk_redis_connection_close(&connection);
    close(server_fd);
}

TEST_THAT(a_time_out_of_range_is_refused)
{
    static const int64_t wrong[] = {-2, 1001};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const lk_options options = {.spin_us = wrong[i]};
        lk_client *client;
        lk_error error;
        assert_int_equal(lk_open("redis-token", NULL, &options, &client, &error), LK_INVALID);
        assert_non_null(strstr(error.message, "spin_us"));
    }
}
