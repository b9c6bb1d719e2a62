/*
 * Faults around a Redis guard. The server stops, dies, restarts or is no Redis. The holder outlives
 * its lease, dies or loses its key. Every call returns in time with the right status.
 */
#include "holder.h"
#include "impostor.h"
#include "lateness.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define KEY "lock:item:1"

enum { TIMEOUT_MS = 1000, LONG_MS = 20000, SLACK_MS = 5000, LEASE_MS = 4500 };

static const char *const guards[] = {"redis-setnx",  "redis-setnx-expire", "redis-set",
                                     "redis-getset", "redis-token",        "redis-reentrant",
                                     "redis-fair",   "redis-readwrite",    "redis-semaphore"};
static const char *const renewed[] = {"redis-token", "redis-reentrant", "redis-fair",
                                      "redis-readwrite", "redis-semaphore"};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const lk_options impatient = {.command_timeout_ms = TIMEOUT_MS};

/* -- the server ---------------------------------------------------------------------------------
 */

/* One acquisition that cannot succeed; returns its status. */
static lk_status try_in_vain(lk_client *client, int64_t wait_ms)
{
    lk_hold hold;
    int64_t start_ms = test_now_ms();
    lk_status status = world_acquire(client, KEY, 0, wait_ms, &hold);
    assert_int_not_equal(status, LK_OK);
    /* wait_ms, one command, one clean-up */
    assert_true(ended_within(start_ms, wait_ms + 2 * TIMEOUT_MS + SLACK_MS));
    return status;
}

/* After a timeout the client connects again. It sends nothing before its login is answered. */
static bool is_unknown_or_unsent(lk_status status)
{
    return status == LK_UNKNOWN || status == LK_UNAVAILABLE;
}

/* On a busy machine connecting or a command may take longer than the timeout. The lock of a try
 * whose answer was lost may stand until its lease ends. */
static void acquire_soon(lk_client *client, const char *key, lk_hold *ret_hold)
{
    int64_t until_ms = test_now_ms() + 2 * LONG_MS;
    lk_status status;
    do
        status = world_acquire(client, key, LONG_MS, 0, ret_hold);
    while (status != LK_OK && test_now_ms() < until_ms);
    assert_int_equal(status, LK_OK);
}

