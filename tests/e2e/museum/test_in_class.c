/* The museum in front of a class: the axis zooms, a page presents itself with notes in a second
 * window, stands in a frame, and saves what it shows. All from files. */
#include "museum_looks.h"
#include "museum_rig.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

static struct browser *const browser = &museum.browser;

static void run(const char *script)
{
    json_decref(browser_run(browser, script));
}

static int64_t count(const char *selector)
{
    char expression[300];
    snprintf(expression, sizeof expression, "document.querySelectorAll(\"%s\").length", selector);
    return browser_number(browser, expression);
}

/* -- zoom -------------------------------------------------------------------------------------- */

#define LONG_RUN "lesson/unfair.html#redis-fair.handed-over"
/* In the page: events, lines and dots of the current run that are shown. */
#define SEEN                                                                                       \
    "const player = Museum.player.players.get(document.querySelector('.current').id);"             \
    "const track = player.axis.querySelector('.lane:not([hidden]) span').getBoundingClientRect();" \
    "const dots = [...player.axis.querySelectorAll('.dot')].filter((dot) => {"                     \
    "  const { left, width } = dot.getBoundingClientRect(), x = left + width / 2;"                 \
    "  return width > 0 && x > track.left - 1 && x < track.right + 1; })"                          \
    "  .map(({ dataset }) => Number(dataset.k)).sort((a, b) => a - b);"                            \
    "const lines = player.lines.flatMap((line, k) => line.hidden ? [] : [k]);"

static void assert_yes(const char *script)
{
    json_t *answer = browser_run(browser, script);
    assert_true(json_is_true(answer));
    json_decref(answer);
}

GROUP_FIXTURE(looks_open, looks_close);

