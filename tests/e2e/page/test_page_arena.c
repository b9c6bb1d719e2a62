/* The arena on two instances: no fault, a paused holder, a page that is loaded again in mid-run,
 * and the page of sales beside it. */
#include "arena_rig.h"
#include "tests.h"

#include <stdio.h>

static struct browser *const browser = &page.browser;

#define NOTICES(words) "/" words "/.test(document.getElementById('notices').textContent)"

/* What the page says of the fault that is chosen. */
#define STRIKES(words) "/" words "/.test(document.getElementById('strikes').textContent)"

/* Neither the page nor a tile is wider than its place. */
#define NO_OVERFLOW                                                                                \
    "document.documentElement.scrollWidth <= innerWidth && "                                       \
    "[...document.querySelectorAll('.tile')].every(tile => tile.scrollWidth <= tile.clientWidth)"

GROUP_FIXTURE(page_open_serve, page_close);

/* Two instances sell all the time, and neither mutex knows of the other. The leases outlast each
 * holder: redis-set loses when one ends. */
TEST_THAT(without_a_fault_what_excludes_in_one_process_only_oversells)
{
    browser_size(browser, 1280, 900);
    assert_true(arena_run(ARENA_SERVE, "fault=none&buyers=90&stock=60&lease=10000"));
    assert_int_equal(arena_contradictions(ARENA_SERVE), 0);
    assert_true(browser_is(browser, TILE_IS("none", "bad")));
    assert_true(browser_is(browser, TILE_IS("mutex", "bad")));
    assert_true(browser_is(browser, "!(" TILE_IS("redis-token", "bad") ")"));
    assert_true(browser_is(browser, "!(" TILE_IS("redis-set", "bad") ")"));
    assert_true(browser_is(browser,
                           "/OVERSOLD by \\d+/.test(" TILE(
                               "mutex") ".textContent) && "
                                        "/\\d orders\\/s · p50 .+ · p90 [\\d.]+/.test(" TILE(
                                            "mutex") ".textContent)"));
    /* text, not colour alone */
    assert_true(browser_is(browser, "[...document.querySelectorAll('.tile .verdict')].every("
                                    "verdict => /^[✓✗■⊘]/.test(verdict.textContent))"));
    /* all servers are installed where the tests run */
    assert_true(browser_is(browser, "!document.querySelector('#away li')"));
    assert_true(browser_is(browser, NO_OVERFLOW));
    assert_true(page_picture("arena", 1280, 900));
}

/* From 299 answers on there is a p99 to tell. */
TEST_THAT(a_sale_of_many_answers_shows_its_p99)
{
    assert_true(arena_run(ARENA_SERVE, "fault=none&buyers=320&stock=60"));
    assert_true(browser_is(
        browser, "/\\d orders\\/s · p50 .+ · p99 [\\d.]+/.test(" TILE("none") ".textContent)"));
}

/* The holder sleeps beyond its lease, another one writes, and then it writes, too. */
TEST_THAT(a_paused_holder_loses_an_update_unless_there_is_a_fence)
{
    assert_true(arena_run(ARENA_SERVE, "fault=pause&lease=3000&fence=on"));
    assert_int_equal(arena_contradictions(ARENA_SERVE), 0);
    assert_true(browser_is(browser, TILE_IS("mutex", "bad")));
    assert_true(browser_is(browser, TILE_TOLD("redis-token", "held.*another one wrote")));
    assert_true(browser_is(browser, "!(" TILE_IS("redis-token", "bad") ")"));
    assert_true(browser_is(browser, TILE_TOLD("redis-set", "held.*another one wrote")));
    assert_true(browser_is(browser, TILE_TOLD("redis-set", "late write was refused") " || " TILE_IS(
                                        "redis-set", "bad")));
    assert_true(browser_is(browser, TILE_TOLD("sql-row", "not struck")));
    assert_true(browser_is(browser, TILE_TOLD("memcached", "held.*the first goes on")));
    assert_true(browser_is(browser, TILE_TOLD("zk-sequential", "held.*the first goes on")));
    assert_true(browser_is(browser, "!(" TILE_IS("zk-sequential", "bad") ")"));
    assert_true(browser_is(browser, STRIKES("strikes 21 of 23 tiles. Not struck: sql-row, "
                                            "sql-atomic")));
    browser_dark(browser, true);
    page_choose("#lang", "zh");
    assert_true(browser_is(browser, STRIKES("打击 23 场中的 21 场")));
    assert_true(browser_is(browser, "/超卖/.test(" TILE("mutex") ".textContent)"));
    assert_true(page_picture("arena-pause-zh", 390, 844));
    assert_true(browser_is(browser, NO_OVERFLOW));
    browser_dark(browser, false);
    browser_size(browser, 1280, 900);
}

TEST_THAT(a_page_loaded_again_shows_the_run_to_its_end)
{
    assert_true(page_go("/web/arena.html?lang=en&buyers=300&stock=250"));
    page_click("#start");
    assert_true(browser_await(browser, TILE_IS("redis-token", "running"), PAGE_WAIT_MS));
    /* beside it the page of sales shows none of its sales, and starts none */
    assert_true(page_go("/?lang=en&countdown=0"));
    page_click("#start");
    assert_true(browser_await(browser,
                              "/one like it still runs|a sale is running/.test("
                              "document.getElementById('message').textContent)",
                              PAGE_WAIT_MS));
    assert_true(browser_is(browser, "!document.querySelector('.lane')"));
    assert_true(page_go("/web/arena.html?lang=en"));
    assert_true(browser_await(browser, NOTICES("this page did not start"), PAGE_WAIT_MS));
    assert_true(browser_is(browser, "document.getElementById('start').disabled"));
    assert_true(arena_await_end());
    assert_int_equal(arena_contradictions(ARENA_SERVE), 0);
    assert_true(browser_is(browser, NOTICES("has ended")));
}
