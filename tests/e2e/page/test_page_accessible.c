/* The pages under axe-core, the accessibility checker, in the states a user sees them in: in two
 * languages, light and dark, on a projector and on a phone. */
#include "page_rig.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

static struct browser *const browser = &page.browser;
static char *axe; /* its source: the Makefile has put it into the build folder */

static int read_axe(void)
{
    FILE *file = fopen(shop_binary("axe.min.js"), "r");
    size_t size = 0;
    if (file == NULL || getdelim(&axe, &size, '\0', file) <= 0) {
        perror(shop_binary("axe.min.js"));
        return -1;
    }
    fclose(file);
    return 0;
}

static int open_all(void **state)
{
    return read_axe() == 0 ? page_open_demo(state) : -1;
}

static int close_all(void **state)
{
    free(axe);
    return page_close(state);
}

/* What axe finds wrong in what is shown now, printed; how many findings. */
static size_t findings(const char *where)
{
    json_t *list = browser_run(
        browser,
        "return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>"
        " violations.flatMap(({ id, impact, nodes }) => nodes.map(({ target, any }) =>"
        " `${impact} ${id}: ${target} ${any.map(({ message }) => message)}`)));");
    size_t i;
    json_t *finding;
    json_array_foreach(list, i, finding)
    {
        fprintf(stderr, "%s: %s\n", where, json_string_value(finding));
    }
    const size_t n = json_array_size(list);
    json_decref(list);
    return n;
}

/* Every language with every colour scheme, every scheme at every size, every size in every
 * language: four looks have all these pairs. */
static size_t findings_in_all_looks(const char *what)
{
    static const struct look {
        const char *lang;
        bool dark;
        int width, height;
    } looks[] = {{"en", false, 1280, 720},
                 {"zh", false, 390, 844},
                 {"zh", true, 1280, 720},
                 {"en", true, 390, 844}};
    size_t n = 0;
    json_decref(browser_run(browser, axe));
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        const struct look *look = &looks[i];
        char where[100];
        browser_size(browser, look->width, look->height);
        page_choose("#lang", look->lang);
        browser_dark(browser, look->dark);
        snprintf(where, sizeof where, "%s, %s, %s, %d wide", what, look->lang,
                 look->dark ? "dark" : "light", look->width);
        n += findings(where);
    }
    return n;
}

GROUP_FIXTURE(open_all, close_all);

TEST_THAT(a_planted_fault_is_found)
{
    assert_true(page_go("/?lang=en"));
    json_decref(browser_run(browser, axe));
    assert_int_equal(findings("as it is"), 0);
    json_decref(browser_run(browser, "document.getElementById('start').style.color = 'gray';"
                                     "document.querySelector('[name=stock]').parentElement"
                                     ".replaceWith(document.querySelector('[name=stock]'));"));
    assert_int_equal(findings("planted"), 2);
}

TEST_THAT(the_page_of_sales_is_accessible_before_any_sale)
{
    assert_true(page_go("/?lang=en"));
    assert_int_equal(findings_in_all_looks("before"), 0);
}

TEST_THAT(a_lost_sale_and_its_details_are_accessible)
{
    /* Lost for certain, however busy the machine is: the lock is deleted under its holder. */
    assert_true(page_go("/?a=redis-token&a_fence=off&b=redis-token&b_fence=on&fault=flush"
                        "&buyers=200&stock=100&countdown=0&lang=en"));
    page_click("#start");
    assert_true(browser_await(browser,
                              "document.querySelector('.lane.clash') !== null && "
                              "!document.getElementById('start').disabled",
                              PAGE_SALE_MS));
    json_decref(browser_run(browser, "document.querySelector('.lane.clash')"
                                     ".dispatchEvent(new Event('click'));"));
    assert_true(browser_await(browser, "!document.getElementById('detail').hidden", PAGE_WAIT_MS));
    assert_true(browser_is(browser, "document.querySelector('.pane').dataset.state === 'bad'"));
    assert_int_equal(findings_in_all_looks("after a lost sale"), 0);
}

TEST_THAT(the_page_of_steps_is_accessible)
{
    assert_true(page_go("/web/steps.html?ex=lost-update&lang=en"));
    assert_int_equal(findings_in_all_looks("steps"), 0);
    assert_true(page_go("/web/steps.html?ex=locked&lang=en"));
    assert_true(browser_is(browser, "!document.getElementById('betAsk').hidden"));
    assert_int_equal(findings_in_all_looks("steps, a bet"), 0);
}

TEST_THAT(money_lost_step_by_step_is_told_accessibly)
{
    assert_true(page_go("/web/steps.html?ex=lost-update&lang=en"));
    json_decref(browser_run(browser, "document.getElementById('help').open = true;"));
    for (int step = 0; step < 6; step++) { /* A and B in turn: both read before either writes */
        char button[100], ready[200];
        snprintf(button, sizeof button, "[data-name=%s] .move", step % 2 == 0 ? "A" : "B");
        snprintf(ready, sizeof ready, "document.querySelector('%s')?.disabled === false", button);
        assert_true(browser_await(browser, ready, PAGE_WAIT_MS));
        page_click(button);
    }
    assert_true(browser_await(browser, "document.getElementById('verdict').dataset.state === 'bad'",
                              PAGE_WAIT_MS));
    assert_true(browser_is(browser, "!document.getElementById('mend').hidden"));
    assert_int_equal(findings_in_all_looks("steps, money lost"), 0);
}

/* After the one above. */
TEST_THAT(a_schedule_found_is_told_accessibly)
{
    page_click("#find");
    assert_true(browser_await(browser,
                              "document.getElementById('found').dataset.state === 'bad' && "
                              "[...document.querySelectorAll('.move')].every((b) => b.textContent)",
                              PAGE_WAIT_MS)); /* the requests on the board have been looked at */
    assert_int_equal(findings_in_all_looks("steps, schedule found"), 0);
}

/* After a run the tiles get each state once, for their colours. */
TEST_THAT(the_arena_is_accessible)
{
    assert_true(page_go("/web/arena.html?lang=en&buyers=40&stock=30"));
    assert_int_equal(findings_in_all_looks("arena, before"), 0);
    page_choose("#lang", "en");
    page_click("#start");
    assert_true(browser_await(
        browser, "/^Over/.test(document.getElementById('summary').textContent)", PAGE_SALE_MS));
    json_decref(browser_run(browser, "['good', 'bad', 'stuck', 'refused', 'unknown'].forEach("
                                     "(state, i) => { document.querySelectorAll('.tile')[i]"
                                     ".dataset.state = state; });"));
    assert_int_equal(findings_in_all_looks("arena, after"), 0);
}
