/* The sales of the live page in a real browser: their terms, the countdown. */
#include "page_rig.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

static struct browser *const browser = &page.browser;

#define SHOWS(id, words) "/" words "/.test(document.getElementById('" id "').textContent)"

static int64_t sales_started(void)
{
    return client_number(page.shop.service->port, "/v1/demo/sales", "id");
}

GROUP_FIXTURE(page_open_demo, page_close);

TEST_THAT(a_countdown_is_told_and_can_be_called_off)
{
    browser_size(browser, 1280, 720);
    assert_true(page_go("/?a=none&b=redis-token&buyers=50&stock=5&countdown=10&lang=en"));
    json_decref(browser_run(browser, "document.getElementById('start').focus();"));
    browser_type(browser, "\xEE\x80\x87"); /* Enter */
    assert_true(browser_await(browser, SHOWS("clock", "Starts in \\d"), PAGE_WAIT_MS));
    assert_true(browser_is(browser, "document.getElementById('clock').ariaLive === 'assertive' && "
                                    "document.getElementById('start').textContent === 'Cancel'"));
    browser_type(browser, "\xEE\x80\x8C"); /* Escape */
    assert_true(browser_await(browser, SHOWS("message", "Cancelled"), PAGE_WAIT_MS));
    assert_true(browser_is(browser, SHOWS("clock", "^$") " && " SHOWS("start", "^Start sale$")));
    assert_int_equal(sales_started(), 0);

    page_choose("[name=countdown]", "1");
    page_click("#start");
    assert_true(page_sold(ENDED));
    assert_int_equal(sales_started(), 2);
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(each_of_two_sales_has_terms_of_its_own_which_are_in_the_address)
{
    assert_true(page_go("/?a=redis-token&a_lease=4321&a_watchdog=off&a_fence=off&a_lanes=on"
                        "&b=redis-token&b_lease=5000&b_watchdog=on&b_fence=on&b_lanes=off"
                        "&buyers=100&stock=10&countdown=0&lang=en"));
    page_click("#start");
    assert_true(page_sold(ENDED));
    assert_true(browser_is(browser,
                           PANE(0) ".querySelector('.settings').textContent === "
                                   "'lease 4,321 ms · no watchdog · no fence · lanes' && " PANE(
                                       1) ".querySelector('.settings').textContent === "
                                          "'lease 5,000 ms · watchdog · fence'"));
    page_click("[name=a_fence]");
    page_choose("[name=b_lease]", "700");
    assert_true(browser_is(browser, "/a_fence=on/.test(location.search) && "
                                    "/b_lease=700/.test(location.search) && "
                                    "/a_watchdog=off/.test(location.search)"));
    assert_true(page_picture("terms", 1280, 720));
    assert_true(page_picture("terms-phone", 390, 844));
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    /* those that the sales were really run under */
    assert_true(page_open_saved());
    assert_true(browser_is(
        browser,
        "JSON.stringify(JSON.parse(document.getElementById('run').textContent).reports.map("
        "({ runs: [{ terms }] }) => [terms.lease_ms, terms.watchdog, terms.fence, terms.lanes])) "
        "=== '[[4321,false,false,true],[5000,true,true,false]]'"));
    assert_int_equal(browser_errors(browser), 0);
}

/* A mutex has no lease, and a lock without tokens no fence. */
TEST_THAT(what_a_guard_has_not_cannot_be_chosen)
{
    assert_true(page_go("/?a=mutex&b=redis-set&lang=en"));
#define DISABLED(name) "document.querySelector('[name=" name "]').disabled"
    assert_true(
        browser_is(browser, DISABLED("a_lease") " && " DISABLED("a_watchdog") " && " DISABLED(
                                "a_fence") " && !" DISABLED("a_lanes")));
    assert_true(browser_is(
        browser, "!" DISABLED("b_lease") " && " DISABLED("b_watchdog") " && " DISABLED("b_fence")));
    page_choose("[name=a]", "redis-fair");
    assert_true(browser_is(browser, "!" DISABLED("a_lease") " && !" DISABLED("a_watchdog")));
    assert_int_equal(browser_errors(browser), 0);
}

#define FIGURES                                                                                    \
    "[...document.querySelectorAll('.pane')].map(pane => [...pane.querySelectorAll("               \
    "'h2, .settings, .verdict, .left, dd, .chart text, .chart path, .lane text')].map("            \
    "e => e.getAttribute('d') ?? e.textContent).join('|')).join('\\n')"

TEST_THAT(a_run_saved_as_a_file_shows_the_same_and_needs_nothing_else)
{
    browser_size(browser, 1280, 720);
    assert_true(page_go("/?a=none&b=redis-token&buyers=2000&stock=1000&countdown=0&b_lease=4321"
                        "&lang=en"));
    assert_true(browser_is(browser, "document.getElementById('save').disabled"));
    page_click("#start");
    assert_true(page_sold(ENDED));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'bad'"));
    json_t *figures = browser_run(browser, "return " FIGURES ";");

    assert_true(page_open_saved());
    assert_true(browser_is(browser, "location.protocol === 'file:'"));
    json_t *same = browser_run(browser, "return " FIGURES ";");
    assert_string_equal(json_string_value(same), json_string_value(figures));
    /* two that read the same, and two rows of the ledger from one version */
    assert_true(browser_is(browser,
                           "(() => { const [ledger] = [...document.querySelectorAll("
                           "'.counterexample table')].map(t => [...t.rows].slice(1).map("
                           "r => [...r.cells].map(c => c.textContent)));"
                           "const trace = document.querySelector('.counterexample .trace')"
                           ".innerText, read = (who) => trace.match(`${who} reads (.*)`)[1];"
                           "return read('A') === read('B') && read('A') === ledger[0][2] && "
                           "ledger.length >= 2 && ledger[0][1] === ledger[1][1]; })()"));
    assert_true(browser_is(browser,
                           "/b_lease\\s*4321/.test(document.body.innerText) && "
                           "/loadgen sale .*--lease-ms=4321/.test(document.body.innerText)"));
    assert_true(browser_is(browser, "JSON.parse(document.getElementById('run').textContent)"
                                    ".reports[0].runs[0].verdict.oversold > 0"));
    assert_true(browser_is(browser, "performance.getEntriesByType('resource').length === 0 && "
                                    "document.querySelectorAll('[src], link, button').length === 0 "
                                    "&& document.scripts.length === 1"));
    assert_true(page_picture("saved", 1280, 720));
    browser_dark(browser, true);
    assert_true(page_picture("saved-phone", 390, 844));
    browser_dark(browser, false);
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    assert_int_equal(browser_errors(browser), 0);
    json_decref(same);
    json_decref(figures);
}
