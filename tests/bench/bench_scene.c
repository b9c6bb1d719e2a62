/*
 * Frames per second of the museum: while the scene "fence" plays by itself at each speed of its
 * player, and while the opening plays. The lab records both anew; the pages are opened as files. A
 * page at rest is measured beside them: what the browser can do on this machine.
 *
 *     BUILD=build build/bench/bench_scene [REPEAT] [WINDOW_MS] > build/bench/scene.json
 */
#include "bench.h"
#include "museum_rig.h"

#include <stdio.h>
#include <stdlib.h>

static struct browser *const browser = &museum.browser;

static void make_site(void)
{
    char file[MUSEUM_PATH_MAX];
    snprintf(file, sizeof file, "%s/lab.json", sandbox_dir(museum.sandbox));
    if (museum_run("hazards",
                   (const char *const[]){"run", "--json", file, "--hazard", "paused-holder",
                                         "--hazard", "oversell", "--guard", "redis-reentrant",
                                         "--guard", "none", NULL}) != 0)
        bench_die_of("no recording", museum.output);
    museum.lab = json_load_file(file, 0, NULL);
    if (museum.lab == NULL || museum_site(museum.lab, museum.folder) != 0)
        bench_die_of("no site", museum.output);
}

static void go(const char *page, const char *ready)
{
    if (!museum_go(page) || !browser_await(browser, ready, MUSEUM_WAIT_MS))
        bench_die_of("the page does not come", page);
    bench_ruler();
}

/* The scene from its first event. speed: a value of the player's select; a smaller one is faster.
 */
static void play(const char *speed)
{
    char script[400];
    snprintf(script, sizeof script,
             "const scene = document.getElementById('fence'), "
             "choice = scene.querySelector('select');"
             "choice.value = '%s';"
             "choice.dispatchEvent(new Event('change'));"
             "scene.querySelector('[data-do=play]').click();",
             speed);
    go("index.html#fence/0", "document.querySelector('#fence.current') !== null");
    json_decref(browser_run(browser, script));
}

static void rest(const char *unused)
{
    (void)unused;
    go("index.html#fence/0", "document.querySelector('#fence.current') !== null");
}

static void begin(const char *unused)
{
    (void)unused;
    go("index.html", "document.querySelectorAll('.phones i').length > 0");
}

static const struct {
    const char *name;
    void (*start)(const char *speed);
    const char *speed;
    const char *moves; /* in the page: it plays still */
} watched[] = {
    {"at_rest", rest, NULL, "true"},
    {"scene", play, "1", "document.querySelector('#fence:not(.over)') !== null"},
    {"scene_fast", play, "0.4", "document.querySelector('#fence .trace .past') !== null"},
    {"opening", begin, NULL, "document.querySelector('.phones i') !== null"},
};

enum { WATCHED = sizeof watched / sizeof *watched };

int main(int argc, char **argv)
{
    const int repeat = argc > 1 ? atoi(argv[1]) : 5, window_ms = argc > 2 ? atoi(argv[2]) : 4000;
    double per_s[WATCHED][BENCH_REPEAT_MAX], longest_ms[WATCHED][BENCH_REPEAT_MAX];
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || window_ms < 200 || window_ms > 6000)
        bench_die("usage: bench_scene [REPEAT 1..25] [WINDOW_MS 200..6000]");
    if (museum_open_empty(NULL) != 0)
        bench_die("no browser");
    browser_size(browser, 1280, 720);
    make_site();
    for (int i = 0; i < repeat; i++)
        for (size_t k = 0; k < WATCHED; k++) {
            watched[k].start(watched[k].speed);
            const struct browser_frames frames = browser_frames(browser, window_ms);
            if (!browser_is(browser, watched[k].moves))
                bench_die_of("it was over too soon", watched[k].name);
            per_s[k][i] = frames.per_s;
            longest_ms[k][i] = frames.longest_ms;
        }
    museum_close(NULL);
    json_t *all = json_object();
    for (size_t k = 0; k < WATCHED; k++) {
        const double median = bench_median(per_s[k], repeat),
                     gap = bench_median(longest_ms[k], repeat);
        fprintf(stderr, "%-10s %5.1f frames/s (%.1f to %.1f), longest gap %.0f ms\n",
                watched[k].name, median, per_s[k][0], per_s[k][repeat - 1], gap);
        json_object_set_new(all, watched[k].name,
                            json_pack("{s:f,s:f}", "frames_per_s", median, "longest_ms", gap));
    }
    json_object_set_new(all, "noise", json_real(bench_noise()));
    bench_print(all);
    return 0;
}
