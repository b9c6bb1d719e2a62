/* The player on the live page: a request of a sale and the one that it contradicts, step by step.
 */
#include "page_rig.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

static struct browser *const browser = &page.browser;

enum { SCRIPT_MAX = 6000 };

static void assert_nothing(json_t *wrong)
{
    size_t i;
    json_t *one;
    if (!json_is_array(wrong))
        fail_msg("the script returned no list");
    json_array_foreach(wrong, i, one)
    {
        fprintf(stderr, "%s\n", json_string_value(one));
    }
    const size_t n = json_array_size(wrong);
    json_decref(wrong);
    assert_int_equal(n, 0);
}

/* -- planted events ------------------------------------------------------------------------------
 */

/* In the page: record(guard, A's key, B's key, events) of [t_us, key, point, value]. wrong(record):
 * reads of another value than the row is drawn with. */
#define PLANTED                                                                                    \
    "const guard = (kind) => ({ kind, name: 'planted', caps: ['owner', 'lease'] });"               \
    "const modules = ['requests', 'record'].map((name) => import(`/web/${name}.js`));"             \
    "const record = (kind, keys, events) => Promise.all(modules).then("                            \
    "([{ Requests }, { recordOf }]) => {"                                                          \
    "  const all = new Requests();"                                                                \
    "  for (const [t_us, key, point, value] of events) all.add({ t_us, key, point, value });"      \
    "  return recordOf(keys.map((key) => all.bought.find((one) => one.key === key)), all, {},"     \
    "    guard(kind), (name) => name); });"                                                        \
    "const drawn = (one, k) => Museum.state(one, k);"                                              \
    "const wrong = (one) => one.events.flatMap(([, who, point, value], k) =>"                      \
    "  point === 'read' && drawn(one, k).row.value !== value"                                      \
    "    ? [`${who} reads ${value}, drawn is ${drawn(one, k).row.value}`] : []);"                  \
    "const at = (one, who, point) => one.events.findIndex(([, w, p]) => w === who && p === "       \
    "point);"

static void plant(const char *body)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script, PLANTED "%s", body);
    assert_nothing(browser_run(browser, script));
}

GROUP_FIXTURE(page_open_demo, page_close);

/* Reads and writes are noted by threads of their own: the value that was read tells the order. */
TEST_THAT(each_read_is_drawn_with_the_value_that_it_found)
{
    assert_true(page_go("/?lang=en"));
    /* the read is noted after the write that it did not see */
    plant("return record('none', ['a', 'b'], [[0, 'a', 'submitted'], [5, 'b', 'read', 100],"
          " [990, 'b', 'committed', 99], [1000, 'a', 'read', 100], [2000, 'a', 'committed', 99]])"
          ".then((one) => [...wrong(one), ...(at(one, 'A', 'read') < at(one, 'B', 'committed')"
          "  ? [] : ['the read is after the write'])]);");
    /* before the one that it saw */
    plant("return record('none', ['a', 'b'], [[0, 'b', 'read', 100], [10, 'a', 'read', 99],"
          " [20, 'b', 'committed', 99], [30, 'a', 'committed', 98]])"
          ".then((one) => [...wrong(one), ...(at(one, 'B', 'committed') < at(one, 'A', 'read')"
          "  ? [] : ['the read is before the write'])]);");
    /* of a write that was not traced, and of many writes that were */
    plant(
        "return record('none', ['a', 'b'], [[0, 'b', 'read', 100], [0, 'c', 'read', 100],"
        " [0, 'd', 'read', 100], [10, 'c', 'committed', 99], [12, 'd', 'committed', 98],"
        " [30000, 'a', 'read', 90], [30010, 'b', 'committed', 99], [50000, 'a', 'committed', 89]])"
        ".then((one) => [...wrong(one), ...(one.events.filter(([, who]) => who === 'others')"
        "  .map(([, , , value]) => value).join() === '90' ? [] : ['others are not folded'])]);");
}

/* A release is noted after it took effect; who is still inside is no such case. */
TEST_THAT(two_are_drawn_inside_only_if_they_were)
{
    assert_true(page_go("/?lang=en"));
#define TWO(released, committed)                                                                   \
    "record('lock', ['a', 'b'], [[0, 'a', 'acquired'], [10, 'a', 'read', 9], [" committed          \
    ", 'a', 'committed', 8], [50, 'b', 'acquired'], [" released                                    \
    ", 'a', 'released'], [65, 'b', 'read', 8], [70, 'b', 'committed', 7], [80, 'b', "              \
    "'released']].sort((one, other) => one[0] - other[0]))"
    plant("return " TWO("60", "20") ".then((one) => [...wrong(one),"
                                    " ...one.events.flatMap((_, k) => (drawn(one, k).clash"
                                    "  ? [`two inside at ${k}`] : []))]);");
    plant(
        "return " TWO("60", "55") ".then((one) => (drawn(one, at(one, 'B', 'lock.acquired')).clash"
                                  "  ? [] : ['one inside']));");
}

