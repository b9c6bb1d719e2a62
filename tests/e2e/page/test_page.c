/* The live page in a real browser, with real sales. */
#include "page_rig.h"
#include "process.h"
#include "tests.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct browser *const browser = &page.browser;

static int open_all(void **state)
{
    (void)state;
    return page_open((const char *const[]){"--demo", NULL});
}

#define LEFT(i)                                                                                    \
    "parseInt(" PANE(i) ".querySelector('.number').textContent.replace(/,/g, '').replace('−', "  \
                        "'-'))"

GROUP_FIXTURE(open_all, page_close);

TEST_THAT(a_sale_without_a_lock_ends_red_one_with_a_lock_at_exactly_0)
{
    browser_size(browser, 1280, 720);
    assert_true(page_go("/?a=none&b=redis-token&buyers=3000&stock=1000&countdown=0"
                        "&lang=en"));
    page_click("#start");
    assert_true(page_sold(ENDED));

    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'bad'"));
    assert_true(browser_is(
        browser,
        "getComputedStyle(" PANE(0) ".querySelector('.number')).color === "
                                    "getComputedStyle(" PANE(
                                        0) ".querySelector('.verdict')).color && "
                                           "/OVERSOLD/.test(" PANE(
                                               0) ".querySelector('.verdict').textContent)"));
    const int64_t oversold = browser_number(browser, FIGURE(0, "oversold"));
    assert_true(oversold > 0);
    assert_int_equal(browser_number(browser, LEFT(0)), -oversold);
    assert_true(browser_number(browser, FIGURE(0, "lost")) > 0);
    assert_true(browser_number(browser, PANE(0) ".querySelectorAll('.lane.clash').length") > 1);

    assert_true(browser_is(browser, PANE(1) ".dataset.state === 'good'"));
    assert_int_equal(browser_number(browser, LEFT(1)), 0);
    assert_int_equal(browser_number(browser, FIGURE(1, "sold")), 1000);
    assert_int_equal(browser_number(browser, FIGURE(1, "lost")), 0);
    assert_true(browser_number(browser, PANE(1) ".querySelectorAll('.lane').length") > 1);
    assert_int_equal(browser_number(browser, PANE(1) ".querySelectorAll('.lane.clash').length"), 0);
    assert_int_equal(browser_errors(browser), 0);
}

/* After the sale above. The lines' last heights are read off between the ticks. */
TEST_THAT(the_chart_ends_at_what_is_left_and_beside_it_at_what_the_row_says)
{
    enum { PIECES_PER_PX, LEFT_LINE, LEFT_SHOWN, ROW_LINE, ROW_SHOWN, FIGURES };
    json_t *panes = browser_run(
        browser, "return [...document.querySelectorAll('.pane')].map((pane) => {"
                 "  const number = (e) => Number(e.textContent.replace(',', '').replace('−', '-'));"
                 "  const ticks = [...pane.querySelectorAll('.ys .tick')].map("
                 "    (tick) => ({ value: number(tick), y: tick.transform.baseVal[0].matrix.f }));"
                 "  const first = ticks[0], last = ticks[ticks.length - 1];"
                 "  const per_px = (last.value - first.value) / (last.y - first.y);"
                 "  const end = (line) => first.value + per_px *"
                 "    (pane.querySelector(line).getAttribute('d').match(/[\\d.]+$/)[0] - first.y);"
                 "  const shown = (name) => number(pane.querySelector(name));"
                 "  return [-per_px, end('.above .curve'), shown('.number'), end('.chart .row'),"
                 "    shown('[data-is=row]')]; });");
    assert_int_equal(json_array_size(panes), 2);
    for (size_t i = 0; i < 2; i++) {
        double is[FIGURES];
        for (size_t k = 0; k < FIGURES; k++)
            is[k] = json_number_value(json_array_get(json_array_get(panes, i), k));
        const double rounding = 2 * is[PIECES_PER_PX];
        assert_true(rounding > 0);
        assert_true(fabs(is[LEFT_LINE] - is[LEFT_SHOWN]) <= rounding);
        assert_true(fabs(is[ROW_LINE] - is[ROW_SHOWN]) <= rounding);
    }
    json_decref(panes);
    assert_true(browser_is(browser, "[...document.querySelectorAll('.pane')].every(pane =>"
                                    "pane.querySelectorAll('.xs .tick').length > 1 &&"
                                    "[...pane.querySelectorAll('.xs .tick')].every("
                                    "tick => /^[\\d.]+ s$/.test(tick.textContent)))"));
}

