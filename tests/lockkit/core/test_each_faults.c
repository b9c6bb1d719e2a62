/* Many locks at once while the server forgets scripts, hangs or goes away, or the connection is
 * cut. */
#include "sandbox_proxy.h"
#include "lateness.h"
#include "lock_batch.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <string.h>

enum { LEASE_MS = 600000, LONG_MS = 30000, TIMEOUT_MS = 300, SLACK_MS = 3000 };
enum { FEW = 8, N = LK_EACH_MAX };

static struct lock_batch mine;
static struct proxy *proxy;

/* A client behind a new proxy. */
static lk_client *open_client(int64_t timeout_ms)
{
    proxy = proxy_open(world->port());
    assert_non_null(proxy);
    return world_warm(world_client_at("redis-token", proxy_port(proxy),
                                      &(lk_options){.command_timeout_ms = timeout_ms}));
}

static void close_client(lk_client *client)
{
    lk_close(client);
    proxy_close(proxy);
}

/* -- the script is not there --------------------------------------------------------------------
 */

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(forgotten_scripts_are_sent_again_together)
{
    lk_client *client = open_client(LONG_MS);
    lk_stats before = world_stats(client);
    batch_init(&mine, 0, N, LEASE_MS);
    world_ask("SCRIPT FLUSH");
    batch_try(&mine, client);
    assert_true(batch_ok(&mine));
    for (size_t i = 0; i < N; i++)
        assert_true(world_stands(&mine.hold[i]));
    world_ask("SCRIPT FLUSH");
    batch_release(&mine);
    assert_true(batch_ok(&mine));
    assert_int_equal(world->leftovers(), 0);
    lk_stats after = world_stats(client);
    assert_int_equal(after.commands - before.commands, 4 * N);
    assert_int_equal(after.cleanups, before.cleanups);
    close_client(client);
}

TEST_THAT(first_call_of_a_client_learns_the_scripts)
{
    lk_client *client = world_client("redis-token", &(lk_options){.command_timeout_ms = LONG_MS});
    batch_init(&mine, 0, N, LEASE_MS);
    batch_try(&mine, client);
    assert_true(batch_ok(&mine));
    batch_release(&mine);
    assert_true(batch_ok(&mine));
    assert_int_equal(world_stats(client).commands, 2 * N + 2);
    lk_close(client);
}

/* -- the connection is cut ----------------------------------------------------------------------
 */

/* All tries were executed but not answered: each is unknown and undone. */
TEST_THAT(lost_answers_leave_no_orphans)
{
    lk_client *client = open_client(LONG_MS);
    batch_init(&mine, 0, FEW, LEASE_MS);
    proxy_lose_answer(proxy, "lock:item:0", 1, PROXY_CUT);
    batch_try(&mine, client);
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(batch_count(&mine, LK_UNKNOWN), FEW);
    assert_int_equal(world_stats(client).cleanups, FEW);
    assert_int_equal(world_ask("GET {lock:item:0}:fence"), 1); /* the try was executed */
    assert_int_equal(world->leftovers(), 0);
    batch_try(&mine, client);
    assert_true(batch_ok(&mine));
    batch_release(&mine);
    close_client(client);
}

/* Some answers arrive: these locks are granted and kept. */
TEST_THAT(cut_in_the_middle_keeps_what_was_answered_and_undoes_the_rest)
{
    lk_client *client = open_client(LONG_MS);
    batch_init(&mine, 0, FEW, LEASE_MS);
    proxy_lose_answer(proxy, "lock:item:0", 1, PROXY_HALF);
    batch_try(&mine, client);
    size_t granted = batch_count(&mine, LK_OK);
    assert_in_range(granted, 1, FEW - 1);
    assert_int_equal(batch_count(&mine, LK_UNKNOWN), FEW - granted);
    for (size_t i = 0; i < FEW; i++) {
        assert_int_equal(mine.statuses[i], i < granted ? LK_OK : LK_UNKNOWN);
        assert_int_equal(world_stands(&mine.hold[i]), i < granted);
        assert_int_equal(world->exists(mine.keys[i]), i < granted);
    }
    batch_release(&mine);
    assert_int_equal(batch_count(&mine, LK_OK), granted);
    assert_int_equal(batch_count(&mine, LK_LOST), FEW - granted);
    assert_int_equal(world->leftovers(), 0);
    close_client(client);
}

