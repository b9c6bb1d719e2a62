/* Step mode of the live page in a real browser: requests moved by hand, with keys, on real servers;
 * and all orders tried by the page itself. */
#include "../lib/page_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SEARCH_MS = 120000 };

static struct page_rig rig;
static struct browser *const browser = &rig.browser;

static int open_all(void **state)
{
    (void)state;
    return page_open(&rig, (const char *const[]){"--lab", NULL});
}

static int close_all(void **state)
{
    (void)state;
    return page_close(&rig);
}

static void go(const char *query)
{
    char path[300];
    snprintf(path, sizeof path, "/web/steps.html?%s", query);
    assert_true(page_go(&rig, path));
    assert_true(
        browser_await(browser, "document.querySelectorAll('.actor').length > 1", PAGE_WAIT_MS));
}

/* One key; then that actor stands where it says: a point, or a state ("waiting", "accepted" ...).
 */
static void move(const char *name, const char *where)
{
    char key[2] = {(char)(name[0] | 0x20), '\0'}, seen[400];
    snprintf(seen, sizeof seen,
             "(() => { const actor = document.querySelector('[data-name=%s]');"
             "return actor.dataset.state === '%s' || "
             "actor.querySelector('.here')?.dataset.point === '%s'; })()",
             name, where, where);
    browser_type(browser, key);
    if (browser_await(browser, seen, PAGE_WAIT_MS))
        return;
    fail_msg("%s did not come to %s", name, where);
}

static void moves(const char *name, const char *const *points)
{
    for (; *points != NULL; points++)
        move(name, *points);
}

#define MOVES(name, ...) moves(name, (const char *const[]){__VA_ARGS__, NULL})

static bool state_is(const char *name, const char *state)
{
    char seen[200];
    snprintf(seen, sizeof seen, "document.querySelector('[data-name=%s]').dataset.state === '%s'",
             name, state);
    return browser_await(browser, seen, PAGE_WAIT_MS);
}

static bool world_is(const char *what, const char *text)
{
    char seen[200];
    snprintf(seen, sizeof seen,
             "document.querySelector('#world [data-is=%s]').textContent === '%s'", what, text);
    return browser_await(browser, seen, PAGE_WAIT_MS);
}

static bool verdict_is(const char *state, const char *word)
{
    char seen[300];
    snprintf(seen, sizeof seen,
             "document.getElementById('verdict').dataset.state === '%s' && "
             "document.getElementById('verdict').textContent.includes('%s')",
             state, word);
    return browser_await(browser, seen, PAGE_WAIT_MS);
}

/* -- steps ---------------------------------------------------------------------------------------
 */

static void without_a_lock_the_learner_makes_700_of_1000(void **state)
{
    (void)state;
    browser_size(browser, 1280, 720);
    go("ex=lost-update&lang=en");
    MOVES("A", "waiting", "acquired", "read");
    MOVES("B", "waiting", "acquired", "read");
    assert_true(world_is("value", "1,000"));
    MOVES("A", "decided", "committed");
    assert_true(world_is("value", "800"));
    MOVES("B", "decided", "committed");
    assert_true(world_is("value", "700"));
    move("A", "accepted");
    move("B", "accepted");
    assert_true(verdict_is("bad", "200 lost"));
    assert_true(verdict_is("bad", "Two ledger rows"));
    assert_true(verdict_is("bad", "whoever wrote last won"));
    assert_int_equal(browser_errors(browser), 0);
}

/* After the one above. */
static void what_happened_fits_on_projector_and_phone_in_light_and_dark(void **state)
{
    (void)state;
    assert_true(page_picture(&rig, "steps-wide", 1280, 720));
    assert_true(page_picture(&rig, "steps-full-hd", 1920, 1080));
    browser_dark(browser, true);
    assert_true(page_picture(&rig, "steps-dark", 1280, 720));
    browser_dark(browser, false);
    assert_true(page_picture(&rig, "steps-phone", 390, 844));
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    browser_size(browser, 1280, 720);
}

static void under_a_lock_b_waits_and_500_are_left(void **state)
{
    (void)state;
    go("ex=locked&lang=en");
    MOVES("A", "waiting", "acquired", "read");
    assert_true(world_is("holder", "A"));
    assert_true(browser_is(browser, "/s$/.test(document.querySelector("
                                    "'#world [data-is=left]').textContent)"));
    MOVES("B", "waiting");
    browser_type(browser, "b");
    assert_true(state_is("B", "waiting"));
    MOVES("A", "decided", "committed", "accepted");
    assert_true(state_is("B", "held")); /* it has got the lock by itself */
    assert_true(world_is("holder", "B"));
    MOVES("B", "read", "decided", "committed", "accepted");
    assert_true(world_is("value", "500"));
    assert_true(verdict_is("good", "Nothing lost"));
    assert_int_equal(browser_errors(browser), 0);
}