/* After the sale above. */
TEST_THAT(the_chart_is_red_below_zero_only)
{
#define RED       "getComputedStyle(" PANE(0) ".querySelector('.verdict')).color"
#define STROKE(s) "getComputedStyle(" PANE(0) ".querySelector('" s " .curve')).stroke"
#define BELOW(i)  PANE(i) ".querySelector('.below')"
    assert_true(browser_is(browser, STROKE(".below") " === " RED));
    assert_true(browser_is(browser, STROKE(".above") " !== " RED));
    assert_true(browser_is(
        browser,
        BELOW(0) ".height.baseVal.value > 0 && " BELOW(
            0) ".y.baseVal.value === "
               "[..." PANE(
                   0) ".querySelectorAll('.ys .tick')].find(tick => tick.textContent === '0')"
                      ".transform.baseVal[0].matrix.f"));
    assert_true(browser_is(browser, BELOW(1) ".height.baseVal.value === 0"));
}

/* Thirty bought between the two who read the same. */
TEST_THAT(a_clash_is_shown_with_the_one_that_it_was_with)
{
    assert_true(browser_is(browser,
                           "import('/web/requests.js').then(({ Requests }) => {"
                           "  const requests = new Requests(); let t_us = 0;"
                           "  const buy = (key, read) => {"
                           "    requests.add({ key, point: 'read', value: read, t_us: t_us++ });"
                           "    requests.add({ key, point: 'committed', value: read - 1, t_us });"
                           "  };"
                           "  buy('early', 100);"
                           "  for (let i = 1; i <= 30; i++) buy(`${i}`, 100 - i);"
                           "  buy('late', 100);"
                           "  return [4, 5, 16, 32, 40].every(count => {"
                           "    const keys = requests.shown(count, true).map(r => r.key);"
                           "    return keys.includes('early') && keys.includes('late') &&"
                           "      keys.length === Math.min(count, 32);"
                           "  });"
                           "})"));
}

