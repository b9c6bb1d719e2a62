/* The levels are true of the code as it is: all schedules of each level are recorded anew on real
 * servers, and judged here from their events and ledger rows alone. Then the site's game is played
 * in a browser. */
#include "levels_reader.h"
#include "museum_looks.h"
#include "museum_rig.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct browser *const browser = &museum.browser;

/* `loadgen site` with these levels and nothing else. Returns its exit status. */
static int make_site(const char *levels, const char *folder)
{
    char lab[MUSEUM_PATH_MAX];
    json_t *empty = json_pack("{s:[]}", "results");
    snprintf(lab, sizeof lab, "%s/lab.json", sandbox_dir(museum.sandbox));
    const int dumped = json_dump_file(empty, lab, 0);
    json_decref(empty);
    return dumped == 0
               ? museum_run("loadgen", (const char *const[]){"site", "--lab", lab, "--levels",
                                                             levels, "--out", folder, NULL})
               : -1;
}

/* -- the tests ---------------------------------------------------------------------------------
 */

TEST_THAT(each_level_is_as_its_data_say)
{
    size_t i, k, levels = 0;
    json_t *level, *run;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        json_int_t losing = 0, fewest = 0;
        const json_t *runs = json_object_get(tree_of(level), "runs");
        if (tree_of(level) == NULL)
            continue;
        json_array_foreach(runs, k, run)
        {
            const bool loses = written(level, run) != expected(level, run);
            const int n = moves_to_loss(run);
            assert_int_equal(figure(run, "final"), written(level, run));
            assert_int_equal(figure(run, "expected"), expected(level, run));
            assert_int_equal(loses, n >= 0);
            assert_int_equal(loses, figure(run, "lost_updates") > 0);
            losing += loses;
            if (loses && (fewest == 0 || n < fewest))
                fewest = n;
        }
        if (losing != figure(level, "losing") || fewest != figure(level, "fewest") ||
            (json_int_t)json_array_size(runs) != figure(level, "schedules"))
            fail_msg("%s: %zu schedules, %lld lose, with %lld moves at the fewest",
                     text_of(level, "id"), json_array_size(runs), (long long)losing,
                     (long long)fewest);
        assert_int_equal(figure(tree_of(level), "fewest"), fewest);
        levels++;
    }
    assert_int_equal(levels, 9);
}

static size_t common(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] != '\0' && a[n] == b[n])
        n++;
    return n;
}

/* The schedules are all different, and two runs with the same first moves have the same events up
 * to there. */
TEST_THAT(the_same_moves_have_the_same_effect)
{
    size_t i, k, m, compared = 0;
    json_t *level, *run, *other;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        const json_t *runs = json_object_get(tree_of(level), "runs");
        json_array_foreach(runs, k, run)
        {
            json_array_foreach(runs, m, other)
            {
                const char *a = text_of(run, "moves"), *b = text_of(other, "moves");
                const size_t n = common(a, b);
                if (m >= k)
                    break;
                assert_true(n < strlen(a) && n < strlen(b));
                if (n == 0)
                    continue;
                assert_true(json_equal(at(json_object_get(run, "ends"), n - 1),
                                       at(json_object_get(other, "ends"), n - 1)));
                compared++;
            }
        }
    }
    assert_true(compared > 1000);
}

/* Under the fence an older holder's write never comes after a newer one's. */
TEST_THAT(under_the_fence_the_ledgers_fences_never_fall)
{
    size_t i, k, m, refused = 0, ignored;
    json_t *level, *run, *row;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        if (strcmp(text_of(level, "id"), "paused-holder-fence") != 0)
            continue;
        json_array_foreach(json_object_get(tree_of(level), "runs"), k, run)
        {
            json_int_t last = 0;
            json_array_foreach(json_object_get(run, "rows"), m, row)
            {
                assert_true(json_integer_value(at(row, 4)) >= last);
                last = json_integer_value(at(row, 4));
            }
            refused += count(run, "A", "answer 503 lock-lost", &ignored);
        }
    }
    assert_true(refused > 0);
}

/* -- the game on the site ----------------------------------------------------------------------
 */

/* In the page: the element of the level that was pressed last. */
#define GAME "window.pressed"

static void go(const char *page)
{
    assert_true(museum_go(page));
}

static void assert_shows(const char *selector, const char *words)
{
    char script[400];
    snprintf(script, sizeof script, GAME ".querySelector('%s').textContent.includes('%s')",
             selector, words);
    if (!browser_await(browser, script, MUSEUM_WAIT_MS))
        fail_msg("%s does not say: %s", selector, words);
}

/* Clicks in the level. */
static void press(const char *level, const char *selector)
{
    char script[300];
    snprintf(script, sizeof script,
             GAME " = document.getElementById('%s'); " GAME ".querySelector('%s').click();", level,
             selector);
    json_decref(browser_run(browser, script));
}

