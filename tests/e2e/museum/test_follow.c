/* A class that goes along: a presenter's page and two phones, each a browser of its own or a
 * window, on the pages that `loadgen follow` serves. */
#include "classroom.h"
#include "museum_looks.h"
#include "museum_rig.h"
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum window { PRESENTER, PHONE, OTHER, WINDOWS };

static char windows[WINDOWS][BROWSER_WINDOW_MAX];
static enum window current;
static struct classroom *classroom;
static char url[CLASSROOM_URL_MAX]; /* of the class, without the slash at its end */

/* The scenes late, watchdog and fence: the keys 1, 2, 3. */
static bool record(void)
{
    char file[MUSEUM_PATH_MAX];
    snprintf(file, sizeof file, "%s/lab.json", sandbox_dir(museum.sandbox));
    const int status = museum_run(
        "hazards",
        (const char *const[]){"run", "--hazard", "oversell", "--guard", "none", "--hazard",
                              "expired-lease", "--hazard", "paused-holder", "--guard",
                              "redis-token", "--guard", "redis-reentrant", "--json", file, NULL});
    museum.lab = status == 0 ? json_load_file(file, 0, NULL) : NULL;
    if (museum.lab != NULL && museum_site(museum.lab, museum.folder) == 0)
        return true;
    fprintf(stderr, "no site: %s", museum.output);
    return false;
}

static int open_all(void **state)
{
    char message[CLASSROOM_MESSAGE_MAX];
    if (looks_open_empty(state) != 0 || !record())
        return -1;
    if (classroom_open(museum.folder, "127.0.0.1:0", NULL, &classroom, message) != 0) {
        fprintf(stderr, "%s\n", message);
        return -1;
    }
    snprintf(url, sizeof url, "%.*s", (int)strlen(classroom_url(classroom)) - 1,
             classroom_url(classroom));
    browser_window(&museum.browser, windows[PRESENTER]);
    browser_new_window(&museum.browser, windows[PHONE]);
    browser_new_window(&museum.browser, windows[OTHER]);
    return 0;
}

static int close_all(void **state)
{
    classroom_close(classroom);
    return looks_close(state);
}

/* The browser, with this window as the current one. */
static struct browser *in(enum window window)
{
    if (window != current)
        browser_to_window(&museum.browser, windows[window]);
    current = window;
    return &museum.browser;
}

static void go(enum window window, const char *address)
{
    browser_go(in(window), "about:blank"); /* so that another fragment is another visit */
    browser_go(in(window), address);
    assert_true(browser_await(in(window),
                              "document.readyState === 'complete' && Museum.player !== undefined",
                              MUSEUM_WAIT_MS));
}

static void follow(enum window window, const char *page)
{
    char address[CLASSROOM_URL_MAX + 100];
    snprintf(address, sizeof address, "%s%s", url, page);
    browser_size(in(window), 390, 844);
    go(window, address);
}

/* The presenter's page, from the printed link, at this place ("#late/3"). */
static void present(const char *place)
{
    char address[CLASSROOM_URL_MAX + 100];
    snprintf(address, sizeof address, "%s%s", classroom_presenter_url(classroom), place);
    browser_size(in(PRESENTER), 1280, 720);
    go(PRESENTER, address);
    assert_true(browser_await(
        in(PRESENTER), "document.querySelector('#class b').textContent !== ''", MUSEUM_WAIT_MS));
}

/* Waits until the page shows this step of this scene. */
static void await_step(enum window window, const char *scene, int step)
{
    char expression[300];
    snprintf(expression, sizeof expression,
             "typeof Museum !== 'undefined' && Museum.player?.players.get('%s')?.k === %d"
             " && document.querySelector('#%s.current') !== null",
             scene, step, scene);
    if (!browser_await(in(window), expression, MUSEUM_WAIT_MS))
        fail_msg("the page does not show %s/%d", scene, step);
}

static void await_text(enum window window, const char *selector, const char *text)
{
    char expression[400];
    snprintf(expression, sizeof expression,
             "document.querySelector('%s')?.textContent.includes('%s')", selector, text);
    if (!browser_await(in(window), expression, MUSEUM_WAIT_MS))
        fail_msg("%s does not say '%s'", selector, text);
}

#define SHOWN(selector) "document.querySelector('" selector "')?.getClientRects().length > 0"

/* -- claims ------------------------------------------------------------------------------------ */

GROUP_FIXTURE(open_all, close_all);