/* Under a bare DEL. A grant between a release and the note that it has arrived: it had. After the
 * end of the lease it had not, and takes the lock of another. */
TEST_THAT(a_release_frees_the_lock_of_its_holder_or_of_whoever_has_it_then)
{
    assert_true(page_go("/?lang=en"));
#define BARE(granted_us)                                                                           \
    "const one = { clients: ['A', 'B'], lock: true, owner: false, lease_ms: 1, initial: 1, "       \
    "events: [[0, 'A', 'lock.acquired'], [10, 'A', 'lock.release'], [" granted_us                  \
    ", 'B', 'lock.acquired'], [5000, 'A', 'lock.released']] };"                                    \
    "const holders = Museum.state(one, 3).keys.map(({ who }) => who).join();"
    plant(BARE("20") "return holders === 'B' && !Museum.state(one, 2).clash ? [] : [holders];");
    plant(BARE("1000") "return holders === '' && Museum.state(one, 2).clash ? [] : [holders];");
}

/* -- real sales ----------------------------------------------------------------------------------
 */

/* In the page: walk() steps through what is shown, there by ArrowRight and back by ArrowLeft, and
 * returns what is wrong. */
#define WALK                                                                                       \
    "const detail = document.getElementById('detail');"                                            \
    "const press = (key) => detail.dispatchEvent(new KeyboardEvent('keydown',"                     \
    "  { key, bubbles: true, cancelable: true }));"                                                \
    "const shot = (s) => [...s.querySelectorAll('.stage *, .caption, .command, .trace .now')]"     \
    "  .map((e) => [...e.classList].sort() + e.style.cssText + e.textContent).join();"             \
    "const walk = () => {"                                                                         \
    "  const show = detail.querySelector('.show'), wrong = [], there = [];"                        \
    "  const lines = [...show.querySelectorAll('.trace > li')];"                                   \
    "  press('Home');"                                                                             \
    "  lines.forEach((line, k) => {"                                                               \
    "    const read = line.textContent.match(/([AB]) reads (-?[\\d,]+)/);"                         \
    "    const row = show.querySelector('.value').textContent;"                                    \
    "    if (!line.classList.contains('now')) wrong.push(`not at ${k}`);"                          \
    "    if (read && read[2] !== row) wrong.push(`${line.textContent}, drawn is ${row}`);"         \
    "    there.push(shot(show)); press('ArrowRight'); });"                                         \
    "  for (let k = lines.length - 1; k >= 0; k--) {"                                              \
    "    if (shot(show) !== there[k]) wrong.push(`${k} is another on the way back`);"              \
    "    press('ArrowLeft'); }"                                                                    \
    "  return wrong; };"

#define TRACE "document.querySelector('#detail .trace').innerText.replace(/\\n/g, ' ')"

static void assert_played(const char *pattern)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script, "return /%s/.test(" TRACE ") ? [] : [" TRACE "];", pattern);
    assert_nothing(browser_run(browser, script));
}

/* Closes what is shown, clicks on the lane that this expression finds, and waits until it is
 * played. False: there is none. */
static bool choose(const char *lane)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script,
             "window.lane = %s; if (!lane) return false; window.key = lane.dataset.key;"
             "document.body.dispatchEvent(new KeyboardEvent('keydown', "
             "{ key: 'Escape', bubbles: true }));"
             "lane.dispatchEvent(new MouseEvent('click')); return true;",
             lane);
    json_t *found = browser_run(browser, script);
    const bool is_there = json_is_true(found);
    json_decref(found);
    if (is_there)
        assert_true(browser_await(browser,
                                  "!document.getElementById('detail').hidden && "
                                  "document.querySelector('#detail h2')?.textContent.endsWith("
                                  "` ${key}`) && document.querySelector('#detail .trace') !== null",
                                  PAGE_WAIT_MS));
    return is_there;
}

/* Each of the first lanes of a pane. A rival that was not drawn takes the lane of another, so that
 * some are gone. */
static void walk_lanes(int pane, int least)
{
    enum { LANES_MAX = 8 };
    char expression[SCRIPT_MAX];
    int n = 0;
    snprintf(expression, sizeof expression,
             "return [...document.querySelectorAll('.pane')[%d].querySelectorAll('.lane')].map("
             "(lane) => lane.dataset.key).slice(0, %d);",
             pane, LANES_MAX);
    json_t *keys = browser_run(browser, expression), *key;
    size_t i;
    json_array_foreach(keys, i, key)
    {
        snprintf(expression, sizeof expression, "document.querySelector('.lane[data-key=\"%s\"]')",
                 json_string_value(key));
        if (!choose(expression))
            continue;
        assert_nothing(browser_run(browser, WALK "return walk();"));
        n++;
    }
    json_decref(keys);
    assert_true(n >= least);
}