TEST_THAT(a_level_is_won_with_keys_and_the_ledger_proves_it)
{
    go("levels.html#lost-update");
    press("lost-update", "[data-do=A]");
    assert_shows(".caption", "A reads 1,000");
    browser_type(browser, "bab");
    assert_shows(".count", "lost, after 4 moves. The fewest possible: 4.");
    assert_shows(".result", "the accepted requests leave 500, the row says 700");
    assert_shows(".row .over", "has overwritten the change of");
    assert_true(browser_is(browser, GAME ".querySelectorAll('.result td').length === 10"));
    assert_int_equal(browser_errors(browser), 0);
}

/* After the one above. */
TEST_THAT(a_move_is_taken_back_and_made_otherwise)
{
    browser_type(browser, "\ue003"); /* Backspace */
    assert_shows(".row .value", "800");
    assert_true(browser_is(browser, GAME ".querySelector('.result').hidden"));
    press("lost-update", ".moves li:nth-child(2) button");
    assert_true(browser_is(browser, GAME ".querySelectorAll('.moves li').length === 1"));
    browser_type(browser, "aabbb");
    assert_shows(".result", "Nothing is lost in this order");
    assert_shows(".result", "and the row says 500");
    browser_type(browser, "c"); /* there is no C */
    assert_true(browser_is(browser, GAME ".querySelectorAll('.moves li').length === 6"));
}

TEST_THAT(a_bet_is_judged_by_all_orders)
{
    go("levels.html#locked");
    press("locked", "[data-do=A]");
    assert_shows(".count", "Does any order lose an update at all?");
    press("locked", "[data-do=yes]");
    assert_true(browser_is(browser, GAME ".querySelector('.count').textContent === 'Moves: 1.'"));
    assert_shows(".bet", "You were wrong. All 6 orders were tried on the real service.");
    press("paused-holder", "[data-do=A]");
    press("paused-holder", "[data-do=yes]");
    assert_shows(".bet", "You were right. 12 of 38 orders lose an update.");
    assert_shows(".count", "The fewest that lose an update: 4.");
}

TEST_THAT(the_fenced_level_is_not_won_by_any_of_its_orders)
{
    go("levels.html#paused-holder-fence");
    press("paused-holder-fence", "[data-do=A]");
    browser_type(browser, "wbba");
    assert_shows(".caption", "A\\'s write is refused");
    browser_type(browser, "b");
    assert_shows(".result", "All 38 orders were tried on the real service. None loses");
    assert_shows(".result", "the late write of the older holder was refused");
    press("paused-holder-fence", "[data-do=find]");
    assert_true(browser_is(browser, GAME ".querySelectorAll('.leaf').length === 38 && " GAME
                                         ".querySelectorAll('.leaf.loses').length === 0"));
}