TEST_THAT(two_phones_go_along_with_scene_and_step_each_in_its_language)
{
    follow(PHONE, "/");
    await_text(PHONE, "#class", "Not begun");
    follow(OTHER, "/zh/index.html?follow");
    await_text(OTHER, "#class", "尚未开始");
    present("");
    await_text(PRESENTER, "#class", "1 follow");
    browser_type(in(PRESENTER), "1");
    await_step(PHONE, "late", 0);
    await_step(OTHER, "late", 0);
    for (int step = 1; step <= 4; step++)
        browser_type(in(PRESENTER), "\xEE\x80\x94"); /* right arrow */
    await_step(PHONE, "late", 4);
    await_step(OTHER, "late", 4);
    await_text(PHONE, "#class", "what the presenter shows");
    assert_true(browser_is(in(OTHER), "location.pathname === '/zh/index.html'"));
    browser_type(in(PRESENTER), "3");
    await_step(PHONE, "fence", 0);
    assert_true(browser_is(in(PHONE), "[...document.querySelectorAll('.exhibit, #opening, nav')]"
                                      ".filter((one) => one.getClientRects().length > 0)"
                                      ".map(({ id }) => id).join() === 'fence'"));
    assert_int_equal(
        browser_errors(in(PHONE)) + browser_errors(in(OTHER)) + browser_errors(in(PRESENTER)), 0);
}

TEST_THAT(the_code_on_the_screen_is_the_class_s_address)
{
    char text[CLASSROOM_URL_MAX];
    present("");
    assert_true(browser_await(
        in(PRESENTER), "document.querySelector('#class img').naturalWidth > 0", MUSEUM_WAIT_MS));
    assert_true(museum_read_code(text, sizeof text));
    assert_string_equal(text, classroom_url(classroom));
    browser_type(in(PRESENTER), "1");
    await_step(PRESENTER, "late", 0);
    assert_false(browser_is(in(PRESENTER), SHOWN("#class img")));
    browser_type(in(PRESENTER), "q");
    assert_true(browser_await(in(PRESENTER), SHOWN("#class img"), MUSEUM_WAIT_MS));
    browser_type(in(PRESENTER), "q");
    assert_true(browser_await(in(PRESENTER), "!(" SHOWN("#class img") ")", MUSEUM_WAIT_MS));
}

TEST_THAT(a_reader_may_look_back_and_go_along_again)
{
    present("#late/6");
    follow(PHONE, "/index.html?follow");
    await_step(PHONE, "late", 6);
    assert_false(browser_is(in(PHONE), SHOWN("#class button")));
    browser_type(in(PHONE), "\xEE\x80\x92"); /* left arrow */
    await_step(PHONE, "late", 5);
    await_text(PHONE, "#class", "on your own");
    browser_type(in(PRESENTER), "\xEE\x80\x94");
    await_step(PRESENTER, "late", 7);
    /* A phone that goes along has been told; this one stays. */
    follow(OTHER, "/index.html?follow");
    await_step(OTHER, "late", 7);
    await_step(PHONE, "late", 5);
    json_decref(browser_run(in(PHONE), "document.querySelector('#class button').click();"));
    await_step(PHONE, "late", 7);
    assert_false(browser_is(in(PHONE), SHOWN("#class button")));
    await_step(PRESENTER, "late", 7); /* what the reader did has moved nobody */
    browser_type(in(PRESENTER), "\xEE\x80\x94");
    await_step(PHONE, "late", 8);
}

TEST_THAT(a_phone_goes_along_to_another_page)
{
    char address[CLASSROOM_URL_MAX + 100], host[200];
    present("#late/3");
    follow(PHONE, "/zh/index.html?follow");
    await_step(PHONE, "late", 3);
    assert_int_equal(sscanf(classroom_presenter_url(classroom), "http://%199[^/]", host), 1);
    snprintf(address, sizeof address, "http://%s/lesson/paused-holder.html?present", host);
    go(PRESENTER, address); /* the window has the key */
    browser_type(in(PRESENTER), "1");
    assert_true(browser_await(in(PHONE),
                              "location.pathname === '/zh/lesson/paused-holder.html'"
                              " && location.search === '?follow'",
                              MUSEUM_WAIT_MS));
    assert_true(browser_await(in(PHONE), "document.querySelector('.exhibit.current') !== null",
                              MUSEUM_WAIT_MS));
}

TEST_THAT(the_key_does_not_stay_in_the_address)
{
    present("#late/3");
    assert_true(browser_is(in(PRESENTER),
                           "location.search === '?present' && !location.href.includes('key=')"));
    json_decref(browser_run(in(PRESENTER), "location.reload();"));
    assert_true(browser_await(
        in(PRESENTER), "document.querySelector('#class b')?.textContent !== ''", MUSEUM_WAIT_MS));
}

/* From a file, and with a key of another run. */
TEST_THAT(a_page_without_its_class_says_so)
{
    char address[CLASSROOM_URL_MAX + 100], host[200];
    in(PRESENTER);
    assert_true(museum_go("index.html?follow"));
    await_text(PRESENTER, "#class", "This page is a file");
    assert_int_equal(sscanf(classroom_presenter_url(classroom), "http://%199[^/]", host), 1);
    snprintf(address, sizeof address, "http://%s/index.html?present&key=0123", host);
    go(PRESENTER, address);
    await_text(PRESENTER, "#class", "not that of the class");
    browser_errors(in(PRESENTER)); /* the refused requests */
}

