/* Sales on the live page that are struck while they run: by a button, or as the address says. */
#include "page_rig.h"
#include "tests.h"

#include <stdio.h>

static struct browser *const browser = &page.browser;

#define BUTTON(name) "document.querySelector('#strikes [data-fault=" name "]')"
#define NONE_TO_PRESS                                                                              \
    "[...document.querySelectorAll('#strikes button')].every(button => button.disabled)"

GROUP_FIXTURE(page_open_demo, page_close);

/* 40 orders in 13 s: time enough for the press of a button, also on a busy machine. */
TEST_THAT(a_button_strikes_the_sale_that_runs)
{
    assert_true(page_go("/?a=redis-token&a_lease=1000&a_watchdog=off&a_fence=on&b=none"
                        "&buyers=40&rate=3&stock=40&countdown=0&lang=en"));
    assert_true(browser_is(browser, NONE_TO_PRESS));
    page_click("#start");
    assert_true(browser_await(browser, "!" BUTTON("pause") ".disabled", PAGE_WAIT_MS));
    json_decref(browser_run(browser, BUTTON("pause") ".focus();"));
    browser_type(browser, "\xEE\x80\x87"); /* Enter */
    assert_true(browser_await(browser, TOLD(0, HELD), PAGE_WAIT_MS));
    assert_true(page_sold(ENDED));
    assert_true(page_told(0, INTERRUPTED));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'good'"));
    assert_true(page_told(1, "^$"));
    assert_true(browser_is(browser, NONE_TO_PRESS));
    assert_int_equal(browser_errors(browser), 0);
}

/* Pieces are sold before it strikes: who is held has not read the stock as it was at first. */
TEST_THAT(a_fault_strikes_when_the_address_says)
{
    assert_true(page_go("/?a=redis-token&a_lease=3000&a_fence=on&b=none&buyers=60&rate=20"
                        "&stock=100&countdown=0&lang=en&fault=flush&fault_after=1"));
    page_click("#start");
    assert_true(page_sold(ENDED));
    assert_true(page_told(0, HELD));
    assert_true(page_told(1, HELD));
    assert_true(browser_number(browser,
                               "parseInt(" PANE(0) ".querySelector('.lane.marked text')"
                                                   ".textContent.replace(/[^\\d]*/, ''))") < 100);
    assert_int_equal(browser_errors(browser), 0);
}
