/* The museum: each scene is recorded anew on real servers and must still be true, and a browser
 * walks the site as files. */
#include "bind.h"
#include "hazard.h"
#include "museum_looks.h"
#include "museum_rig.h"
#include "sandbox_process.h"
#include "shop.h"
#include "tests.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct browser *const browser = &museum.browser;

/* -- a picture cannot contradict the code --------------------------------------------------------
 */

GROUP_FIXTURE(looks_open, looks_close);

TEST_THAT(each_scene_is_true_of_a_new_recording)
{
    char message[MUSEUM_MESSAGE_MAX];
    for (size_t i = 0; i < scenes_n; i++) {
        struct bound bound;
        const json_t *record = scene_record(&scenes[i], json_object_get(museum.lab, "results"));
        if (record == NULL)
            fail_msg("scene %s was not recorded", scenes[i].id);
        if (scene_bind(&scenes[i], record, &bound, message) != 0)
            fail_msg("%s", message);
        assert_true(bound.n > 3);
    }
}

/* The service as the lab starts it, but without its fences. */
static void write_fenceless_service(char path[MUSEUM_PATH_MAX])
{
    char real[4096];
    assert_non_null(realpath(shop_binary("seckilld"), real));
    snprintf(path, MUSEUM_PATH_MAX, "%s/seckilld", sandbox_dir(museum.sandbox));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nexec '%s' \"$@\" --fence off\n", real);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

TEST_THAT(a_lesson_that_has_become_untrue_makes_no_site)
{
    enum { MISMATCH = 99 };
    char service[MUSEUM_PATH_MAX], file[MUSEUM_PATH_MAX], folder[MUSEUM_PATH_MAX];
    write_fenceless_service(service);
    snprintf(file, sizeof file, "%s/fenceless.json", sandbox_dir(museum.sandbox));
    snprintf(folder, sizeof folder, "%s/fenceless", sandbox_dir(museum.sandbox));
    assert_int_equal(
        museum_run("hazards", (const char *const[]){"run", "--hazard", "paused-holder", "--guard",
                                                    "redis-reentrant", "--seckilld", service,
                                                    "--json", file, NULL}),
        MISMATCH);
    assert_int_equal(
        museum_run("loadgen", (const char *const[]){"site", "--lab", file, "--out", folder, NULL}),
        EXIT_FAILURE);
    assert_non_null(
        strstr(museum.output, "scene fence tells of a run that is safe, but it was unsafe"));
}

/* -- the player ----------------------------------------------------------------------------------
 */

/* In the page: a lock of which each has but one holder is granted only when it is drawn as free, or
 * when its holder is about to release it: that the release has arrived is noted later. */
#define GRANTED_FREE                                                                               \
    "const isGrantedFree = ({ lock, local, shared, events }, k, record) => !lock || local || "     \
    "shared"                                                                                       \
    "  || events[k][2] !== 'lock.acquired' || Museum.state(record, k - 1).keys.every("             \
    "(key) => Museum.state(record, k - 1).clients[key.who]?.releasing);"

/* In the page: the pictures of a scene after each of its events, there by ArrowRight and back by
 * ArrowLeft. Returns what is wrong. */
#define PICTURES                                                                                   \
    "const press = (key) => document.body.dispatchEvent("                                          \
    "  new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));"                   \
    "const shot = (s) => [...s.querySelectorAll('.stage *, .caption, .command, .trace .now')]"     \
    "  .map((e) => [...e.classList].sort() + e.style.cssText + e.textContent + e.hidden).join();"  \
    "const walk = (section) => {"                                                                  \
    "  const wrong = [], there = [];"                                                              \
    "  Museum.player.enter(section, 0, true);"                                                     \
    "  const player = Museum.player.players.get(section.id);"                                      \
    "  const n = player.record.events.length;"                                                     \
    "  for (let k = 0; k < n; k++) {"                                                              \
    "    if (player.k !== k) wrong.push(`${section.id}/${k}: at ${player.k}`);"                    \
    "    if (!isGrantedFree(player.record, k, player.record)) wrong.push(`${section.id}/${k}: "    \
    "not free`);"                                                                                  \
    "    there.push(shot(section)); press('ArrowRight'); }"                                        \
    "  if (new Set(there).size !== n) wrong.push(`${section.id}: pictures that are alike`);"       \
    "  for (let k = n - 1; k >= 0; k--) {"                                                         \
    "    if (shot(section) !== there[k]) wrong.push(`${section.id}/${k} is another on the way "    \
    "back`);"                                                                                      \
    "    press('ArrowLeft'); }"                                                                    \
    "  return wrong; };"