/* A stands between its last look at the lock and its write when its lease ends; B reads. */
static void pause_a_and_let_b_read(void)
{
    MOVES("A", "waiting", "checked");
    assert_true(world_is("holder", "free"));
    MOVES("B", "waiting", "decided");
    assert_true(world_is("holder", "B"));
    move("A", "committed");
    move("A", "accepted");
}

static void a_holder_paused_past_its_lease_loses_money_without_a_fence(void **state)
{
    (void)state;
    go("ex=paused-holder&lease=2500&lang=en");
    pause_a_and_let_b_read();
    MOVES("B", "committed", "accepted");
    assert_true(world_is("value", "700"));
    assert_true(verdict_is("bad", "200 lost"));
}

static void with_a_fence_b_has_to_read_again(void **state)
{
    (void)state;
    go("ex=paused-holder-fence&lease=2500&lang=en");
    pause_a_and_let_b_read();
    assert_true(world_is("value", "800"));
    browser_type(browser, "b");
    assert_true(browser_await(browser,
                              "/refused.*reads 800/.test(document.getElementById('log')"
                              ".textContent) && document.querySelector('[data-name=B]')"
                              ".dataset.state === 'held'",
                              PAGE_WAIT_MS));
    MOVES("B", "committed", "accepted");
    assert_true(world_is("value", "500"));
    assert_true(verdict_is("good", "Nothing lost"));
    assert_int_equal(browser_errors(browser), 0);
}

static void a_bare_del_lets_c_in_beside_b(void **state)
{
    (void)state;
    go("ex=wrong-delete&lease=1500&lang=en");
    MOVES("A", "waiting", "decided");
    assert_true(world_is("holder", "free"));
    MOVES("B", "waiting", "decided");
    assert_true(world_is("holder", "B"));
    move("A", "refused");
    assert_true(world_is("holder", "free"));
    MOVES("C", "waiting", "decided");
    assert_true(world_is("holder", "C"));
    MOVES("B", "committed", "accepted");
    MOVES("C", "committed", "accepted");
    assert_true(world_is("value", "900"));
    assert_true(verdict_is("bad", "300 lost"));
    browser_errors(browser); /* says that A was refused */
}

/* -- the last piece ------------------------------------------------------------------------------
 */

static void without_a_lock_two_buy_the_last_piece(void **state)
{
    (void)state;
    go("ex=last-piece&lang=en");
    MOVES("A", "waiting", "acquired", "read");
    MOVES("B", "waiting", "acquired", "read");
    assert_true(world_is("value", "1"));
    MOVES("A", "decided", "committed", "accepted");
    assert_true(world_is("value", "0"));
    MOVES("B", "decided", "committed", "accepted");
    assert_true(world_is("value", "0"));
    assert_true(verdict_is("bad", "Oversold by 1: the accepted orders leave −1, the row says 0"));
    assert_true(verdict_is("bad", "both sold it"));
    assert_true(page_picture(&rig, "steps-last-piece", 1280, 720));
    assert_int_equal(browser_errors(browser), 0);
}

static void under_a_lock_the_second_finds_it_sold_and_cannot_try_again(void **state)
{
    (void)state;
    go("ex=last-piece-locked&lang=en");
    MOVES("A", "waiting", "acquired", "read");
    assert_true(world_is("holder", "A"));
    MOVES("B", "waiting");
    browser_type(browser, "b");
    assert_true(state_is("B", "waiting"));
    MOVES("A", "decided", "committed", "accepted");
    assert_true(state_is("B", "held"));
    MOVES("B", "read", "decided", "committed", "refused");
    assert_true(page_picture(&rig, "steps-sold-out", 1280, 720));
    assert_true(browser_is(browser, "/writes that it is refused/.test(document.getElementById("
                                    "'log').textContent) && document.querySelector("
                                    "'[data-name=B] [data-is=wrote]').textContent === '–'"));
    assert_true(verdict_is("good", "Nothing oversold: 0"));
    assert_true(browser_is(browser, "/sold-out/.test(document.querySelector('[data-name=B] .where')"
                                    ".textContent) && "
                                    "document.querySelector('[data-name=B] .move').disabled"));
    browser_errors(browser); /* says that B was refused */
}

/* -- all orders ----------------------------------------------------------------------------------
 */

/* Searches to its end, which must be of this state. */
static void find(const char *query, bool may_vanish, const char *state)
{
    char ended[200];
    go(query);
    if (may_vanish)
        page_click(&rig, "#mayVanish");
    page_click(&rig, "#find");
    snprintf(ended, sizeof ended, "/[✓✗]/.test(document.getElementById('found').textContent)");
    assert_true(browser_await(browser, ended, SEARCH_MS));
    snprintf(ended, sizeof ended, "document.getElementById('found').dataset.state === '%s'", state);
    assert_true(browser_is(browser, ended));
}