static bool is_pinged(void *client)
{
    return lk_ping(client) == LK_OK;
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(every_guard_is_bounded_while_the_server_stands_still)
{
    for (size_t i = 0; i < COUNT(guards); i++) {
        lk_hold hold;
        lk_client *client = world_warm(world_client(guards[i], &impatient));
        acquire_soon(client, "lock:warm", &hold);
        assert_int_equal(sandbox_signal(world_redis, SIGSTOP), 0);
        assert_int_equal(try_in_vain(client, 0), LK_UNKNOWN);
        assert_true(is_unknown_or_unsent(try_in_vain(client, 300)));
        int64_t start_ms = test_now_ms();
        assert_true(is_unknown_or_unsent(lk_release(&hold)));
        assert_true(ended_within(start_ms, 2 * TIMEOUT_MS + SLACK_MS));
        assert_int_equal(sandbox_signal(world_redis, SIGCONT), 0);
        assert_true(wait_until(is_pinged, client, LONG_MS));
        lk_close(client);
        world_ask("FLUSHALL");
    }
}

/* On a busy machine a command may take longer than the timeout. */
static bool is_served(void *client)
{
    lk_hold hold;
    return world_acquire(client, KEY, 0, 0, &hold) == LK_OK && lk_release(&hold) == LK_OK;
}

TEST_THAT(every_guard_says_unavailable_of_a_dead_server_and_works_when_it_is_back)
{
    lk_client *clients[COUNT(guards)];
    lk_hold holds[COUNT(guards)];
    for (size_t i = 0; i < COUNT(guards); i++) {
        char key[32];
        snprintf(key, sizeof key, "lock:item:%zu", 10 + i);
        clients[i] = world_client(guards[i], &impatient);
        acquire_soon(clients[i], key, &holds[i]);
    }
    assert_true(WIFSIGNALED(sandbox_signal(world_redis, SIGKILL)));
    for (size_t i = 0; i < COUNT(guards); i++) {
        int64_t start_ms = test_now_ms();
        assert_int_equal(try_in_vain(clients[i], LONG_MS), LK_UNAVAILABLE);
        assert_int_equal(lk_release(&holds[i]), LK_UNAVAILABLE);
        assert_int_equal(lk_ping(clients[i]), LK_UNAVAILABLE);
        assert_true(ended_within(start_ms, SLACK_MS)); /* at once, whatever wait_ms is */
    }
    assert_int_equal(sandbox_restart(world_redis), 0);
    for (size_t i = 0; i < COUNT(guards); i++) {
        assert_true(wait_until(is_served, clients[i], LONG_MS));
        lk_close(clients[i]);
    }
}

/* Waiters, by message or by polling, are served after the server restarts empty. */
TEST_THAT(waiters_survive_a_restart_of_the_server)
{
    for (size_t i = 0; i < COUNT(guards); i++) {
        struct hooked hooked;
        lk_hold hold;
        lk_client *holder = world_client(guards[i], &world_patient);
        lk_client *client = world_client(
            guards[i], &(lk_options){.command_timeout_ms = TIMEOUT_MS, .env = hook(&hooked)});
        struct asker waiter = {.client = client, .key = KEY, .wait_ms = LONG_MS};
        assert_int_equal(world_acquire(holder, KEY, LONG_MS, 0, &hold), LK_OK);
        asker_start(&waiter);
        assert_true(wait_until(refused_twice, &hooked, LONG_MS));
        assert_true(WIFSIGNALED(sandbox_signal(world_redis, SIGKILL)));
        assert_int_equal(sandbox_restart(world_redis), 0);
        if (asker_join(&waiter) != LK_OK)
            fail_msg("%s: %s", guards[i], lk_status_text(waiter.status));
        assert_true(
            took_at_most(waiter.took_ms, LONG_MS / 2)); /* before the old holder's lease ends */
        lk_release(&hold);
        lk_release(&waiter.hold);
        lk_close(client);
        lk_close(holder);
        world_ask("FLUSHALL");
    }
}

static int log_in_again(void **state)
{
    (void)state;
    return setenv("LOCKKIT_REDIS_AUTH", sandbox_password(), 1);
}

/* Without a login, so that the first question is a command. */
TEST_THAT_WITH(every_guard_is_bounded_before_something_that_is_not_redis, world_empty, log_in_again)
{
    unsetenv("LOCKKIT_REDIS_AUTH");
    static const enum impostor_manner manners[] = {IMPOSTOR_GARBAGE, IMPOSTOR_BAD_TYPE,
                                                   IMPOSTOR_HUGE,    IMPOSTOR_ENDLESS,
                                                   IMPOSTOR_SILENT,  IMPOSTOR_HANGS_UP};
    for (size_t m = 0; m < COUNT(manners); m++)
        for (size_t i = 0; i < COUNT(guards); i++) {
            int port = sandbox_free_port();
            struct impostor *impostor = impostor_open(port, manners[m]);
            assert_non_null(impostor);
            lk_client *client = world_client_at(guards[i], port, &impatient);
            lk_status status = try_in_vain(client, 0);
            assert_true(status == LK_PROTOCOL || status == LK_UNKNOWN || status == LK_UNAVAILABLE);
            if (manners[m] <= IMPOSTOR_BAD_TYPE)
                assert_int_equal(status, LK_PROTOCOL);
            assert_int_not_equal(lk_ping(client), LK_OK);
            lk_close(client);
            assert_true(impostor_close(impostor) > 0);
        }
}

/* -- the holder: each guard that renews -----------------------------------------------------------
 */

struct loss {
    atomic_bool told;
    lk_loss cause;
    int64_t at_ms;
};

static void note_loss(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct loss *loss = arg;
    (void)hold;
    loss->cause = cause;
    loss->at_ms = test_now_ms();
    atomic_store(&loss->told, true);
}

/* Each guard has its own key, so that all can be tested at once. */
static const char *key_of(size_t i)
{
    static const char *const keys[] = {"lock:item:1", "lock:item:2", "lock:item:3", "lock:item:4",
                                       "lock:item:5"};
    return keys[i];
}

static bool three_leases_are_over(void *start_ms)
{
    return test_now_ms() - *(int64_t *)start_ms > 3 * LEASE_MS;
}

TEST_THAT(section_of_three_leases_keeps_its_lock)
{
    lk_client *clients[COUNT(renewed)];
    lk_hold holds[COUNT(renewed)], second;
    int64_t start_ms = test_now_ms(), left_ms;
    for (size_t i = 0; i < COUNT(renewed); i++) {
        clients[i] = world_client(renewed[i], &(lk_options){.lease_ms = LEASE_MS});
        assert_int_equal(world_acquire(clients[i], key_of(i), 0, 0, &holds[i]), LK_OK);
    }
    assert_true(wait_until(three_leases_are_over, &start_ms, LONG_MS));
    for (size_t i = 0; i < COUNT(renewed); i++) {
        lk_client *other = world_client(renewed[i], NULL);
        assert_int_equal(world_acquire(other, key_of(i), 0, 0, &second), LK_TIMEOUT);
        assert_int_equal(lk_check(&holds[i], &left_ms), LK_OK);
        assert_true(left_ms > 0);
        assert_int_equal(lk_release(&holds[i]), LK_OK);
        assert_int_equal(world_acquire(other, key_of(i), 0, 0, &second), LK_OK);
        assert_int_equal(lk_release(&second), LK_OK);
        lk_close(other);
        lk_close(clients[i]);
    }
}

/* A killed holder renews no more. */
TEST_THAT(killed_holder_is_succeeded_within_one_lease)
{
    struct holder holders[COUNT(renewed)];
    lk_client *clients[COUNT(renewed)];
    struct asker successors[COUNT(renewed)];
    lk_hold hold;
    for (size_t i = 0; i < COUNT(renewed); i++) {
        struct holder_plan plan = {.guard = renewed[i],
                                   .endpoints = world_redis->url,
                                   .key = key_of(i),
                                   .default_lease_ms = LEASE_MS};
        assert_true(holder_start(&holders[i], &plan));
        assert_true(holder_says(&holders[i], "held"));
        clients[i] = world_client(renewed[i], NULL);
    }
    /* live holders keep their locks for longer than a lease */
    assert_int_equal(world_acquire(clients[0], key_of(0), 0, 2 * LEASE_MS, &hold), LK_TIMEOUT);
    for (size_t i = 0; i < COUNT(renewed); i++)
        assert_int_equal(world_acquire(clients[i], key_of(i), 0, 0, &hold), LK_TIMEOUT);
    for (size_t i = 0; i < COUNT(renewed); i++)
        holder_kill(&holders[i]);
    for (size_t i = 0; i < COUNT(renewed); i++) {
        successors[i] = (struct asker){.client = clients[i], .key = key_of(i), .wait_ms = LONG_MS};
        asker_start(&successors[i]);
    }
    for (size_t i = 0; i < COUNT(renewed); i++) {
        assert_int_equal(asker_join(&successors[i]), LK_OK);
        assert_true(took_at_most(successors[i].took_ms, LEASE_MS + SLACK_MS));
        assert_int_equal(lk_release(&successors[i].hold), LK_OK);
        lk_close(clients[i]);
    }
}

TEST_THAT(key_deleted_under_its_holder_is_told_within_a_third_of_the_lease)
{
    enum { THIRD_MS = 1000 };
    lk_client *clients[COUNT(renewed)];
    lk_hold holds[COUNT(renewed)];
    struct loss losses[COUNT(renewed)];
    for (size_t i = 0; i < COUNT(renewed); i++) {
        losses[i] = (struct loss){.told = false};
        lk_request request = {.key = key_of(i), .on_lost = note_loss, .on_lost_arg = &losses[i]};
        clients[i] = world_client(renewed[i], &(lk_options){.lease_ms = 3 * THIRD_MS});
        assert_int_equal(lk_acquire(clients[i], &request, &holds[i]), LK_OK);
    }
    for (size_t i = 0; i < COUNT(renewed); i++)
        assert_int_equal(world_ask("DEL %s", key_of(i)), 1);
    int64_t start_ms = test_now_ms();
    for (size_t i = 0; i < COUNT(renewed); i++) {
        assert_true(wait_until(is_set, &losses[i].told, LONG_MS));
        assert_int_equal(losses[i].cause, LK_LOSS_DELETED);
        assert_true(took_at_most(losses[i].at_ms - start_ms, THIRD_MS + SLACK_MS));
        assert_int_equal(lk_check(&holds[i], NULL), LK_LOST);
        assert_int_equal(lk_release(&holds[i]), LK_LOST);
        lk_close(clients[i]);
    }
}

/* The server is stopped for longer than the lease. */
TEST_THAT(lease_that_cannot_be_renewed_is_told_lost_when_it_ends)
{
    for (size_t i = 0; i < COUNT(renewed); i++) {
        lk_client *client = world_warm(world_client(
            renewed[i], &(lk_options){.lease_ms = LEASE_MS, .command_timeout_ms = 100}));
        struct loss loss = {.told = false};
        lk_request request = {.key = KEY, .on_lost = note_loss, .on_lost_arg = &loss};
        lk_hold hold;
        int64_t start_ms = test_now_ms();
        assert_int_equal(lk_acquire(client, &request, &hold), LK_OK);
        assert_int_equal(sandbox_signal(world_redis, SIGSTOP), 0);
        assert_true(wait_until(is_set, &loss.told, LONG_MS));
        assert_int_equal(sandbox_signal(world_redis, SIGCONT), 0);
        assert_int_equal(loss.cause, LK_LOSS_EXPIRED);
        assert_true(took_at_most(loss.at_ms - start_ms, 2 * LEASE_MS + SLACK_MS));
        assert_int_equal(lk_check(&hold, NULL), LK_LOST);
        lk_release(&hold);
        lk_close(client);
        world_ask("FLUSHALL");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    return tests_run();
}