TEST_THAT(each_scene_steps_on_and_back_to_the_same_pictures)
{
    assert_true(museum_go("index.html"));
    assert_int_equal(
        browser_number(browser, "document.querySelectorAll('.exhibit .record').length"),
        (int64_t)scenes_n);
    for (size_t i = 0; i < scenes_n; i++) {
        char script[3000];
        snprintf(script, sizeof script,
                 GRANTED_FREE PICTURES "return walk(document.getElementById('%s'));", scenes[i].id);
        assert_nothing(browser_run(browser, script));
    }
    assert_int_equal(browser_errors(browser), 0);
}

/* The last picture shows the value that the ledger and the audit gave, and the same events stand in
 * the list as in the recording. */
TEST_THAT(each_picture_ends_as_its_record)
{
    for (size_t i = 0; i < scenes_n; i++) {
        char page[MUSEUM_PATH_MAX], expression[512];
        const json_t *record = scene_record(&scenes[i], json_object_get(museum.lab, "results"));
        const json_t *outcome = json_object_get(record, "outcome");
        const size_t n = json_array_size(json_object_get(record, "timeline"));
        snprintf(page, sizeof page, "index.html#%s/%zu", scenes[i].id, n - 1);
        assert_true(museum_go(page));
#define SECTION "document.getElementById('%s')"
        snprintf(expression, sizeof expression,
                 "Number(" SECTION ".querySelector('.row .value').textContent.replace(',', ''))",
                 scenes[i].id);
        assert_int_equal(browser_number(browser, expression),
                         json_integer_value(json_object_get(outcome, "final")));
        snprintf(expression, sizeof expression, SECTION ".querySelectorAll('.trace > li').length",
                 scenes[i].id);
        assert_int_equal(browser_number(browser, expression), n);
        snprintf(expression, sizeof expression,
                 "getComputedStyle(" SECTION ".querySelector('.verdict.%s')).visibility === "
                 "'visible'",
                 scenes[i].id, scenes[i].outcome);
        assert_true(browser_is(browser, expression));
    }
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(an_address_leads_to_its_step_in_both_languages)
{
    static const char *const pages[] = {"index.html#fence/9", "zh/index.html#fence/9",
                                        "lesson/paused-holder.html#redis-reentrant.fence-on/9",
                                        "zh/lesson/paused-holder.html#redis-reentrant.fence-on/9"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        assert_true(museum_go(pages[i]));
        assert_true(browser_is(browser, "document.querySelector('.current .trace .now') === "
                                        "document.querySelectorAll('.current .trace > li')[9]"));
        assert_true(browser_is(browser, "document.querySelector('.current').getBoundingClientRect()"
                                        ".top < innerHeight / 2"));
    }
    assert_int_equal(browser_errors(browser), 0);
}

/* A space for each beat, with the keys of a real keyboard, from the opening to the last scene. */
TEST_THAT(the_space_bar_tells_the_whole_story)
{
    char last[200];
    int spaces = 0;
    snprintf(last, sizeof last, "document.querySelector('.current.over')?.id === '%s'",
             scenes[scenes_n - 1].id);
    assert_true(museum_go("index.html"));
    browser_type(browser, "p"); /* no scene is chosen: it does nothing */
    assert_true(browser_is(browser, "location.hash === ''"));
    for (; spaces < 200 && !browser_is(browser, last); spaces++)
        browser_type(browser, " ");
    assert_true(browser_is(browser, last));
    assert_true(spaces > 70);
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(a_scene_plays_by_itself_to_its_end)
{
    assert_true(museum_go("index.html#setnx-crash/0"));
    json_decref(browser_run(browser, "const s = document.querySelector('.current');"
                                     "s.querySelector('select').value = '0.4';"
                                     "s.querySelector('select').dispatchEvent(new Event('change'));"
                                     "s.querySelector('[data-do=play]').click();"));
    assert_true(browser_await(
        browser, "document.querySelector('.current').classList.contains('over')", MUSEUM_WAIT_MS));
}

TEST_THAT(scrolling_alone_tells_a_scene)
{
    browser_size(browser, 1280, 720);
    assert_true(museum_go("index.html#late/0"));
    json_decref(browser_run(browser,
                            "dispatchEvent(new WheelEvent('wheel'));"
                            "const s = document.getElementById('late');"
                            "scrollTo({ top: s.offsetTop + s.offsetHeight - innerHeight - 2,"
                            " behavior: 'instant' });"));
    assert_true(browser_await(browser,
                              "/^A writes 800/.test(document.querySelector('#late .caption')"
                              ".textContent)",
                              MUSEUM_WAIT_MS));
}

/* -- the rest ---------------------------------------------------------------------------------- */

TEST_THAT(the_opening_ends_below_zero_on_two_who_read_one_value)
{
    assert_true(museum_go("index.html"));
    assert_true(browser_await(
        browser, "document.getElementById('sale').classList.contains('frozen')", MUSEUM_WAIT_MS));
    assert_true(browser_is(browser, "document.querySelector('.left').textContent === '−' + "
                                    "(document.getElementById('sale').dataset.sold - "
                                    "document.getElementById('sale').dataset.initial)"
                                    ".toLocaleString('en-US')"));
    assert_int_equal(browser_number(browser, "document.querySelectorAll('.buyer em').length"), 2);
    assert_int_equal(browser_number(browser, "new Set([...document.querySelectorAll('.buyer em')]"
                                             ".map((e) => e.textContent.match(/\\d+/)[0])).size"),
                     1);
    /* One after the other, the button last. */
    assert_true(browser_is(browser,
                           "((at) => at.length === 4 && at.every((s, i) => !i || s > at[i - 1]))("
                           "[...document.querySelectorAll('.buyer, .buyers p, .why')]"
                           ".map((e) => parseFloat(getComputedStyle(e).animationDelay)))"));
    assert_true(browser_await(browser,
                              "getComputedStyle(document.querySelector('.why')).visibility === "
                              "'visible'",
                              MUSEUM_WAIT_MS));
    json_decref(browser_run(browser, "document.querySelector('.why').click();"));
    assert_true(browser_await(browser, "location.hash === '#lost-update/0'", MUSEUM_WAIT_MS));
}

/* In the page: a client that reads a value which the row does not show. The row is drawn from what
 * was written before, the read is what the service has traced. */
#define WRONG_READS                                                                                \
    "[...document.querySelectorAll('.record')].flatMap((one) => {"                                 \
    "  const record = JSON.parse(one.textContent);"                                                \
    "  return record.events.flatMap(([, who, point, value], k) => {"                               \
    "    const row = Museum.state(record, k).row.value;"                                           \
    "    return record.row && point === 'read' && value !== null && value !== row"                 \
    "      ? [`${one.parentElement.id}/${k}: ${who} reads ${value}, drawn is ${row}`] : []; }); "  \
    "})"

TEST_THAT(every_link_opens_its_run_in_which_all_read_what_is_drawn)
{
    assert_true(museum_go("zh/matrix.html"));
    json_t *links = browser_run(browser, "return [...document.querySelectorAll('.matrix td a')]"
                                         ".map((a) => a.getAttribute('href'));"),
           *link;
    size_t i;
    assert_int_equal(json_array_size(links),
                     json_array_size(json_object_get(museum.lab, "results")));
    json_array_foreach(links, i, link)
    {
        char page[MUSEUM_PATH_MAX];
        snprintf(page, sizeof page, "zh/%s", json_string_value(link));
        assert_true(museum_go(page));
        assert_true(browser_is(browser, "document.querySelector('.current').open && "
                                        "location.hash.startsWith("
                                        "'#' + document.querySelector('.current').id)"));
        assert_nothing(browser_run(browser, "return " WRONG_READS));
    }
    json_decref(links);
    assert_int_equal(browser_errors(browser), 0);
}

/* In the page: the current scene stands at a beat, and another follows. */
#define STOPPED "document.querySelector('.current:not(.over) .now.beat ~ .beat') !== null"

TEST_THAT(the_lesson_stops_each_scene_before_its_end)
{
    assert_true(museum_go("zh/teach.html"));
    json_t *stops = browser_run(browser, "return [...document.querySelectorAll('#questions .stop')]"
                                         ".map((a) => a.getAttribute('href'));");
    assert_int_equal(json_array_size(stops), scenes_n);
    for (size_t i = 0; i < scenes_n; i++) {
        char page[MUSEUM_PATH_MAX], here[MUSEUM_PATH_MAX];
        snprintf(page, sizeof page, "zh/%s", json_string_value(json_array_get(stops, i)));
        snprintf(here, sizeof here, "location.hash === '%s' && " STOPPED, strchr(page, '#'));
        assert_true(museum_go(page));
        assert_true(browser_await(browser, here, MUSEUM_WAIT_MS));
    }
    json_decref(stops);
}

TEST_THAT(no_page_names_another_host_and_no_script_is_inline)
{
    static const char *const pages[] = {"index.html", "zh/matrix.html",
                                        "lesson/paused-holder.html"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        assert_true(museum_go(pages[i]));
        assert_true(browser_is(browser, "[...document.querySelectorAll('[src], [href]')]"
                                        ".every((one) => (one.src || one.href)"
                                        ".startsWith('file:'))"));
        json_decref(browser_run(browser, "const inline = document.createElement('script');"
                                         "inline.textContent = 'window.ran = true';"
                                         "document.body.append(inline);"));
        assert_true(browser_is(browser, "window.ran === undefined"));
        assert_int_equal(browser_errors(browser), 1); /* it says that the policy has refused it */
    }
}

TEST_THAT(all_scripts_together_are_small)
{
    struct dirent *entry;
    int scripts = 0;
    off_t bytes = 0;
    DIR *folder = opendir(museum.folder);
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        struct stat file;
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".js") != 0)
            continue;
        assert_int_equal(fstatat(dirfd(folder), entry->d_name, &file, 0), 0);
        bytes += file.st_size;
        scripts++;
    }
    closedir(folder);
    assert_true(scripts > 5 && bytes < 150000);
}