static void the_page_finds_a_schedule_that_loses_money(void **state)
{
    (void)state;
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

static void the_page_tries_all_orders_under_a_lock_and_none_loses(void **state)
{
    (void)state;
    find("ex=locked&lang=en", false, "good");
    /* one after the other, and the other one asks before, or at one of three points of the first */
    assert_true(browser_is(browser, "/all 6 orders.* 4 times/.test("
                                    "document.getElementById('found').textContent)"));
    assert_int_equal(browser_errors(browser), 0);
}

static void the_page_finds_a_schedule_that_oversells(void **state)
{
    (void)state;
    find("ex=last-piece&lang=en", false, "bad");
    assert_true(browser_is(browser, "document.getElementById('found').textContent.includes("
                                    "'oversells by 1: 0 left instead of −1')"));
    browser_errors(browser); /* says that some of them were refused */
}

static void the_page_tries_all_orders_for_the_last_piece_under_a_lock(void **state)
{
    (void)state;
    find("ex=last-piece-locked&lang=en", false, "good");
    assert_true(browser_is(browser, "/all 6 orders.*none oversells.* 4 times/.test("
                                    "document.getElementById('found').textContent)"));
    browser_errors(browser); /* says that the second was refused each time */
}

static void a_lock_that_vanishes_loses_money_without_a_fence(void **state)
{
    (void)state;
    find("ex=locked&fence=off&lang=en", true, "bad");
    assert_true(browser_is(browser, "[...document.querySelectorAll('#schedule li')].some("
                                    "line => /vanishes/.test(line.textContent))"));
    assert_int_equal(browser_errors(browser), 0);
}

/* -- the page itself -----------------------------------------------------------------------------
 */

static void settings_and_language_stand_in_the_address(void **state)
{
    (void)state;
    go("ex=wrong-delete&guard=redis-fair&lease=7000&fence=on&lang=en");
    assert_true(browser_is(browser, "document.querySelectorAll('.actor').length === 3 && "
                                    "document.querySelector('[name=guard]').value === "
                                    "'redis-fair' && "
                                    "document.querySelector('[name=lease]').value === '7000' && "
                                    "document.querySelector('[name=fence]').value === 'on'"));
    page_choose(&rig, "#lang", "zh");
    assert_true(browser_is(browser, "document.documentElement.lang === 'zh' && "
                                    "/lang=zh/.test(location.search) && "
                                    "/guard=redis-fair/.test(location.search) && "
                                    "/删错了锁/.test(document.querySelector('[name=ex]')"
                                    ".selectedOptions[0].textContent)"));
    assert_true(browser_is(browser, "[...document.querySelectorAll('[data-text]')].every("
                                    "e => e.textContent !== '')"));
    MOVES("B", "waiting", "decided");
    MOVES("A", "waiting");
    browser_type(browser, "a");
    assert_true(state_is("A", "waiting"));
    assert_true(page_picture(&rig, "steps-chinese", 1280, 720));
    assert_true(browser_is(browser, "[...document.querySelectorAll('.card dd')].every("
                                    "e => e.scrollWidth <= e.clientWidth)"));
    assert_int_equal(browser_errors(browser), 0);
}

static void without_lab_the_page_says_so(void **state)
{
    (void)state;
    char db[SANDBOX_TEXT_MAX + 32], url[SANDBOX_TEXT_MAX + 32];
    snprintf(db, sizeof db, "sqlite:%s/plain.db", sandbox_dir(rig.shop.sandbox));
    struct sandbox_server *plain =
        sandbox_seckilld(rig.shop.sandbox, shop_binary("seckilld"),
                         (const char *const[]){"--db", db, "--guard", "mutex", NULL});
    assert_non_null(plain);
    snprintf(url, sizeof url, "%s/web/steps.html?lang=en", plain->url);
    browser_go(browser, url);
    assert_true(browser_await(browser,
                              "/--lab/.test(document.getElementById('message').textContent) && "
                              "document.getElementById('again').disabled",
                              PAGE_WAIT_MS));
    assert_int_equal(browser_errors(browser), 0);
    assert_true(shop_stop(plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_lock_the_learner_makes_700_of_1000),
        cmocka_unit_test(what_happened_fits_on_projector_and_phone_in_light_and_dark),
        cmocka_unit_test(under_a_lock_b_waits_and_500_are_left),
        cmocka_unit_test(a_holder_paused_past_its_lease_loses_money_without_a_fence),
        cmocka_unit_test(with_a_fence_b_has_to_read_again),
        cmocka_unit_test(a_bare_del_lets_c_in_beside_b),
        cmocka_unit_test(without_a_lock_two_buy_the_last_piece),
        cmocka_unit_test(under_a_lock_the_second_finds_it_sold_and_cannot_try_again),
        cmocka_unit_test(the_page_finds_a_schedule_that_loses_money),
        cmocka_unit_test(the_page_finds_a_schedule_that_oversells),
        cmocka_unit_test(the_page_tries_all_orders_for_the_last_piece_under_a_lock),
        cmocka_unit_test(the_page_tries_all_orders_under_a_lock_and_none_loses),
        cmocka_unit_test(a_lock_that_vanishes_loses_money_without_a_fence),
        cmocka_unit_test(settings_and_language_stand_in_the_address),
        cmocka_unit_test(without_lab_the_page_says_so),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