/* A pointer that drags from the event 40 to the event 60. */
TEST_THAT(a_drag_over_the_axis_zooms_into_its_span)
{
    browser_size(browser, 1280, 900);
    assert_true(museum_go(LONG_RUN "/50"));
    assert_yes(SEEN "return dots.length === player.at.length;");
    run(SEEN "const x = (k) => track.left + (player.at[k] * track.width) / 100;"
             "const send = (type, clientX) => player.axis.dispatchEvent(new PointerEvent(type,"
             "  { clientX, pointerId: 1, button: 0, bubbles: true }));"
             "player.axis.setPointerCapture = () => {};"
             "send('pointerdown', x(40)); send('pointermove', x(50)); send('pointermove', x(60));"
             "send('pointerup', x(60)); player.axis.dispatchEvent(new MouseEvent('click',"
             "  { clientX: x(60), bubbles: true }));");
    assert_yes(SEEN "return dots[0] >= 39 && dots[0] <= 41 && dots.at(-1) >= 59"
                    " && dots.at(-1) <= 61 && dots.length === dots.at(-1) - dots[0] + 1;");
    assert_yes(SEEN "return player.k === 50 && lines.every((k) => dots.includes(k))"
                    " && lines.length > 5;"); /* the drag is no click */
    assert_yes(SEEN "return player.zoom.says.textContent.includes("
                    "`events ${dots[0]} to ${dots.at(-1)} of 0 to ${player.at.length - 1}`);");
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(keys_zoom_around_the_event_and_the_span_goes_along)
{
    assert_true(museum_go(LONG_RUN "/50"));
    browser_type(browser, "+++");
    assert_yes(SEEN "return dots.length < player.at.length / 3 && dots.includes(50);");
    for (int i = 0; i < 3; i++)
        browser_type(browser, "-");
    assert_yes(SEEN "return dots.length === player.at.length;");
    browser_type(browser, "+++");
    run("Museum.player.go(Museum.player.players.get(document.querySelector('.current').id), 150);");
    assert_yes(SEEN "return dots.includes(150) && !dots.includes(50) && !lines.includes(50);");
    browser_type(browser, "0");
    assert_yes(SEEN "return dots.length === player.at.length;");
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(a_click_on_a_zoomed_axis_goes_to_the_event_that_is_there)
{
    assert_true(museum_go(LONG_RUN "/50"));
    browser_type(browser, "+++");
    run(SEEN "const dot = player.axis.querySelector('[data-k=\"52\"]').getBoundingClientRect();"
             "player.axis.dispatchEvent(new MouseEvent('click',"
             "  { clientX: dot.left + dot.width / 2, bubbles: true }));");
    assert_yes(SEEN "return player.k === 52;");
}

/* All events can be reached, by their beat's button or by stepping. */
TEST_THAT(a_long_list_folds_what_lies_between_two_beats)
{
    assert_true(museum_go(LONG_RUN "/0"));
    assert_yes(SEEN "return lines.length < player.at.length * 0.7"
                    " && player.beats.every((k) => lines.includes(k));");
    run(SEEN "player.lines.forEach((line) => line.querySelector('.more')?.click());");
    assert_yes(SEEN "return lines.length === player.at.length && player.k === 0;");
    run(SEEN "player.lines.forEach((line) => line.querySelector('.more')?.click());"
             "Museum.player.go(player, 100);");
    assert_yes(SEEN "return lines.includes(100) && lines.length < player.at.length * 0.7;");
    assert_true(museum_go("index.html#late/0"));
    assert_int_equal(count(".scene .more"), 0); /* a scene is short, and shows it all */
}

/* -- in front of a class ----------------------------------------------------------------------- */

#define IS_SHOWN(selector) "(document.querySelector('" selector "')?.getClientRects().length > 0)"

/* In the page: the steps of a scene whose picture is taller than the screen. */
#define TALLER                                                                                     \
    "const scenes = [...document.querySelectorAll('.exhibit')];"                                   \
    "const taller = (scene) => {"                                                                  \
    "  Museum.player.enter(scene, 0, true);"                                                       \
    "  const player = Museum.player.players.get(scene.id);"                                        \
    "  return player.at.flatMap((_, k) => { Museum.player.go(player, k);"                          \
    "    const more = document.documentElement.scrollHeight - innerHeight;"                        \
    "    return more > 0 ? [`${scene.id}/${k}: ${more} px`] : []; }); };"

TEST_THAT(a_presentation_shows_one_scene_that_fits_its_screen)
{
    static const struct {
        int width, height;
    } screens[] = {{1280, 720}, {1920, 1080}};
    for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
        browser_size(browser, screens[i].width, screens[i].height);
        assert_true(museum_go("index.html?present"));
        assert_true(browser_is(browser, IS_SHOWN("#opening")));
        assert_false(browser_is(browser, IS_SHOWN(".exhibit")));
        browser_type(browser, "7");
        assert_true(browser_await(browser, "location.hash === '#fence/0'", MUSEUM_WAIT_MS));
        assert_true(browser_is(browser, "location.search === '?present'"));
        assert_yes("return [...document.querySelectorAll('.exhibit, #opening, #which, nav, footer,"
                   " .controls, .zoom')].filter((one) => one.getClientRects().length > 0)"
                   ".map(({ id }) => id).join() === 'fence';");
        browser_type(browser, " ");
        assert_true(browser_await(browser, "location.hash !== '#fence/0'", MUSEUM_WAIT_MS));
        assert_nothing(browser_run(browser, TALLER "return scenes.flatMap(taller);"));
        assert_true(browser_is(browser, "parseFloat(getComputedStyle(document.documentElement)"
                                        ".fontSize) >= innerHeight / 36"));
    }
    browser_type(browser, "\xEE\x80\x8C"); /* Escape */
    assert_true(browser_await(browser, "location.search === ''", MUSEUM_WAIT_MS));
    assert_int_equal(browser_errors(browser), 0);
}

/* In the presentation, its notes as JavaScript sees them: a window of its own. */
#define NOTES "document.getElementById('notes').textContent"

TEST_THAT(the_notes_go_along_in_a_second_window_and_their_keys_act_in_the_first)
{
    char first[BROWSER_WINDOW_MAX], second[BROWSER_WINDOW_MAX];
    browser_size(browser, 1280, 720);
    assert_true(museum_go("index.html?present#late/0"));
    browser_window(browser, first);
    browser_type(browser, "n");
    browser_next_window(browser, second);
    assert_true(browser_await(
        browser, "document.getElementById('notes')?.textContent.includes('A pause beyond')",
        MUSEUM_WAIT_MS));
    assert_true(browser_is(browser, "!" NOTES ".includes('A reads 1,000.')"));
    browser_type(browser, "  ");
    assert_true(browser_await(browser, NOTES ".includes('A reads 1,000.')", MUSEUM_WAIT_MS));
    assert_true(browser_is(browser, NOTES ".includes('Next: A has made its last check.')"));
    assert_true(browser_is(browser, NOTES ".includes(\"What stops A's write?\")"));
    browser_type(browser, "3");
    assert_true(browser_await(browser, NOTES ".includes('SETNX, and a crash')", MUSEUM_WAIT_MS));
    browser_to_window(browser, first);
    assert_true(browser_await(browser, "location.hash === '#setnx-crash/0'", MUSEUM_WAIT_MS));
    run("location.reload();"); /* the presentation finds its notes again */
    assert_true(browser_await(browser,
                              "document.readyState === 'complete' && "
                              "document.querySelector('#setnx-crash.current') !== null",
                              MUSEUM_WAIT_MS));
    browser_type(browser, "1");
    browser_to_window(browser, second);
    assert_true(browser_await(browser, NOTES ".includes('1. A lost update')", MUSEUM_WAIT_MS));
    assert_int_equal(browser_errors(browser), 0);
    browser_end_window(browser, first);
}

/* A page that has opened no notes obeys nobody. */
TEST_THAT(a_window_that_is_not_its_notes_moves_nothing)
{
    assert_true(museum_go("index.html?present#late/3"));
    run("const frame = document.createElement('iframe'); document.body.append(frame);"
        "const source = frame.contentWindow;"
        "window.answers = 0; source.postMessage = () => { window.answers++; };"
        "[{ museum: 'hello' }, { museum: 'key', key: '1' }].forEach((data) =>"
        " dispatchEvent(new MessageEvent('message', { source, data })));");
    assert_true(browser_is(browser, "document.querySelector('.current').id === 'late'"
                                    " && window.answers === 0"));
}

TEST_THAT(notes_without_a_presentation_say_so)
{
    assert_true(museum_go("zh/index.html?notes"));
    assert_true(browser_await(browser, NOTES ".includes('备注跟随打开它的窗口')", MUSEUM_WAIT_MS));
}

/* -- a frame ----------------------------------------------------------------------------------- */

TEST_THAT(a_frame_shows_one_scene_with_a_link_back)
{
    browser_size(browser, 720, 560);
    assert_true(museum_go("zh/index.html?embed=fence#fence/9"));
    assert_yes("return [...document.querySelectorAll('.exhibit, #opening, #which, nav, footer')]"
               ".filter((one) => one.getClientRects().length > 0).map(({ id }) => id).join()"
               " === 'fence';");
    assert_true(browser_is(browser, "Museum.player.players.get('fence').k === 9"));
    assert_yes("const rect = document.querySelector('#fence .axis').getBoundingClientRect();"
               "return rect.bottom <= innerHeight"
               " && document.documentElement.scrollWidth <= innerWidth;");
    for (int i = 0; i < 40; i++) /* the last beat is the end: no other scene follows */
        browser_type(browser, " ");
    assert_true(browser_is(browser, "document.querySelector('.current.over').id === 'fence'"));
    assert_true(browser_await(browser, "location.hash !== '#fence/9'", MUSEUM_WAIT_MS));
    assert_yes("const back = document.querySelector('.back');"
               "back.dispatchEvent(new Event('focus'));"
               "return back.href === location.href.replace('?embed=fence', '');");
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(a_frame_of_no_scene_says_so)
{
    assert_true(museum_go("index.html?embed=%3Cimg%3E"));
    assert_true(browser_is(browser, "document.querySelector('[role=alert]').textContent"
                                    ".includes('no scene \"<img>\"')"));
    assert_int_equal(count("[role=alert] *"), 0);
    assert_true(browser_is(browser, IS_SHOWN(".back")));
}

TEST_THAT(the_text_to_share_opens_the_same_step_as_page_and_as_frame)
{
    browser_size(browser, 1280, 900);
    assert_true(museum_go("index.html#late/12"));
    assert_yes("const [link, frame] = document.querySelectorAll('#late [data-share]');"
               "const page = location.href.split('#')[0];"
               "return link.value === `${page}#late/12` && frame.value.startsWith("
               "`<iframe src=\"${page}?embed=late#late/12\" title=\"5. A pause beyond`);");
    json_t *src =
        browser_run(browser, "const box = document.createElement('template');"
                             "box.innerHTML = document.querySelectorAll('#late [data-share]')[1]"
                             ".value; return box.content.firstChild.src;");
    browser_go(browser, "about:blank");
    browser_go(browser, json_string_value(src));
    json_decref(src);
    assert_true(browser_await(browser,
                              "Museum?.player?.players.get('late')?.k === 12"
                              " && document.documentElement.classList.contains('embed')",
                              MUSEUM_WAIT_MS));
}

/* -- a picture --------------------------------------------------------------------------------- */

static bool read_file(const char *name, char *text, size_t size)
{
    char path[MUSEUM_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", sandbox_dir(museum.sandbox), name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return text[0] != '\0';
}

struct saved {
    const char *name;
    char *text;
    size_t size;
};

static bool is_saved(void *arg)
{
    const struct saved *file = arg;
    return read_file(file->name, file->text, file->size);
}

/* Waits until the browser has saved it. */
static void await_file(const char *name, char *text, size_t size)
{
    if (!wait_until(is_saved, &(struct saved){name, text, size}, MUSEUM_WAIT_MS))
        fail_msg("%s was not saved", name);
}

TEST_THAT(a_moment_is_saved_as_it_is_in_light_colours)
{
    static char svg[1 << 17], png[1 << 17];
    browser_downloads(browser, sandbox_dir(museum.sandbox));
    browser_size(browser, 1280, 900);
    browser_dark(browser, true);
    assert_true(museum_go("index.html#wrong-delete/0"));
    run("const player = Museum.player.players.get('wrong-delete');"
        "Museum.player.go(player, player.at.length - 1);"
        "window.last = player.k;");
    json_t *last = browser_run(browser, "return `wrong-delete-${window.last}`;");
    char name[100];
    snprintf(name, sizeof name, "%s.svg", json_string_value(last));
    run("document.querySelector('#wrong-delete [data-save=svg]').click();");
    await_file(name, svg, sizeof svg);
    snprintf(name, sizeof name, "%s.png", json_string_value(last));
    run("document.querySelector('#wrong-delete [data-save=png]').click();");
    await_file(name, png, sizeof png);
    json_decref(last);
    assert_memory_equal(png, "\x89PNG\r\n", 6);
    assert_non_null(strstr(svg, "Client A"));
    assert_non_null(strstr(svg, "Row in the database"));
    assert_non_null(strstr(svg, "UNSAFE: "));
    assert_non_null(strstr(svg, "fill=\"rgb(27, 31, 36)\"")); /* the ink of the light colours */
    assert_null(strstr(svg, "rgb(20, 23, 26)"));              /* the paper of the dark ones */
    assert_null(strstr(svg, "foreignObject"));
    assert_null(strstr(svg, "style="));
    assert_true(browser_is(browser, "getComputedStyle(document.body).backgroundColor === "
                                    "'rgb(20, 23, 26)'")); /* the page has stayed dark */
    browser_dark(browser, false);
    assert_int_equal(browser_errors(browser), 0);
}

/* Each line of text and each box stands in the picture where it stands on the page. */
TEST_THAT(a_picture_has_all_that_the_stage_shows)
{
    browser_size(browser, 1280, 900);
    assert_true(museum_go("zh/index.html#fence/20"));
    assert_yes("const player = Museum.player.players.get('fence');"
               "document.documentElement.classList.add('light');"
               "const { text } = Museum.moment.svgOf(player);"
               "const svg = new DOMParser().parseFromString(text, 'image/svg+xml');"
               "const plain = (s) => s.replace(/\\s+/g, '').toLowerCase();"
               "const drawn = plain([...svg.querySelectorAll('text')].map((t) => t.textContent)"
               ".join(''));"
               "const wanted = [player.section.querySelector('h2'), ...player.stage"
               ".querySelectorAll('.name, .doing, dt, dd, .value, .version'), player.caption,"
               " ...player.axis.querySelectorAll('small')];"
               "return svg.querySelector('parsererror') === null"
               " && wanted.every((one) => drawn.includes(plain(one.innerText)))"
               " && svg.querySelectorAll('circle').length === player.stage"
               ".querySelectorAll('circle').length;");
}

TEST_THAT(no_view_for_a_class_has_an_accessibility_finding)
{
    static const struct look looks[] = {
        {"index.html?present#wrong-delete/20", 1280, true},
        {"zh/index.html?present#late/13", 1920, false},
        {"zh/index.html?embed=late#late/13", 720, true},
        {"index.html?embed=fence", 390, false},
        {"index.html?notes", 900, false},
        {LONG_RUN "/50", 390, true},
        {"zh/" LONG_RUN "/50", 1280, false},
    };
    assert_looks_well(looks, sizeof looks / sizeof *looks);
}
