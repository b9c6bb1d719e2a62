/* lk_try_each() and lk_release_each() on Redis: many independent locks in the time of one. */
#include "lock_batch.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 600000, LONG_MS = 30000, WATCHED_MS = 6000, FEW = 8, N = LK_EACH_MAX };

static struct lock_batch mine, others;
static const lk_options patient = {.command_timeout_ms = LONG_MS};

static lk_client *open_client(const lk_options *options)
{
    return world_warm(world_client("redis-token", options ? options : &patient));
}

static int64_t server_reads(void)
{
    static const char name[] = "total_reads_processed:";
    char info[8192];
    world_ask_text(info, sizeof info, "INFO stats");
    const char *at = strstr(info, name);
    assert_non_null(at);
    return strtoll(at + strlen(name), NULL, 10);
}

/* -- what it does -------------------------------------------------------------------------------
 */

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(each_grant_stands_with_its_own_token_and_a_rising_fence)
{
    lk_client *client = open_client(NULL);
    uint64_t last_fence[N] = {0};
    assert_true(lk_tries_at_once(client));
    for (int times = 0; times < 3; times++) {
        batch_init(&mine, 0, N, LEASE_MS);
        batch_try(&mine, client);
        assert_true(batch_ok(&mine));
        for (size_t i = 0; i < N; i++) {
            assert_string_equal(mine.hold[i].key, mine.keys[i]);
            assert_true(world_stands(&mine.hold[i]));
            assert_true(mine.hold[i].fence > last_fence[i]);
            assert_int_equal(lk_check(&mine.hold[i], NULL), LK_OK);
            last_fence[i] = mine.hold[i].fence;
        }
        batch_release(&mine);
        assert_true(batch_ok(&mine));
        assert_int_equal(world->leftovers(), 0);
    }
    lk_close(client);
}

/* Commands are written together, so the server reads a batch in a few pieces. */
TEST_THAT(pair_costs_two_commands_and_hardly_a_write)
{
    enum { TIMES = 20 };
    lk_client *client = open_client(NULL);
    lk_stats before = world_stats(client);
    int64_t reads = server_reads();
    batch_init(&mine, 0, N, LEASE_MS);
    for (int times = 0; times < TIMES; times++) {
        batch_try(&mine, client);
        assert_true(batch_ok(&mine));
        batch_release(&mine);
        assert_true(batch_ok(&mine));
    }
    reads = server_reads() - reads;
    lk_stats after = world_stats(client);
    assert_int_equal(after.commands - before.commands, 2 * TIMES * N);
    assert_int_equal(after.attempts - before.attempts, TIMES * N);
    assert_int_equal(after.grants - before.grants, TIMES * N);
    assert_int_equal(after.releases - before.releases, TIMES * N);
    assert_true(reads < 2 * TIMES * 4);
    lk_close(client);
}

TEST_THAT(finished_holds_cost_the_others_no_write)
{
    lk_client *client = open_client(NULL);
    batch_init(&mine, 0, N, LEASE_MS);
    batch_try(&mine, client);
    assert_int_equal(lk_release(&mine.hold[0]), LK_OK);
    int64_t reads = server_reads();
    batch_release(&mine);
    assert_true(server_reads() - reads < N / 2);
    assert_int_equal(batch_count(&mine, LK_OK), N - 1);
    assert_int_equal(mine.statuses[0], LK_LOST);
    lk_close(client);
}