/* In one of the clashes at least: two who read one value may have read it of two versions. */
static bool shows_an_overwritten_change(void)
{
    for (int i = 0; i < 8; i++) {
        char lane[100];
        snprintf(lane, sizeof lane, "document.querySelectorAll('.lane.clash')[%d]", i);
        if (!choose(lane))
            return false;
        json_t *shown = browser_run(
            browser,
            WALK "press('Home');"
                 "return [...detail.querySelectorAll('.trace > li')].some(() => {"
                 "  const told = detail.querySelector('.stage .over').textContent;"
                 "  press('ArrowRight');"
                 "  return /([AB]) has overwritten the change of (?!\\1)[AB]/.test(told); });");
        const bool is_shown = json_is_true(shown);
        json_decref(shown);
        if (is_shown)
            return true;
    }
    return false;
}

TEST_THAT(every_request_of_a_sale_plays_there_and_back)
{
    browser_size(browser, 1280, 720);
    assert_true(page_go("/?a=none&b=redis-token&buyers=400&stock=200&countdown=0&lang=en"));
    page_click("#start");
    assert_true(page_sold(ENDED));
    walk_lanes(0, 4);
    walk_lanes(1, 8);
    assert_true(shows_an_overwritten_change());
    assert_int_equal(browser_errors(browser), 0);
}

/* After the one above. */
TEST_THAT(each_step_has_an_address_as_long_as_the_page_has_the_events)
{
#define AT                                                                                         \
    "[...document.querySelectorAll('#detail .trace li')].findIndex((line) => "                     \
    "line.classList.contains('now'))"
    assert_true(choose("document.querySelector('.lane.clash')"));
    json_decref(browser_run(browser,
                            WALK "press('Home'); for (const i of [1, 2, 3]) press('ArrowRight');"));
    assert_true(browser_await(browser,
                              "location.hash === `#${document.querySelector('#detail h2')"
                              ".textContent.split(' ')[1]}/3` && /a=none/.test(location.search)",
                              PAGE_WAIT_MS));
    json_decref(browser_run(browser, "location.hash = location.hash.replace('/3', '/5');"));
    assert_true(browser_await(browser, AT " === 5", PAGE_WAIT_MS));
    page_choose("#lang", "zh");
    assert_true(browser_await(browser, "/A 读到/.test(" TRACE ")", PAGE_WAIT_MS));
    assert_true(browser_await(browser, AT " === 5", PAGE_WAIT_MS));
    assert_true(browser_is(browser, "/[/]5$/.test(location.hash)"));
    assert_int_equal(browser_errors(browser), 0);
    assert_true(page_go("/?lang=en#sale-gone-1/3"));
    assert_true(browser_await(browser,
                              "/names a step of request sale-gone-1/.test("
                              "document.getElementById('notices').textContent)",
                              PAGE_WAIT_MS));
}

/* The same pair of holders without a fence and under one. */
TEST_THAT(a_struck_pair_plays_its_lost_lock_and_its_late_write)
{
    assert_true(page_go("/?a=redis-token&a_lease=3000&a_watchdog=on&a_fence=off&b=redis-token"
                        "&b_lease=3000&b_watchdog=on&b_fence=on&buyers=400&stock=100&countdown=0"
                        "&lang=en&fault=flush"));
    page_click("#start");
    assert_true(page_sold(ENDED));
#define LANE(i, class) PANE(i) ".querySelector('.lane." class "')"
#define UNTIL_LATE                                                                                 \
    "A is held on purpose.*the key is deleted by somebody.*B is granted the lock.*"                \
    "B has written.*A is let go.*"
    assert_true(choose(LANE(0, "marked")));
    assert_played(UNTIL_LATE "A has written");
    assert_nothing(browser_run(browser, WALK "return walk();"));
    assert_true(page_picture("struck", 1280, 720));
    assert_true(choose(LANE(1, "refused")));
    assert_played(UNTIL_LATE "A is answered");
    assert_true(browser_is(browser, "!/A has written/.test(" TRACE ")"));
    assert_nothing(browser_run(browser, WALK "return walk();"));
    page_choose("#lang", "zh");
    assert_true(browser_await(browser, "/A 被故意暂停/.test(" TRACE ")", PAGE_WAIT_MS));
    browser_dark(browser, true);
    assert_true(page_picture("struck-phone", 390, 844));
    browser_dark(browser, false);
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    assert_int_equal(browser_errors(browser), 0);
}
