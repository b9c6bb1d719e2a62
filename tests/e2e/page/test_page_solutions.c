/* The solutions of the lesson (loadgen/museum/web/teach.json) are played on the live page, move by
 * move: each must end as the lesson says. */
#include "steps_rig.h"
#include "tests.h"
#include "web_files.h"

#include <stdio.h>
#include <string.h>

static struct browser *const browser = &page.browser;
static json_t *teach, *exercises;

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    assert_non_null(text);
    return text;
}

/* In the page: this request waits for the lock. It is held inside as soon as it has the lock. */
static bool waits(const char *who)
{
    char state[120];
    snprintf(state, sizeof state,
             "document.querySelector('[data-name=%s]').dataset.state === 'waiting'", who);
    return browser_is(browser, state);
}

/* "A committed accepted": a key for each of these. "queued": it has to wait for the lock.
 * "free": the lock ends by itself. */
static void play(const char *move)
{
    char line[100], *rest = line, *where;
    snprintf(line, sizeof line, "%s", move);
    const char *who = strsep(&rest, " ");
    if (strcmp(who, "free") == 0) {
        WORLD("holder", "free");
        return;
    }
    if (waits(who))
        STATE(who, "held");
    while ((where = strsep(&rest, " ")) != NULL)
        if (strcmp(where, "queued") == 0) {
            browser_type(browser, (const char[]){(char)(who[0] | 0x20), '\0'});
            STATE(who, "waiting");
        } else
            MOVE(who, where);
}

/* The page tells the lesson of an exercise only of a round that shows it. */
static bool is_lesson_told(const char *id)
{
    char script[300];
    snprintf(script, sizeof script,
             "return import('/web/words_en.js').then(({ words }) => document.getElementById("
             "'verdict').textContent.includes(words.levels['level.%s.lesson']));",
             id);
    json_t *told = browser_run(browser, script);
    const bool is_told = json_is_true(told);
    json_decref(told);
    return is_told;
}

TEST_THAT(each_solution_ends_as_the_lesson_says)
{
    size_t i, k;
    json_t *exercise, *move;
    json_array_foreach(exercises, i, exercise)
    {
        char query[100];
        const char *id = text_of(exercise, "id");
        snprintf(query, sizeof query, "ex=%s&lang=en", id);
        GO(query);
        json_array_foreach(json_object_get(exercise, "moves"), k, move)
        {
            play(json_string_value(move));
        }
        VERDICT(text_of(exercise, "verdict"), "");
        if (!is_lesson_told(id))
            fail_msg("the solution of %s does not show its lesson", id);
        browser_errors(browser); /* says that some were refused */
    }
    assert_true(i > 8);
}

static int open_lesson(void **state)
{
    teach = json_loads(web_find("teach.json"), 0, NULL);
    exercises = json_object_get(teach, "exercises");
    return exercises != NULL ? page_open_lab(state) : -1;
}

static int close_lesson(void **state)
{
    json_decref(teach);
    return page_close(state);
}

GROUP_FIXTURE(open_lesson, close_lesson);