static size_t bytes_all, bytes_of_lessons;

static int add_file(const char *path, const struct stat *file, int type, struct FTW *walk)
{
    (void)walk;
    if (type == FTW_F) {
        bytes_all += (size_t)file->st_size;
        bytes_of_lessons += strstr(path, "/lesson/") != NULL ? (size_t)file->st_size : 0;
    }
    return 0;
}

/* By what a recorded case takes here. What is not recorded here, the levels and a demo, takes less
 * than 0.4 MB. */
TEST_THAT(a_site_of_all_cases_takes_less_than_5_MB)
{
    enum { FILES = 8, SITE_MAX = 5000000, NOT_RECORDED = 400000 };
    const size_t recorded = json_array_size(json_object_get(museum.lab, "results"));
    size_t cases = 0;
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        for (const struct hazard_case *one = hazard_list[i]->cases; one->guard != NULL; one++)
            cases++;
    assert_int_equal(nftw(museum.folder, add_file, FILES, FTW_PHYS), 0);
    assert_true(recorded > 10 && cases > 200 && bytes_of_lessons > 0);
    const size_t site = bytes_all - bytes_of_lessons + bytes_of_lessons / recorded * cases;
    print_message("a site of %zu cases takes %.1f MB\n", cases, (double)site / 1e6);
    assert_true(site < SITE_MAX - NOT_RECORDED);
}

