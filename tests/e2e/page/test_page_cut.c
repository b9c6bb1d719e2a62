/* Sales on the live page of `make serve` during which the wire to Redis is cut. */
#include "page_rig.h"
#include "tests.h"

#include <stdio.h>

enum { RESTORED_MS = 40000 }; /* by itself it is whole again after 60 s */

static struct browser *const browser = &page.browser;

#define CUT "document.querySelector('#strikes [data-fault=cut]')"

GROUP_FIXTURE(page_open_serve, page_close);

/* With the wire cut the watchdog cannot renew: the lease ends under the holder, and as soon as the
 * wire is whole, somebody else gets in. */
TEST_THAT(a_wire_cut_under_a_holder_costs_a_sale_unless_fenced)
{
    assert_true(page_go("/?a=redis-token&a_lease=2500&a_watchdog=on&a_fence=off&b=redis-token"
                        "&b_lease=2500&b_watchdog=on&b_fence=on&buyers=60&rate=30"
                        "&stock=30&countdown=0&lang=en&fault=cut"));
    page_click("#start");
    assert_true(page_sold(CAN_SAVE));
#define CUT_STORY                                                                                  \
    "is cut.*Meanwhile [1-9]\\d* orders failed \\(503\\), and 0 were written.*is restored.*"       \
    "got in and wrote.*"
    assert_true(page_told(0, CUT_STORY "Lost updates in the ledger: \\d"));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'bad'"));
    assert_true(browser_number(browser, FIGURE(0, "lost")) > 0);
    assert_true(page_told(1, CUT_STORY "no lost update"));
    assert_true(browser_is(browser, PANE(1) ".dataset.state === 'good'"));
    assert_int_equal(browser_number(browser, FIGURE(1, "sold")), 30);
    assert_true(page_picture("cut", 1280, 720));
    page_choose("#lang", "zh");
    browser_dark(browser, true);
    assert_true(browser_await(browser, TOLD(0, "已断开.*连接已恢复"), PAGE_WAIT_MS));
    assert_true(page_picture("cut-phone", 390, 844));
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    browser_dark(browser, false);
    browser_size(browser, 1280, 720);
    assert_int_equal(browser_errors(browser), 0);
}

/* 40 orders in 13 s. */
TEST_THAT(who_is_refused_while_the_wire_is_cut_by_hand_buys_when_it_is_whole)
{
    assert_true(page_go("/?a=redis-token&a_lease=2000&a_watchdog=on&a_fence=on&b=mutex"
                        "&buyers=40&rate=3&stock=40&countdown=0&lang=en"));
    page_click("#start");
    assert_true(
        browser_await(browser, "!" CUT ".disabled && (" CUT ".focus(), true)", PAGE_WAIT_MS));
    browser_type(browser, "\xEE\x80\x87"); /* Enter */
    assert_true(browser_await(browser, TOLD(0, "is cut"), PAGE_WAIT_MS));
    assert_true(browser_await(browser,
                              FIGURE(0, "failures") " > 0 && !" CUT ".disabled && " CUT
                                                    ".textContent === 'restore Redis'",
                              PAGE_WAIT_MS));
    assert_true(page_picture("cut-now", 1280, 720));
    page_click("#strikes [data-fault=cut]");
    assert_true(browser_await(browser, TOLD(0, "is restored"), RESTORED_MS));
    assert_true(page_sold(CAN_SAVE));
    assert_true(page_told(0, "and 0 were written.*is restored"));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'good'"));
    assert_int_equal(browser_number(browser, FIGURE(0, "sold")), 40);
    assert_true(browser_await(browser, CUT ".disabled && " CUT ".textContent === 'cut Redis'",
                              PAGE_WAIT_MS));
    assert_int_equal(browser_errors(browser), 0);
}
