/* The arena where it cannot do as wished: one instance, a link that cannot be honoured, a service
 * that is gone; and its judge, on records that are made up. */
#include "arena_rig.h"
#include "sandbox_process.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>

static struct browser *const browser = &page.browser;

#define NOTICES(words) "/" words "/.test(document.getElementById('notices').textContent)"

GROUP_FIXTURE(page_open_demo, page_close);

/* Each record differs from the first in what is named. */
TEST_THAT(each_record_has_its_verdict)
{
    assert_true(page_go("/web/arena.html?lang=en"));
    json_t *wrong = browser_run(
        browser,
        "return import('/web/arena_judge.js').then(({ judge }) => {"
        "  const audit = { ok: true, initial: 100, restocked: 0, sold: 100, current: 0, oversold: "
        "0,"
        "    lost_updates: 0 };"
        "  const report = { verdict: { safe: true, oversold: 0 }, status: { 201: 100, 409: 50 },"
        "    problems: { 'sold-out': 50 } };"
        "  const whole = { audit, lock: { holders: 0, left_ms: null }, heir: null, report, buyers: "
        "150 };"
        "  const stands = { holders: 1, left_ms: null }, no = { ok: false, problem: 'lock-timeout' "
        "};"
        "  const late = { status: { 503: 1 }, problems: { 'lock-lost': 1 } };"
        "  const away = { status: { 503: 3 }, problems: { 'lock-lost': 1, unavailable: 2 } };"
        "  const rows = ["
        "    ['good', 'good', {}],"
        "    ['bad', 'oversold', { audit: { ...audit, sold: 101, oversold: 1 } }],"
        "    ['bad', 'lostOnly', { audit: { ...audit, lost_updates: 1 } }],"
        "    ['bad', 'unsound', { audit: { ...audit, ok: false } }],"
        "    ['bad', 'unsound', { report: { ...report, verdict: { duplicates: 1 } } }],"
        "    ['bad', 'oversold', { audit: { ...audit, oversold: 1 }, lock: stands, heir: no }],"
        "    ['stuck', 'stuck', { lock: stands, heir: no, report: null }],"
        "    ['refused', 'heirRefused', { lock: stands, heir: no, ends: true }],"
        "    ['refused', 'undersold', { audit: { ...audit, sold: 0, current: 100 }, report: null "
        "}],"
        "    ['good', 'survived', { audit: { ...audit, sold: 0, current: 100 }, report: null, "
        "killed: true }],"
        "    ['good', 'survived', { lock: stands, heir: { ok: true, problem: '' }, report: null }],"
        "    ['good', 'survived', { heir: { ok: false, problem: 'sold-out' }, report: null }],"
        "    ['refused', 'heirRefused', { lock: { holders: 1, left_ms: 900 }, heir: no, report: "
        "null }],"
        "    ['refused', 'heirRefused', { lock: null, heir: no }],"
        "    ['good', 'good', { report: { ...report, ...late } }],"
        "    ['refused', 'refused', { report: { ...report, ...away } }],"
        "    ['refused', 'undersold', { audit: { ...audit, sold: 99, current: 1 } }],"
        "    ['good', 'good', { audit: { ...audit, sold: 90, current: 10 }, buyers: 90 }],"
        "    ['unknown', 'unknown', { audit: null }]];"
        "  return rows.map(([state, name, more]) => [state, name, judge({ ...whole, ...more })])"
        "    .filter(([state, name, is]) => is.state !== state || is.name !== name)"
        "    .map((row) => JSON.stringify(row));"
        "});");
    size_t i;
    json_t *row;
    json_array_foreach(wrong, i, row)
    {
        fprintf(stderr, "%s\n", json_string_value(row));
    }
    assert_int_equal(i, 0);
    json_decref(wrong);
}

/* redis-setnx-expire sets it in a second step: between the two its lock can be left for ever. */
TEST_THAT(a_lock_surely_ends_if_its_lease_is_there_from_the_start)
{
    assert_true(page_go("/web/arena.html?lang=en"));
    json_t *ends = browser_run(
        browser, "return Promise.all([import('/web/arena_tile.js'), fetch('/v1/guards')])"
                 "  .then(([{ Tile }, answer]) => answer.json().then(({ guards }) => guards"
                 "    .filter(guard => guard.caps.includes('lease') && !new Tile("
                 "      document.createElement('ul'), { guard: guard.name }, guard, {}).surelyEnds)"
                 "    .map(({ name }) => name).join()));");
    assert_string_equal(json_string_value(ends), "redis-setnx-expire");
    json_decref(ends);
}

TEST_THAT(a_link_that_cannot_be_honoured_says_what_it_does_instead)
{
    assert_true(
        page_go("/web/arena.html?fault=quake&lease=5&watchdog=yes&colour=red&stock=50&lang=en"));
    assert_true(
        browser_await(browser, NOTICES("fault=quake: must be one of none, pause"), PAGE_WAIT_MS));
    assert_true(browser_is(browser, NOTICES("lease=5: must be 100 to 10,000; 3000 instead")));
    assert_true(browser_is(browser, NOTICES("watchdog=yes: must be one of on, off; off instead")));
    assert_true(browser_is(browser, NOTICES("colour: there is no such setting")));
    assert_true(browser_is(browser, "document.querySelector('[name=stock]').value === '50'"));
}

/* In the page: the first question to each lock server about a lock is lost. */
static const char loses_answers[] =
    "const real = window.fetch;"
    "window.asked = {};"
    "window.fetch = (path, options) => {"
    "  if (!path.startsWith('/v1/lab/locks/')) return real(path, options);"
    "  asked[path] = (asked[path] ?? 0) + 1;"
    "  return asked[path] > 1 ? real(path, options)"
    "    : Promise.resolve(new Response('{\"type\":\"unavailable\"}', { status: 503 }));"
    "};";

/* One process: mutex excludes all. */
TEST_THAT(one_instance_is_told_and_its_mutex_loses_nothing)
{
    assert_true(arena_open(ARENA_REDIS, "buyers=60&stock=40"));
    json_decref(browser_run(browser, loses_answers));
    page_click("#start");
    assert_true(arena_await_end());
    assert_true(browser_is(browser, "[...document.querySelectorAll('.tile')].every(tile =>"
                                    " asked[`/v1/lab/locks/${tile.dataset.resource}`] >= 2)"));
    assert_true(browser_is(browser, NOTICES("no second instance")));
    assert_int_equal(arena_contradictions(ARENA_REDIS), 0);
    assert_true(browser_is(browser, "!(" TILE_IS("mutex", "bad") ")"));
    assert_true(browser_is(browser, TILE_IS("none", "bad")));
}

/* Last: the service is gone then. */
TEST_THAT(a_service_that_is_gone_is_told_and_what_was_seen_stays)
{
    assert_true(page_go("/web/arena.html?lang=en&buyers=2000&stock=1000"));
    page_click("#start");
    assert_true(browser_await(
        browser, "/sold [1-9]\\d* of/.test(" TILE("redis-token") ".textContent)", PAGE_WAIT_MS));
    assert_int_equal(sandbox_signal(page.shop.service, SIGTERM), 0);
    assert_true(browser_await(browser, NOTICES("The service does not answer"), PAGE_WAIT_MS));
    assert_true(
        browser_is(browser, "/sold [1-9]\\d* of/.test(" TILE("redis-token") ".textContent)"));
    browser_errors(browser); /* says that it is gone */
}