TEST_THAT(the_answer_to_which_lock_follows_the_questions)
{
    assert_true(museum_go("index.html#which"));
#define SHOWN "document.querySelector('.choice:not([hidden])').id"
    assert_true(browser_is(browser, "document.querySelectorAll('.choice:not([hidden])').length "
                                    "=== 1 && " SHOWN " === 'which-sql-atomic'"));
    json_decref(browser_run(browser,
                            "document.querySelector('[name=database][value=no]').click();"
                            "document.querySelector('[name=servers][value=redis]').click();"
                            "document.querySelector('[name=waiters][value=many]').click();"));
    assert_true(browser_is(browser, SHOWN " === 'which-redis-fair'"));
    json_decref(browser_run(browser,
                            "document.querySelector('[name=work][value=long]').click();"
                            "document.querySelector('[name=waiters][value=few]').click();"));
    assert_true(browser_is(browser, SHOWN " === 'which-redis-reentrant'"));
    json_decref(
        browser_run(browser, "document.querySelector('[name=loss][value=seldom]').click();"));
    assert_true(browser_is(browser, SHOWN " === 'which-redis-token'"));
    json_decref(browser_run(browser, "document.querySelector('.because a').click();"));
    assert_true(browser_await(browser, "location.hash === '#wrong-delete/0'", MUSEUM_WAIT_MS));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(no_page_has_an_accessibility_finding)
{
    static const struct look looks[] = {
        {"index.html#wrong-delete/35", 1280, false},
        {"zh/index.html#late/23", 390, true},
        {"index.html#setnx-crash/8", 390, false},
        {"zh/index.html#fence/30", 1280, true},
        {"lesson/paused-holder.html", 1280, true},
        {"zh/lesson/paused-holder.html", 390, false},
        {"matrix.html", 1280, true},
        {"zh/matrix.html", 390, false},
        {"teach.html", 390, true},
        {"zh/teach.html", 1280, false},
        {"interview.html", 1280, true},
        {"zh/interview.html", 390, false},
    };
    assert_looks_well(looks, sizeof looks / sizeof *looks);
}