TEST_THAT(a_schedule_that_loses_is_found_drawn_and_played)
{
    go("zh/levels.html#wrong-delete");
    press("wrong-delete", "[data-do=find]");
    assert_true(browser_is(browser, GAME ".querySelectorAll('.leaf').length === 36 && " GAME
                                         ".querySelectorAll('.leaf.loses').length === 12 && " GAME
                                         ".querySelectorAll('.forest ol li').length === 36"));
    assert_shows(".result", "流水表可以证明：按成功的请求应剩 600，数据库里却是 900");
    assert_true(browser_is(browser, GAME ".querySelectorAll('.edge.on').length === 7"));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(the_fence_mends_what_an_identifier_does_not)
{
    go("levels.html#mend-pause");
#define MENDS(choice, words)                                                                       \
    press("mend-pause", "[data-do=" choice "]");                                                   \
    assert_true(browser_is(browser, "document.querySelector('#mend-pause .result').textContent."   \
                                    "includes('" words "')"))
    /* the list that lost stands there before a choice */
    assert_true(browser_is(browser,
                           "document.querySelectorAll('#mend-pause .result ol li').length > 4 && "
                           "document.querySelector('#mend-pause .result').textContent.includes("
                           "'the accepted requests leave 500, the row says 800')"));
    MENDS("paused-holder", "Not mended: 12 of 38 orders still lose an update.");
    MENDS("paused-holder", "the row says 800");
    MENDS("paused-holder-fence", "A\\'s write is refused: its lock is lost");
    MENDS("paused-holder-fence", "Mended. All 38 orders were tried on the real service.");
    assert_int_equal(browser_errors(browser), 0);
}

/* In the page: of each run, what the picture shows in the end, and at which move it shows a loss.
 */
#define CONTRADICTIONS                                                                             \
    "return Museum.levelData.levels.filter(({ runs }) => runs).flatMap((level) =>"                 \
    "  level.runs.flatMap((run) => {"                                                              \
    "    const record = { ...level.record, events: run.events };"                                  \
    "    const row = (n) => Museum.state(record, run.ends[n] - 1).row;"                            \
    "    const shown = run.ends.findIndex((_, n) => row(n).over !== '') + 1;"                      \
    "    const last = row(run.ends.length - 1);"                                                   \
    "    return last.value === run.final && last.version === run.rows.at(-1)[3] + 1 && shown === " \
    "(run.lost_at || 0)"                                                                           \
    "      ? [] : [`${level.id} ${run.moves}: ${shown}`]; }));"

TEST_THAT(each_picture_ends_as_its_run_and_shows_a_loss_where_the_ledger_has_it)
{
    go("levels.html");
    json_t *wrong = browser_run(browser, CONTRADICTIONS), *one;
    size_t i;
    json_array_foreach(wrong, i, one)
    {
        fprintf(stderr, "%s\n", json_string_value(one));
    }
    assert_int_equal(json_array_size(wrong), 0);
    json_decref(wrong);
    assert_true(browser_is(browser, "Museum.levelData.levels.length === 10"));
}

TEST_THAT(each_solution_is_a_list_that_is_closed_at_first)
{
    go("levels.html");
    assert_true(browser_is(browser,
                           "[...document.querySelectorAll('.level')].every((level) => "
                           "level.querySelectorAll(':scope > details.solution:not([open]) li')"
                           ".length > 1 && "
                           "level.querySelector('.lesson').textContent.length > 20)"));
    assert_true(browser_is(browser, "/write is refused/.test(document.querySelector("
                                    "'#paused-holder-fence .solution').textContent)"));
}

TEST_THAT(the_page_of_levels_has_no_accessibility_finding)
{
    static const struct {
        const char *page;
        int width;
        bool dark;
    } looks[] = {{"levels.html", 1280, false},
                 {"levels.html", 390, true},
                 {"zh/levels.html", 390, false},
                 {"zh/levels.html", 1280, true}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        char name[MUSEUM_PATH_MAX];
        go(looks[i].page);
        press("wrong-delete", "[data-do=find]");
        assert_shows(".result", "900");
        n += looks_findings_here(looks[i].page, looks[i].width, looks[i].dark);
        assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
        snprintf(name, sizeof name, "%s-%zu.png", shop_binary("levels"), i);
        browser_picture(browser, name);
    }
    browser_dark(browser, false);
    assert_int_equal(n, 0);
}

/* No site is made of the recording after it was changed, and the message has these words. */
static void assert_no_site(json_t *recording, const char *words)
{
    char file[MUSEUM_PATH_MAX], folder[SANDBOX_TEXT_MAX + 16];
    snprintf(file, sizeof file, "%s/other.json", sandbox_dir(museum.sandbox));
    snprintf(folder, sizeof folder, "%s/other", sandbox_dir(museum.sandbox));
    assert_int_equal(json_dump_file(recording, file, 0), 0);
    json_decref(recording);
    assert_int_equal(make_site(file, folder), EXIT_FAILURE);
    assert_non_null(strstr(museum.output, words));
}

TEST_THAT(a_level_that_its_recording_contradicts_makes_no_site)
{
    json_t *fewer = json_deep_copy(all), *damaged = json_deep_copy(all);
    const json_t *level = at(json_object_get(fewer, "levels"), 0);
    json_array_remove(json_object_get(tree_of(level), "runs"), 0);
    assert_no_site(fewer, "level lost-update: 19 schedules were recorded");
    level = at(json_object_get(damaged, "levels"), 1);
    json_array_clear(json_object_get(at(json_object_get(tree_of(level), "runs"), 0), "ends"));
    assert_no_site(damaged, "level locked: run 0 has another form");
    assert_no_site(json_pack("{s:[]}", "levels"), "level lost-update was not recorded");
}

/* -- set-up ------------------------------------------------------------------------------------
 */

static int open_levels(void **state)
{
    char file[MUSEUM_PATH_MAX];
    if (looks_open_empty(state) != 0)
        return -1;
    snprintf(file, sizeof file, "%s/levels.json", sandbox_dir(museum.sandbox));
    if (museum_run("loadgen", (const char *const[]){"levels", "--json", file, NULL}) != 0) {
        fprintf(stderr, "loadgen levels: %s\n", museum.output);
        return -1;
    }
    all = json_load_file(file, 0, NULL);
    return all != NULL && make_site(file, museum.folder) == 0 ? 0 : -1;
}

static int close_levels(void **state)
{
    json_decref(all);
    return looks_close(state);
}

GROUP_FIXTURE(open_levels, close_levels);