static size_t findings(enum window window, bool dark)
{
    browser_dark(in(window), dark);
    json_decref(browser_run(in(window), axe));
    json_t *list = browser_run(
        in(window),
        "return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>"
        " violations.flatMap(({ id, nodes }) => nodes.map(({ target, any }) =>"
        " `${id}: ${target} ${any.map(({ message }) => message)}`)));");
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%s\n", json_string_value(json_array_get(list, i)));
    json_decref(list);
    browser_dark(in(window), false);
    return n;
}

static void choose(enum window window, int choice)
{
    char script[200];
    snprintf(script, sizeof script, "document.querySelectorAll('#vote button')[%d].click();",
             choice);
    json_decref(browser_run(in(window), script));
    snprintf(
        script, sizeof script,
        "document.querySelectorAll('#vote button')[%d].getAttribute('aria-pressed') === 'true'",
        choice);
    assert_true(browser_await(in(window), script, MUSEUM_WAIT_MS));
}

/* In the page: what stands in the vote's lines. */
#define COUNTS                                                                                     \
    "[...document.querySelectorAll('#vote li')].map((one) =>"                                      \
    " one.querySelector('b')?.textContent).join()"

/* What is shown as the answer is the recorded outcome of this very run, and only at its end. */
TEST_THAT(a_class_votes_before_the_recording_gives_the_answer)
{
    present("#fence/6");
    follow(PHONE, "/index.html?follow");
    follow(OTHER, "/zh/index.html?follow");
    await_step(PHONE, "fence", 6);
    await_step(OTHER, "fence", 6);
    assert_false(browser_is(in(PHONE), SHOWN("#vote")));
    browser_type(in(PRESENTER), "v");
    await_text(PRESENTER, "#vote", "The vote is open");
    await_text(PHONE, "#vote", "how does this run end?");
    await_text(OTHER, "#vote", "结局是什么");
    choose(PHONE, 1);
    assert_true(browser_await(in(PRESENTER), COUNTS " === '0,1,0,0'", MUSEUM_WAIT_MS));
    choose(OTHER, 0); /* the same client: its last choice counts */
    assert_true(browser_await(in(PRESENTER), COUNTS " === '1,0,0,0'", MUSEUM_WAIT_MS));
    assert_true(browser_is(in(PHONE), "!document.querySelector('#vote meter')"));
    browser_type(in(PRESENTER), "v");
    await_text(PHONE, "#vote", "The vote is over");
    assert_true(browser_is(in(PHONE), COUNTS " === '1,0,0,0'"));
    assert_true(browser_is(in(PHONE), "!document.querySelector('#vote button, #vote .answer')"));
    assert_true(browser_is(in(PRESENTER), "!document.querySelector('#vote .answer')"));
    browser_type(in(PRESENTER), "\xEE\x80\x90"); /* End */
    await_text(PRESENTER, "#vote .answer", "Safe");
    await_text(PHONE, "#vote .answer", "Safe");
    await_text(OTHER, "#vote .answer", "安全");
    assert_true(
        browser_is(in(PHONE), "Museum.player.players.get('fence').record.observed === 'safe'"));
    assert_int_equal(findings(PRESENTER, false) + findings(PHONE, true) + findings(OTHER, false),
                     0);
    assert_true(browser_is(in(PHONE), "document.documentElement.scrollWidth <= innerWidth"));
    browser_type(in(PRESENTER), "v");
    assert_true(browser_await(in(PHONE), "!(" SHOWN("#vote") ")", MUSEUM_WAIT_MS));
    /* Another scene takes its question away. */
    browser_type(in(PRESENTER), "v");
    assert_true(browser_await(in(PHONE), SHOWN("#vote"), MUSEUM_WAIT_MS));
    browser_type(in(PRESENTER), "1");
    await_step(PHONE, "late", 0);
    assert_true(browser_await(in(PHONE), "!(" SHOWN("#vote") ")", MUSEUM_WAIT_MS));
}

TEST_THAT(no_page_of_a_class_has_an_accessibility_finding)
{
    size_t n = 0;
    present("#late/6");
    follow(PHONE, "/index.html?follow");
    await_step(PHONE, "late", 6);
    follow(OTHER, "/zh/index.html?follow");
    await_step(OTHER, "late", 6);
    browser_type(in(OTHER), "\xEE\x80\x92");
    await_text(OTHER, "#class", "自己浏览");
    n += findings(PRESENTER, false) + findings(PRESENTER, true);
    n += findings(PHONE, false) + findings(PHONE, true);
    n += findings(OTHER, false) + findings(OTHER, true);
    assert_true(browser_is(in(PHONE), "document.documentElement.scrollWidth <= innerWidth"));
    assert_true(browser_is(in(OTHER), "document.documentElement.scrollWidth <= innerWidth"));
    present("");
    n += findings(PRESENTER, false) + findings(PRESENTER, true);
    assert_int_equal(n, 0);
}