/* The requests are lost and not executed. */
TEST_THAT(lost_requests_are_unknown_and_leave_nothing)
{
    lk_client *client = open_client(LONG_MS);
    batch_init(&mine, 0, FEW, LEASE_MS);
    proxy_lose_request(proxy, "lock:item:0", 1);
    batch_try(&mine, client);
    assert_int_equal(batch_count(&mine, LK_UNKNOWN), FEW);
    assert_int_equal(world_stats(client).cleanups, FEW);
    assert_int_equal(world->leftovers(), 0);
    close_client(client);
}

/* A lock freed in the first round is not ours in the second: only a success is certain. */
TEST_THAT(releases_whose_answers_are_lost_are_repeated)
{
    lk_client *client = open_client(LONG_MS);
    batch_init(&mine, 0, FEW, LEASE_MS);
    batch_try(&mine, client);
    proxy_lose_answer(proxy, "lock:item:0", 1, PROXY_CUT);
    uint64_t before = world_stats(client).commands;
    batch_release(&mine);
    assert_int_equal(batch_count(&mine, LK_UNKNOWN), FEW);
    assert_int_equal(world_stats(client).commands - before, 2 * FEW);
    assert_int_equal(world->leftovers(), 0);
    batch_try(&mine, client);
    assert_true(batch_ok(&mine));
    proxy_lose_request(proxy, "lock:item:0", 1);
    batch_release(&mine);
    assert_true(batch_ok(&mine)); /* the first round was not executed */
    assert_int_equal(world->leftovers(), 0);
    close_client(client);
}

/* -- the server is away, or hangs ---------------------------------------------------------------
 */

TEST_THAT(server_that_is_away_gives_unavailable_and_nothing_was_done)
{
    lk_client *client = world_client("redis-token", &(lk_options){.command_timeout_ms = LONG_MS});
    batch_init(&mine, 0, N, LEASE_MS);
    world_kill();
    batch_try(&mine, client); /* the client has not loaded its scripts */
    assert_int_equal(batch_count(&mine, LK_UNAVAILABLE), N);
    world_restart();
    batch_try(&mine, client);
    assert_true(batch_ok(&mine));
    world_kill();
    batch_release(&mine);
    assert_int_equal(batch_count(&mine, LK_UNAVAILABLE), N);
    batch_try(&mine, client);
    assert_int_equal(batch_count(&mine, LK_UNAVAILABLE), N);
    assert_int_equal(world_stats(client).cleanups, 0);
    world_restart();
    lk_close(client);
}

TEST_THAT(server_that_hangs_costs_a_timeout_and_not_one_each)
{
    lk_client *client = open_client(TIMEOUT_MS);
    batch_init(&mine, 0, N, LEASE_MS);
    world_freeze(true);
    int64_t start_ms = test_now_ms();
    batch_try(&mine, client);
    int64_t took_ms = test_now_ms() - start_ms;
    world_freeze(false);
    assert_int_equal(batch_count(&mine, LK_UNKNOWN), N);
    assert_int_equal(world_stats(client).cleanups, N);
    assert_true(took_ms >= TIMEOUT_MS);
    assert_true(took_at_most(took_ms, 3 * TIMEOUT_MS + SLACK_MS)); /* the clean-up connects again */
    close_client(client);
}

/* Without an answer to its login a client sends no command, so no outcome is unknown, for many
 * locks and for one. */
TEST_THAT(client_that_meets_a_server_that_hangs_has_done_nothing)
{
    for (size_t n = N; n > 0; n /= N) {
        lk_client *client =
            world_client("redis-token", &(lk_options){.command_timeout_ms = TIMEOUT_MS});
        batch_init(&mine, 0, n, LEASE_MS);
        world_freeze(true);
        batch_try(&mine, client);
        world_freeze(false);
        assert_int_equal(batch_count(&mine, LK_UNAVAILABLE), n);
        assert_int_equal(world_stats(client).cleanups, 0);
        assert_int_equal(world_stats(client).commands, 0);
        assert_int_equal(world->leftovers(), 0);
        lk_close(client);
    }
}

TEST_THAT(releases_before_a_server_that_hangs_are_bounded_too)
{
    lk_client *client = open_client(TIMEOUT_MS);
    batch_init(&mine, 0, N, LEASE_MS);
    batch_try(&mine, client);
    for (int i = 0; i < 10 && !batch_ok(&mine); i++) { /* on a busy machine */
        batch_release(&mine);
        batch_try(&mine, client);
    }
    assert_true(batch_ok(&mine));
    world_freeze(true);
    int64_t start_ms = test_now_ms();
    batch_release(&mine);
    int64_t took_ms = test_now_ms() - start_ms;
    world_freeze(false);
    assert_int_equal(batch_count(&mine, LK_UNKNOWN), N);
    assert_true(took_at_most(took_ms, 2 * TIMEOUT_MS + SLACK_MS));
    close_client(client);
}
