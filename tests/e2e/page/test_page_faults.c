/* Sales on the live page in which something goes wrong on purpose. */
#include "page_rig.h"
#include "tests.h"

#include <stdio.h>

static struct browser *const browser = &page.browser;

/* The same twice: under a fence, and before that without. */
static void struck_sale(const char *fault, const char *watchdog)
{
    char path[300];
    snprintf(path, sizeof path,
             "/?a=redis-token&a_lease=3000&a_watchdog=%s&a_fence=off&b=redis-token&b_lease=3000"
             "&b_watchdog=%s&b_fence=on&buyers=400&stock=100&countdown=0&lang=en&fault=%s",
             watchdog, watchdog, fault);
    assert_true(page_go(path));
    page_click("#start");
    assert_true(page_sold(ENDED));
    assert_true(page_told(0, INTERRUPTED));
    assert_true(page_told(1, INTERRUPTED));
    assert_true(page_told(0, "Lost updates in the ledger: \\d"));
    assert_true(page_told(0, "It wrote"));
    assert_true(
        page_told(1, "late write was refused: fence …(\\d+) < …\\d+.*no lost update: of the two"));
    assert_int_equal(browser_number(browser, PANE(1) ".querySelectorAll('.lane.refused').length"),
                     1);
    assert_true(browser_is(browser, "/⊘ fence …\\d+ < …\\d+/.test(" PANE(
                                        1) ".querySelector('.lane.refused').textContent)"));
    /* told as drawn */
    assert_true(browser_is(
        browser, "(([told, drawn]) => told[0] === drawn[0])(['.told', '.lane.refused'].map("
                 "name => " PANE(1) ".querySelector(name).textContent.match(/…\\d+ < …\\d+/)))"));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'bad'"));
    assert_true(browser_number(browser, FIGURE(0, "lost")) > 0);
    assert_true(browser_is(browser, PANE(1) ".dataset.state === 'good'"));
    assert_int_equal(browser_errors(browser), 0);
}

GROUP_FIXTURE(page_open_demo, page_close);

TEST_THAT(a_holder_paused_beyond_its_lease_costs_a_sale_unless_fenced)
{
    struck_sale("pause", "off");
    /* What is left of the lease of 3 s, or that a page which looked later has found none. */
    assert_true(
        page_told(0, "lease has [\\d,]+ ms left|\\b([3-9]|\\d\\d+)\\.\\d s\\s+There is no lock"));
    assert_true(page_picture("paused", 1280, 720));
}

/* The watchdog cannot help: what is gone cannot be renewed. */
TEST_THAT(a_flushed_lock_costs_a_sale_unless_fenced)
{
    struck_sale("flush", "on");
    assert_true(page_told(0, "deleted from the lock server"));
}

TEST_THAT(a_watched_lock_outlasts_its_holders_pause)
{
    assert_true(page_go("/?a=redis-token&a_lease=5000&a_watchdog=on&a_fence=off&b=none"
                        "&buyers=200&stock=100&countdown=0&lang=en&fault=pause"));
    page_click("#start");
    assert_true(page_sold(ENDED));
    assert_true(page_told(0, "watchdog renewed.*It wrote"));
    assert_true(page_told(1, "no lock.*Another one got in and wrote"));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'good'"));
    assert_true(browser_is(browser, PANE(1) ".dataset.state === 'bad'"));
    assert_int_equal(browser_errors(browser), 0);
}
