/* The arena on two instances: the locks deleted, Redis frozen, an instance killed. */
#include "arena_rig.h"
#include "lateness.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>

static struct browser *const browser = &page.browser;

/* Where threads run this late, a request waits longer for the store than the service lets it. */
enum { LATE_MS = 500 };

GROUP_FIXTURE(page_open_serve, page_close);

TEST_THAT(a_deleted_lock_lets_two_in)
{
    assert_true(arena_run(ARENA_SERVE, "fault=flush&buyers=90&stock=60"));
    assert_int_equal(arena_contradictions(ARENA_SERVE), 0);
    assert_true(browser_is(browser, TILE_TOLD("redis-setnx", "held.*deleted")));
    assert_true(browser_is(browser, "!(" TILE_IS("redis-token", "bad") ")"));
    assert_true(browser_is(browser, TILE_TOLD("mutex", "no lock on a server")));
    assert_true(browser_is(browser, TILE_TOLD("memcached", "held.*was deleted")));
    assert_true(browser_is(browser, TILE_TOLD("zk-ephemeral", "held.*was deleted")));
}

/* What asks it cannot serve, or serves later; what does not ask it is not struck. */
TEST_THAT(a_frozen_redis_refuses)
{
    const int64_t start_ms = test_now_ms();
    assert_true(arena_run(ARENA_SERVE, "fault=cut&buyers=300&stock=250"));
    assert_int_equal(arena_contradictions(ARENA_SERVE), 0);
    assert_true(browser_is(browser, TILE_TOLD("redis-token", "frozen.*answers again")));
    assert_true(browser_is(browser, TILE_TOLD("sql-atomic", "does not ask Redis")));
    assert_true(browser_is(browser, TILE_IS("sql-atomic", "good")) ||
                (browser_is(browser, TILE_IS("sql-atomic", "refused")) &&
                 lateness_since(start_ms) >= LATE_MS));
    assert_true(browser_is(browser, TILE_TOLD("memcached", "does not ask Redis")));
    assert_true(browser_is(browser, TILE_TOLD("zk-readwrite", "does not ask Redis")));
    assert_true(browser_is(browser, "[...document.querySelectorAll('[data-guard^=redis-]')].some("
                                    "tile => /refused|stuck/.test(tile.dataset.state))"));
}

TEST_THAT(a_killed_holder_without_a_lease_leaves_a_lock_for_ever)
{
    assert_true(arena_run(ARENA_SERVE, "fault=kill&buyers=90&stock=60"));
    assert_int_equal(arena_contradictions(ARENA_SERVE), 0);
    assert_true(browser_is(browser, TILE_TOLD("redis-setnx", "held.*kill -9.*got no lock")));
    assert_true(browser_is(browser, TILE_IS("redis-setnx", "stuck")));
    assert_true(browser_is(browser, TILE_IS("sql-unique-forever", "stuck")));
    assert_true(browser_is(browser, TILE_IS("redis-token", "good")));
    assert_true(browser_is(browser, TILE_TOLD("redis-token", "was served in|sold out")));
    /* its session ends, and with it the lock */
    assert_true(browser_is(browser, TILE_IS("zk-sequential", "good")));
    assert_true(browser_is(browser, TILE_TOLD("zk-sequential", "was served in|sold out")));
    /* a colour of its own */
    assert_true(browser_is(
        browser, "getComputedStyle(" TILE("redis-setnx") ").backgroundColor !== "
                                                         "getComputedStyle(" TILE(
                                                             "redis-token") ").backgroundColor"));
    assert_true(page_picture("arena-kill", 1280, 900));
}