/* After the sale above. */
TEST_THAT(a_lane_chosen_with_the_keyboard_plays_both_writes_and_shows_the_ledger)
{
    json_decref(browser_run(browser, "document.querySelector('.lane.clash').focus(); return 1;"));
    browser_type(browser, "\xEE\x80\x87"); /* Enter */
    assert_true(browser_await(browser, "!document.getElementById('detail').hidden", PAGE_WAIT_MS));
    assert_true(
        browser_is(browser, "document.activeElement === document.getElementById('detail')"));
    /* two requests that read the same and two rows that start from one version */
    assert_true(browser_is(
        browser,
        "(() => { const [ledger] = [...document.querySelectorAll('#detail table')].map("
        "t => [...t.rows].slice(1).map(r => [...r.cells].map(c => c.textContent)));"
        "const trace = document.querySelector('#detail .trace').innerText;"
        "const read = (who) => trace.match(`${who} reads (.*)`)[1];"
        "return read('A') === read('B') && ledger.length >= 2 && ledger.every("
        "row => row[1] === ledger[0][1] && row[2] === read('A')) && ledger[0][0] !== ledger[1][0];"
        "})()"));
    assert_true(browser_await(browser, PANE(0) ".querySelectorAll('.lane.chosen').length > 1",
                              PAGE_WAIT_MS));
    assert_true(page_picture("wide", 1280, 720));
    assert_true(page_picture("full-hd", 1920, 1080));
    browser_dark(browser, true);
    assert_true(page_picture("dark", 1280, 720));
    browser_dark(browser, false);
    assert_true(page_picture("phone", 390, 844));
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    page_choose("#lang", "zh");
    assert_true(browser_is(browser, "/也读到 [\\d,]+ 并写回.*流水表/.test("
                                    "document.getElementById('detail').textContent)"));
    assert_true(page_picture("chinese", 1280, 720));
    browser_type(browser, "\xEE\x80\x8C"); /* Escape */
    assert_true(browser_is(browser, "document.getElementById('detail').hidden && "
                                    "document.activeElement.classList.contains('lane')"));
    assert_true(
        browser_await(browser, PANE(0) ".querySelector('.lane.chosen') === null", PAGE_WAIT_MS));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(the_language_can_be_switched_and_stays_in_the_address)
{
    assert_true(page_go("/?a=none&b=mutex&stock=7&lang=en"));
    assert_true(browser_is(browser, "document.querySelector('h1').textContent === "
                                    "'Flash sale under a lock'"));
    page_choose("#lang", "zh");
    /* letters, not one and the same box for each */
    assert_true(browser_is(browser,
                           "(([one, other]) => one !== other)([...'秒杀'].map((letter) => {"
                           "  const canvas = document.createElement('canvas');"
                           "  canvas.getContext('2d').fillText(letter, 50, 50);"
                           "  return canvas.toDataURL(); }))"));
    assert_true(browser_is(browser, "document.documentElement.lang === 'zh' && "
                                    "document.querySelector('h1').textContent === "
                                    "'分布式锁下的秒杀' && /lang=zh/.test(location.search)"));
    assert_true(browser_is(browser, "document.querySelectorAll('[data-text]').length > 10 && "
                                    "[...document.querySelectorAll('[data-text]')].every("
                                    "e => e.textContent !== '')"));
    assert_true(browser_is(browser, "document.querySelector('[name=stock]').value === '7' && "
                                    "document.querySelector('[name=b]').value === 'mutex'"));
    assert_int_equal(browser_errors(browser), 0);
}

/* The content policy is not only sent but effective. */
TEST_THAT(nothing_but_its_own_files_is_loaded)
{
    assert_true(page_go("/?"));
    assert_true(browser_is(browser, "performance.getEntriesByType('resource').every("
                                    "e => e.name.startsWith(location.origin))"));
    json_decref(browser_run(browser, "window.caught = 0; document.addEventListener("
                                     "'securitypolicyviolation', () => window.caught++);"
                                     "const s = document.createElement('script');"
                                     "s.textContent = 'window.ran = 1'; document.body.append(s);"
                                     "return 1;"));
    assert_true(
        browser_await(browser, "window.caught > 0 && window.ran === undefined", PAGE_WAIT_MS));
    browser_errors(browser); /* says that it was refused */
}

TEST_THAT(a_packaged_library_comes_with_its_terms)
{
    assert_true(browser_is(browser, "d3.version.startsWith('3.') && fetch('/web/d3-copyright.txt')"
                                    ".then((answer) => answer.text())"
                                    ".then((terms) => /Michael Bostock/.test(terms))"));
}

/* Asked by the page: of a slow sale the report is longer than our own client takes. */
static bool no_sale_runs(void *arg)
{
    (void)arg;
    return browser_is(browser, "fetch('/v1/demo/sales').then((answer) => answer.json())"
                               ".then(({ state }) => state !== 'running')");
}

TEST_THAT(one_sale_at_a_time_and_none_that_is_malformed)
{
    static const char same_ids[] = "{\"sales\":[{\"guard\":\"mutex\",\"run_id\":\"x\"},"
                                   "{\"guard\":\"sql-row\",\"run_id\":\"x\"}]}";
    static const char *const bad[] = {"{}",
                                      "{\"sales\":[]}",
                                      "{\"sales\":[{\"guard\":\"--html=/x\"}]}",
                                      "{\"sales\":[{\"guard\":\"none\",\"lease_ms\":-1}]}",
                                      "{\"sales\":[{\"guard\":\"none\",\"fence\":1}]}",
                                      "{\"sales\":[{\"guard\":\"none\",\"more\":1}]}",
                                      same_ids,
                                      "{\"sales\":[{\"guard\":\"none\"}],\"buyers\":20001}",
                                      "{\"sales\":[{\"guard\":\"none\"}],\"more\":1}"};
    struct client client = {.port = page.shop.service->port, .fd = -1};
    struct reply reply;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            client_call(&client, "POST", "/v1/demo/sales", NULL, bad[i], PAGE_WAIT_MS, &reply),
            400);
    assert_true(wait_until(no_sale_runs, NULL, PAGE_SALE_MS));
    const char *slow = "{\"sales\":[{\"guard\":\"mutex\"}],\"buyers\":2000,\"rate\":100}";
    assert_int_equal(
        client_call(&client, "POST", "/v1/demo/sales", NULL, slow, PAGE_WAIT_MS, &reply), 201);
    assert_int_equal(
        client_call(&client, "POST", "/v1/demo/sales", NULL, slow, PAGE_WAIT_MS, &reply), 409);
    client_close(&client);
}

/* The service's child, whichever of its threads has started it; pid 0: it has none. */
static struct process child_of_service(void)
{
    char path[300];
    int pid = 0;
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%d/task", (int)page.shop.service->pid);
    DIR *tasks = opendir(path);
    while (tasks != NULL && pid == 0 && (entry = readdir(tasks)) != NULL) {
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)page.shop.service->pid,
                 entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fscanf(file, "%d", &pid) != 1)
            pid = 0;
        if (file != NULL)
            fclose(file);
    }
    if (tasks != NULL)
        closedir(tasks);
    return pid > 0 ? process_of(pid) : (struct process){.pid = 0};
}

/* The sale above would take 20 s: it ends with the service. Last: the service is gone then. */
TEST_THAT(a_service_that_ends_takes_its_sale_along_and_the_page_says_so)
{
    assert_true(page_go("/?lang=en"));
    assert_false(no_sale_runs(NULL));
    const struct process sale = child_of_service();
    assert_true(process_runs(sale));
    const int64_t begun_ms = test_now_ms();
    const int status = sandbox_signal(page.shop.service, SIGTERM);
    assert_int_equal(status, 0);
    assert_true(process_gone(sale));
    assert_true(test_now_ms() - begun_ms < 15000);
    assert_true(browser_await(
        browser, "/connecting/.test(document.getElementById('connection').textContent)",
        PAGE_WAIT_MS));
}
