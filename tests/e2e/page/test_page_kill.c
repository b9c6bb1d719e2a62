/* The instance behind the live page of `make serve` is killed, and there again. */
#include "page_rig.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>

static struct browser *const browser = &page.browser;

GROUP_FIXTURE(page_open_serve, page_close);

/* Killed from its own page, the instance is there again, with the lock in Redis and the pieces sold
 * in the store. */
TEST_THAT(who_buys_after_a_kill_waits_for_the_dead_ones_lease)
{
    browser_size(browser, 1280, 720);
    assert_true(page_go("/?a=redis-token&a_lease=10000&a_watchdog=off&b=mutex&buyers=200"
                        "&stock=100&countdown=0&lang=en&fault=kill"));
    page_click("#start");
    assert_true(page_sold(CAN_SAVE));
    assert_true(
        page_told(0, "kill -9.*ends in [\\d,]+ ms.*[\\d,]+ ms later the next buyer had bought"));
    assert_true(page_told(1, "kill -9.*no lock.*had bought"));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'stopped' && " PANE(
                                        1) ".dataset.state === 'stopped'"));
    assert_int_equal(browser_number(browser, FIGURE(0, "sold")), 1);
    /* the chart goes on to what the next one bought, which no counter of the dead one tells */
    assert_true(browser_is(
        browser, "(([, begin, end]) => +end > +begin)(" PANE(
                     0) ".querySelector('.curve')"
                        ".getAttribute('d').match(/^M[\\d.]+,([\\d.]+).*V([\\d.]+)$/) ?? [])"));
    browser_errors(browser); /* those of the requests that died with it */
}

#define DEAD_AND_HEIR                                                                              \
    "(() => { const [dead, heir] = [...document.querySelector('.pane').querySelectorAll('.lane')]" \
    ".map(lane => name => lane.querySelector(name));"                                              \
    "const x = rect => rect.x.baseVal.value, w = rect => rect.width.baseVal.value;"                \
    "return /† 100 → –/.test(dead('text').textContent) && "                                  \
    "/100 → 99/.test(heir('text').textContent) && w(dead('.orphan')) > 0 && "                    \
    "x(heir('.section')) > x(dead('.section')) + w(dead('.section')); })()"

/* After the one above. */
TEST_THAT(the_player_shows_the_kill_and_who_got_in_next)
{
    json_decref(browser_run(browser, "document.querySelector('.pane .lane').dispatchEvent("
                                     "new MouseEvent('click'));"));
    assert_true(browser_await(browser,
                              "/A is granted.*A reads 100.*A is held.*A's process is killed.*"
                              "B is granted.*B reads 100.*B has written 99/.test(document"
                              ".querySelector('#detail .trace')?.innerText.replace(/\\n/g, ' '))",
                              PAGE_WAIT_MS));
    json_decref(browser_run(browser, "[...document.querySelectorAll('#detail .trace li')].find("
                                     "line => /killed/.test(line.innerText)).click();"));
    assert_true(browser_is(browser, "document.querySelector('#detail .client').classList.contains("
                                    "'killed') && document.querySelectorAll('#detail .key')"
                                    ".length === 1"));
    assert_true(page_picture("killed-played", 1280, 720));
    browser_type(browser, "\xEE\x80\x8C"); /* Escape */
    assert_true(
        browser_await(browser, "document.querySelector('.lane.chosen') === null", PAGE_WAIT_MS));
    browser_errors(browser); /* says that the ledger has no row of the dead one */
}

/* After the one above. The dead one's lane ends, its lock stands on, and then comes the heir. */
TEST_THAT(the_dead_holders_lane_stays_and_is_saved)
{
    assert_true(browser_is(browser, DEAD_AND_HEIR));
    assert_true(page_picture("killed", 1280, 720));
    assert_true(page_open_saved());
    assert_true(browser_is(browser, "location.protocol === 'file:'"));
    assert_true(browser_is(browser, DEAD_AND_HEIR));
    assert_int_equal(browser_errors(browser), 0);
}

/* Of the dead one's lane; NaN: it has none. */
#define ORPHAN(pane)                                                                               \
    "(document.querySelectorAll('.pane')[" #pane                                                   \
    "].querySelector('.lane .orphan')?.width.baseVal.value ?? NaN)"

TEST_THAT(a_lock_without_a_lease_is_seen_to_stand_on)
{
    assert_true(page_go("/?a=redis-setnx&b=none&buyers=200&stock=100&countdown=0&lang=en"
                        "&fault=kill"));
    page_click("#start");
    assert_true(page_sold(CAN_SAVE));
    assert_true(browser_is(browser, ORPHAN(0) " > 50"));
    assert_true(browser_is(browser, "Number.isNaN" ORPHAN(1)));
    assert_true(page_told(0, "no lease.*did not get in.*nobody will ever free it"));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'stuck' && /STUCK/.test(" PANE(
                                        0) ".querySelector('.verdict').textContent)"));
    /* what the new instance counts is not what the sale was */
    assert_true(browser_is(browser, "[...document.querySelectorAll('[data-is=rate], [data-is=p50], "
                                    "[data-is=turnedAway]')].every(figure => "
                                    "!/−/.test(figure.textContent))"));
    assert_true(browser_is(browser, PANE(0) ".querySelector('[data-is=p50]').textContent === '–'"));
    /* a colour of its own */
    assert_true(browser_is(
        browser, "getComputedStyle(" PANE(0) ").borderColor !== "
                                             "getComputedStyle(" PANE(1) ").borderColor"));
    assert_true(page_picture("stands", 1280, 720));
    browser_errors(browser); /* those of the requests that died with it */
}

static int ask(const char *method, const char *path, const char *key, const char *body)
{
    static struct reply reply;
    struct client client = {.port = page.shop.service->port, .fd = -1};
    const int status = client_call(&client, method, path, key, body, PAGE_WAIT_MS, &reply);
    client_close(&client);
    return status;
}

static bool wire_is(void *cut)
{
    json_t *wire = client_get(page.shop.service->port, "/v1/lab/wire");
    const bool same = json_equal(json_object_get(wire, "cut"), cut);
    json_decref(wire);
    return same;
}

/* Without Redis a new instance would never be ready. */
TEST_THAT(a_service_that_dies_while_its_wire_is_cut_is_there_again_with_a_whole_one)
{
    assert_int_equal(ask("POST", "/v1/lab/wire", NULL, "{\"wished\":true}"), 201);
    assert_true(wait_until(wire_is, json_true(), PAGE_WAIT_MS));
    assert_int_equal(ask("POST", "/v1/lab/pauses", NULL,
                         "{\"point\":\"submitted\",\"match\":\"last\",\"action\":\"kill\"}"),
                     201);
    assert_int_not_equal(ask("POST", "/v1/items/1/orders", "last", "{\"user_id\":\"u1\"}"), 201);
    assert_true(wait_until(wire_is, json_false(), PAGE_WAIT_MS));
    assert_int_equal(ask("POST", "/v1/items/1/orders", "first", "{\"user_id\":\"u1\"}"), 201);
}
