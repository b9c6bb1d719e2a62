/* Step mode of the live page in a real browser: the last piece, sold by hand; and all orders of two
 * requests tried by the page itself. All of it twice: with one service that has the store alone,
 * and with the one that `loadgen serve` starts, whose store another instance shares. */
#include "steps_rig.h"
#include "tests.h"

#include <stdio.h>

enum { SEARCH_MS = 120000 };

static struct browser *const browser = &page.browser;

/* -- the last piece ------------------------------------------------------------------------------
 */

TEST_GROUP("alone", page_open_lab, page_close);
TEST_GROUP("loadgen serve", page_open_serve, page_close);

TEST_THAT(without_a_lock_two_buy_the_last_piece)
{
    GO("ex=last-piece&lang=en");
    MOVE("A", "decided");
    MOVE("B", "decided");
    WORLD("value", "1");
    MOVES("A", "committed", "accepted");
    WORLD("value", "0");
    MOVES("B", "committed", "accepted");
    WORLD("value", "0");
    VERDICT("bad", "Oversold by 1: the accepted orders leave −1, the row says 0");
    VERDICT("bad", "both sold it");
    assert_true(page_picture("steps-last-piece", 1280, 720));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(under_a_lock_the_second_finds_it_sold_and_cannot_try_again)
{
    GO("ex=last-piece-locked&lang=en");
    MOVE("A", "decided");
    WORLD("holder", "A");
    browser_type(browser, "b");
    STATE("B", "waiting");
    MOVES("A", "committed", "accepted");
    STATE("B", "held");
    MOVES("B", "committed", "refused");
    assert_true(page_picture("steps-sold-out", 1280, 720));
    assert_true(browser_is(browser, "/writes that it is refused/.test(document.getElementById("
                                    "'log').textContent) && document.querySelector("
                                    "'[data-name=B] [data-is=wrote]').textContent === '–'"));
    VERDICT("good", "Nothing oversold: 0");
    assert_true(browser_is(browser, "/sold out/.test(document.querySelector('[data-name=B] .where')"
                                    ".textContent) && "
                                    "document.querySelector('[data-name=B] .move').disabled"));
    browser_errors(browser); /* says that B was refused */
}

/* -- all orders ----------------------------------------------------------------------------------
 */

/* Searches to its end, which must be of this state. */
static void find(const char *query, bool may_vanish, const char *state)
{
    char ended[300];
    GO(query);
    if (may_vanish)
        page_click("#mayVanish");
    page_click("#find");
    snprintf(ended, sizeof ended,
             "/[✓✗]/.test(document.getElementById('found').textContent) || "
             "!document.getElementById('find').disabled");
    assert_true(browser_await(browser, ended, SEARCH_MS));
    snprintf(ended, sizeof ended, "document.getElementById('found').dataset.state === '%s'", state);
    assert_true(browser_is(browser, ended));
}

TEST_THAT(the_page_finds_a_schedule_that_loses_money)
{
    find("ex=lost-update&lang=en", false, "bad");
    assert_true(browser_is(browser, "document.getElementById('found').textContent.includes("
                                    "'instead of 500')"));
    /* both read 1,000 before the first of them wrote */
    assert_true(browser_is(browser,
                           "(() => { const lines = [...document.querySelectorAll('#schedule li')]"
                           ".map(line => line.textContent);"
                           "const reads = lines.map(line => /reads 1,000/.test(line)),"
                           "write = lines.findIndex(line => /writes/.test(line));"
                           "return reads.filter(x => x).length === 2 && "
                           "reads.lastIndexOf(true) < write; })()"));
    assert_int_equal(browser_errors(browser), 0);
}

/* After the one above. */
TEST_THAT(the_schedule_is_drawn_in_the_tree_of_all_that_were_tried_and_plays)
{
    assert_true(
        browser_await(browser, "document.querySelector('#replay .stage') !== null", PAGE_WAIT_MS));
    assert_true(browser_is(browser,
                           "(() => { const n = document.querySelectorAll('#replay .leaf').length;"
                           "return n > 1 && document.getElementById('found').textContent.includes("
                           "`in order ${n} `) && document.querySelectorAll('#replay details li')"
                           ".length === n; })()"));
    assert_true(browser_is(browser, "document.querySelectorAll('#replay .leaf.loses').length === 1 "
                                    "&& document.querySelectorAll('#replay .edge.on').length === "
                                    "document.querySelector('#replay .leaf.loses').dataset.moves"
                                    ".length"));
    json_decref(browser_run(browser, "document.querySelector('#replay .trace').focus();"));
    browser_type(browser, "\ue010"); /* End */
    assert_true(browser_is(browser, "document.querySelector('#replay .row .value').textContent === "
                                    "'700' || document.querySelector('#replay .row .value')"
                                    ".textContent === '800'"));
    json_decref(browser_run(browser, "document.querySelector('#replay').scrollIntoView();"));
    assert_true(page_picture("steps-tree", 1280, 720));
    assert_true(page_picture("steps-tree-phone", 390, 844));
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    browser_size(browser, 1280, 720);
    assert_true(browser_is(browser,
                           "[...document.querySelectorAll('#replay .told')].some((line) => "
                           "/has written/.test(line.textContent))"));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(the_page_tries_all_orders_under_a_lock_and_none_loses)
{
    find("ex=locked&lang=en", false, "good");
    /* one after the other, and the other one asks before, or at one of three points of the first */
    assert_true(browser_is(browser, "/all 6 orders.* 4 times/.test("
                                    "document.getElementById('found').textContent)"));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(the_page_finds_a_schedule_that_oversells)
{
    find("ex=last-piece&lang=en", false, "bad");
    assert_true(browser_is(browser, "document.getElementById('found').textContent.includes("
                                    "'oversells by 1: 0 left instead of −1')"));
    browser_errors(browser); /* says that some of them were refused */
}

TEST_THAT(the_page_tries_all_orders_for_the_last_piece_under_a_lock)
{
    find("ex=last-piece-locked&lang=en", false, "good");
    assert_true(browser_is(browser, "/all 6 orders.*none oversells.* 4 times/.test("
                                    "document.getElementById('found').textContent)"));
    browser_errors(browser); /* says that the second was refused each time */
}

TEST_THAT(a_lock_that_vanishes_loses_money_without_a_fence)
{
    find("ex=locked&fence=off&lang=en", true, "bad");
    assert_true(browser_is(browser, "[...document.querySelectorAll('#schedule li')].some("
                                    "line => /is deleted/.test(line.textContent))"));
    assert_int_equal(browser_errors(browser), 0);
}