TEST_THAT(held_keys_are_refused_alone_and_stay_as_they_are)
{
    lk_client *client = open_client(NULL), *other = open_client(NULL);
    batch_init(&others, N / 4, N / 2, LEASE_MS);
    batch_try(&others, other);
    assert_true(batch_ok(&others));
    batch_init(&mine, 0, N, LEASE_MS);
    batch_try(&mine, client);
    for (size_t i = 0; i < N; i++) {
        bool held = i >= N / 4 && i < N / 4 + N / 2;
        assert_int_equal(mine.statuses[i], held ? LK_TIMEOUT : LK_OK);
        assert_true(held ? world_stands(&others.hold[i - N / 4]) : world_stands(&mine.hold[i]));
    }
    assert_int_equal(world_stats(client).refusals, N / 2);
    assert_int_equal(world_stats(client).timeouts, N / 2);
    batch_release(&mine); /* refused holds give LOST without a command */
    assert_int_equal(batch_count(&mine, LK_OK), N / 2);
    assert_int_equal(batch_count(&mine, LK_LOST), N / 2);
    for (size_t i = 0; i < others.n; i++)
        assert_true(world_stands(&others.hold[i]));
    batch_release(&others);
    assert_true(batch_ok(&others));
    lk_close(other);
    lk_close(client);
}

TEST_THAT(taken_keys_exclude_others_until_they_are_released)
{
    lk_client *client = open_client(NULL), *other = open_client(NULL);
    lk_hold hold;
    batch_init(&mine, 0, FEW, LEASE_MS);
    batch_try(&mine, client);
    for (size_t i = 0; i < FEW; i++)
        assert_int_equal(world_acquire(other, mine.keys[i], LEASE_MS, 0, &hold), LK_TIMEOUT);
    batch_release(&mine);
    for (size_t i = 0; i < FEW; i++) {
        assert_int_equal(world_acquire(other, mine.keys[i], LEASE_MS, 0, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    lk_close(other);
    lk_close(client);
}

TEST_THAT(key_asked_for_twice_is_granted_once)
{
    lk_client *client = open_client(NULL);
    batch_init(&mine, 0, FEW, LEASE_MS);
    mine.requests[FEW - 1].key = mine.keys[0];
    batch_try(&mine, client);
    assert_int_equal(batch_count(&mine, LK_OK), FEW - 1);
    assert_int_equal(mine.statuses[FEW - 1], LK_TIMEOUT);
    batch_release(&mine);
    assert_int_equal(world->leftovers(), 0);
    lk_close(client);
}

TEST_THAT(bad_requests_are_refused_alone)
{
    lk_client *client = open_client(NULL);
    batch_init(&mine, 0, FEW, LEASE_MS);
    memset(mine.hold, 0xff, sizeof mine.hold);
    mine.requests[1].wait_ms = 1;
    mine.requests[3].key = "{braces}";
    mine.requests[4].mode = LK_SHARED;
    batch_try(&mine, client);
    for (size_t i = 0; i < FEW; i++)
        assert_int_equal(mine.statuses[i], i == 1 || i == 3 ? LK_INVALID
                                           : i == 4         ? LK_UNSUPPORTED
                                                            : LK_OK);
    lk_release_each(mine.holds, FEW, NULL);
    assert_int_equal(world->leftovers(), 0);
    uint64_t releases = world_stats(client).releases;
    lk_release_each(mine.holds, FEW, NULL); /* finished holds */
    assert_int_equal(world_stats(client).releases, releases);
    lk_try_each(client, mine.requests, 0, mine.holds, mine.statuses);
    lk_release_each(mine.holds, 0, NULL);
    lk_close(client);
}

TEST_THAT(more_than_the_bound_are_all_refused)
{
    static lk_hold hold[N + 1];
    lk_hold *holds[N + 1];
    lk_request requests[N + 1];
    lk_status statuses[N + 1];
    lk_client *client = open_client(NULL);
    for (size_t i = 0; i <= N; i++) {
        holds[i] = &hold[i];
        requests[i] = (lk_request){.key = "lock:item:1"};
    }
    lk_try_each(client, requests, N + 1, holds, statuses);
    for (size_t i = 0; i <= N; i++)
        assert_int_equal(statuses[i], LK_INVALID);
    assert_int_equal(world->leftovers(), 0);
    lk_close(client);
}

TEST_THAT(answers_that_are_errors_are_told_to_each)
{
    lk_client *client = open_client(NULL);
    batch_init(&mine, 0, FEW, LEASE_MS);
    world_ask("CONFIG SET maxmemory 1");
    batch_try(&mine, client);
    world_ask("CONFIG SET maxmemory 0");
    assert_int_equal(batch_count(&mine, LK_UNAVAILABLE), FEW);
    assert_int_equal(world->leftovers(), 0);
    lk_close(client);
}

/* -- leases -------------------------------------------------------------------------------------
 */

static bool all_renewed(void *client)
{
    return world_stats(client).renewals >= FEW;
}

TEST_THAT(watchdog_keeps_them_all)
{
    lk_client *client = open_client(&(lk_options){.lease_ms = WATCHED_MS});
    batch_init(&mine, 0, FEW, 0);
    batch_try(&mine, client);
    assert_true(batch_ok(&mine));
    assert_true(wait_until(all_renewed, client, LONG_MS));
    batch_release(&mine);
    assert_true(batch_ok(&mine));
    lk_close(client);
}

TEST_THAT(expired_holds_are_lost_and_free_no_successor)
{
    lk_client *client = open_client(NULL), *other = open_client(NULL);
    batch_init(&mine, 0, FEW, LEASE_MS);
    batch_try(&mine, client);
    assert_true(batch_ok(&mine));
    for (size_t i = 0; i < FEW; i += 2) {
        assert_int_equal(world_ask("PEXPIRE %s 1", mine.keys[i]), 1);
        assert_true(world_frees(mine.keys[i], LONG_MS));
    }
    batch_init(&others, 0, FEW, LEASE_MS);
    batch_try(&others, other);
    batch_release(&mine);
    for (size_t i = 0; i < FEW; i++) {
        assert_int_equal(mine.statuses[i], i % 2 == 0 ? LK_LOST : LK_OK);
        assert_int_equal(others.statuses[i], i % 2 == 0 ? LK_OK : LK_TIMEOUT);
        assert_true(i % 2 == 1 || world_stands(&others.hold[i]));
    }
    batch_release(&others);
    assert_int_equal(world->leftovers(), 0);
    lk_close(other);
    lk_close(client);
}

/* -- other options and guards -------------------------------------------------------------------
 */

TEST_THAT(grants_that_too_few_replicas_have_are_all_undone)
{
    lk_client *client = world_client(
        "redis-token",
        &(lk_options){.command_timeout_ms = LONG_MS, .replicas = 1, .replicas_ms = 10});
    for (int times = 0; times < 2; times++) {
        batch_init(&mine, 0, FEW, LEASE_MS);
        batch_try(&mine, client);
        assert_int_equal(batch_count(&mine, LK_UNAVAILABLE), FEW);
        assert_int_equal(world->leftovers(), 0);
        assert_int_equal(world_stats(client).cleanups, (times + 1) * FEW);
    }
    lk_close(client);
}

TEST_THAT(guards_that_cannot_do_it_at_once_do_it_one_after_the_other)
{
    static const char *const guards[] = {"mutex", "redis-setnx", "redis-reentrant", "redis-fair"};
    for (size_t g = 0; g < sizeof guards / sizeof guards[0]; g++) {
        lk_client *client = world_client(guards[g], &patient);
        assert_int_equal(lk_tries_at_once(client), g == 0); /* sends no command */
        batch_init(&mine, 0, FEW, 0);
        batch_init(&others, 0, FEW + 1, 0);
        batch_try(&mine, client);
        assert_true(batch_ok(&mine));
        batch_try(&others, client);
        assert_int_equal(batch_count(&others, LK_TIMEOUT), FEW);
        assert_int_equal(others.statuses[FEW], LK_OK);
        batch_release(&mine);
        assert_true(batch_ok(&mine));
        batch_release(&others);
        assert_int_equal(batch_count(&others, LK_OK), 1);
        lk_close(client);
        assert_int_equal(world->leftovers(), 0);
        world_ask("FLUSHALL");
    }
}
