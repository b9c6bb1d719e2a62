/* The lesson to teach from, and the questions before an interview: both languages, plans that fill
 * their time, and nothing said of a run that the catalogue does not expect. */
#include "hazard.h"
#include "hazard_options.h"
#include "museum.h"
#include "sandbox.h"
#include "scenes.h"
#include "teach_site.h"
#include "tests.h"
#include "web_files.h"

#include <stdio.h>
#include <string.h>

static json_t *teach, *interview;

static int open_texts(void **state)
{
    (void)state;
    teach = json_loads(web_find("teach.json"), JSON_REJECT_DUPLICATES, NULL);
    interview = json_loads(web_find("interview.json"), JSON_REJECT_DUPLICATES, NULL);
    return teach != NULL && interview != NULL ? teach_site_open() : -1;
}

static int close_texts(void **state)
{
    (void)state;
    json_decref(teach);
    json_decref(interview);
    teach_site_close();
    return 0;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

static const char *at(const json_t *array, size_t i)
{
    const char *text = json_string_value(json_array_get(array, i));
    return text != NULL ? text : "";
}

/* -- languages ----------------------------------------------------------------------------------
 */

static bool is_chinese(const char *text)
{
    bool found = false;
    for (; *text != '\0'; text++)
        found |= (unsigned char)*text >= 0xe3;
    return found;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

/* Code is the same in both. 令牌 is never bare. */
static void assert_pair(const json_t *pair)
{
    assert_int_equal(json_array_size(pair), 2);
    const char *en = at(pair, EN), *zh = at(pair, ZH);
    if (en[0] == '\0' || is_chinese(en) || !is_chinese(zh) || count(en, "`") % 2 != 0 ||
        count(en, "`") != count(zh, "`") || count(zh, "令牌") != count(zh, "栅栏令牌"))
        fail_msg("%s / %s", en, zh);
}

static int assert_pairs(const json_t *entries, const char *const *names)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        if (names == NULL)
            assert_pair(entry);
        for (const char *const *name = names; name != NULL && *name != NULL; name++)
            assert_pair(json_object_get(entry, *name));
        n++;
    }
    return n;
}

GROUP_FIXTURE(open_texts, close_texts);

TEST_THAT(each_text_is_in_both_languages)
{
    static const char *const question[] = {"ask", "answer", NULL}, *const exercise[] = {
                                                                       "title", "why", NULL};
    assert_true(assert_pairs(json_object_get(teach, "aims"), NULL) > 2);
    assert_true(assert_pairs(json_object_get(teach, "material"), NULL) > 2);
    assert_true(assert_pairs(json_object_get(teach, "preparation"), NULL) > 2);
    assert_true(assert_pairs(json_object_get(teach, "questions"), question) > 10);
    assert_true(assert_pairs(json_object_get(teach, "exercises"), exercise) > 8);
    assert_true(assert_pairs(interview, question) > 20);
}

/* -- plans --------------------------------------------------------------------------------------
 */

static bool is_among(const json_t *entries, const char *id)
{
    bool found = false;
    for (size_t i = 0; i < json_array_size(entries); i++)
        found |= strcmp(text_of(json_array_get(entries, i), "id"), id) == 0;
    return found;
}

static json_int_t minutes_of(const json_t *plan)
{
    json_int_t sum = 0;
    const json_t *steps = json_object_get(plan, "steps");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const json_t *exercises = json_object_get(step, "exercises");
        const json_int_t minutes = json_integer_value(json_object_get(step, "minutes"));
        assert_true(minutes > 0);
        sum += minutes;
        for (size_t k = 0; k < json_array_size(exercises); k++)
            assert_true(is_among(json_object_get(teach, "exercises"), at(exercises, k)));
        if (exercises == NULL)
            assert_true(is_among(json_object_get(teach, "questions"), text_of(step, "question")));
    }
    return sum;
}

TEST_THAT(each_plan_fills_its_minutes)
{
    static const int wanted[] = {45, 90};
    const json_t *plans = json_object_get(teach, "plans");
    assert_int_equal(json_array_size(plans), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *plan = json_array_get(plans, i);
        assert_int_equal(json_integer_value(json_object_get(plan, "minutes")), wanted[i]);
        assert_int_equal(minutes_of(plan), wanted[i]);
    }
}

/* -- what is shown ------------------------------------------------------------------------------
 */

static int scene_uses[32];

/* The answer to the question is told after the beat where the scene is stopped. */
static void assert_scene(const json_t *one)
{
    for (size_t i = 0; i < scenes_n; i++)
        if (strcmp(scenes[i].id, at(one, 1)) == 0) {
            bool found = json_array_size(one) == 2;
            for (const struct beat *beat = scenes[i].beats; beat->actor != NULL; beat++)
                found |= strcmp(beat->words, at(one, 2)) == 0 && beat[1].actor != NULL;
            scene_uses[i]++;
            if (found)
                return;
        }
    fail_msg("there is no scene %s that can be stopped at %s", at(one, 1), at(one, 2));
}

static void assert_run(const json_t *one)
{
    const struct hazard *hazard = hazard_find(at(one, 1));
    if (hazard == NULL)
        fail_msg("there is no failure %s", at(one, 1));
    for (const struct hazard_case *as = hazard->cases; as->guard != NULL; as++)
        if (strcmp(as->guard, at(one, 2)) == 0 &&
            strcmp(as->as[EN] != NULL ? as->as[EN] : "", at(one, 3)) == 0 &&
            strcmp(hazard_outcome_text(as->expected), at(one, 4)) == 0)
            return;
    fail_msg("%s under %s (%s) is not expected to be %s", at(one, 1), at(one, 2), at(one, 3),
             at(one, 4));
}

static void assert_shows(const json_t *entries)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *show = json_object_get(json_array_get(entries, i), "show");
        assert_true(json_array_size(show) > 0);
        for (size_t k = 0; k < json_array_size(show); k++) {
            const json_t *one = json_array_get(show, k);
            if (strcmp(at(one, 0), "scene") == 0)
                assert_scene(one);
            else if (strcmp(at(one, 0), "run") == 0)
                assert_run(one);
            else
                assert_string_equal(at(one, 0), "part");
        }
    }
}

TEST_THAT(each_text_shows_what_it_says_and_each_scene_is_asked_about)
{
    assert_true(scenes_n <= sizeof scene_uses / sizeof *scene_uses);
    assert_shows(interview);
    memset(scene_uses, 0, sizeof scene_uses);
    assert_shows(json_object_get(teach, "questions"));
    for (size_t i = 0; i < scenes_n; i++)
        if (scene_uses[i] == 0)
            fail_msg("no question is on the scene %s", scenes[i].id);
    assert_shows(json_object_get(teach, "exercises"));
}

/* -- exercises ----------------------------------------------------------------------------------
 */

/* The levels that the live page plays, in its order, under its titles. */
TEST_THAT(the_exercises_are_those_of_the_live_page)
{
    static const char *const files[] = {"levels.en.json", "levels.zh.json"};
    const json_t *exercises = json_object_get(teach, "exercises");
    json_t *all = json_loads(web_find("levels.json"), 0, NULL), *level;
    size_t i, n = 0;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        if (json_object_get(level, "points") == NULL)
            continue;
        const json_t *one = json_array_get(exercises, n++);
        assert_string_equal(text_of(one, "id"), text_of(level, "id"));
        for (int language = 0; language < HAZARD_LANGUAGES; language++) {
            json_t *words = json_loads(web_find(files[language]), 0, NULL);
            char title[100];
            snprintf(title, sizeof title, "level.%s.title", text_of(one, "id"));
            assert_string_equal(text_of(words, title),
                                at(json_object_get(one, "title"), (size_t)language));
            json_decref(words);
        }
    }
    assert_int_equal(n, json_array_size(exercises));
    assert_true(n > 8);
    json_decref(all);
}

/* -- the pages ----------------------------------------------------------------------------------
 */

/* As main() of hazards takes it. Exits on a usage error. */
static void assert_command(char *line, enum hazard_language language)
{
    struct hazard_options options;
    char *argv[16] = {line};
    int argc = 0, n = 0;
    for (char *word; (word = strsep(&line, " ")) != NULL; argc++) {
        assert_true(argc < 15);
        argv[argc] = word;
    }
    assert_string_equal(argv[0], "build/hazards");
    assert_string_equal(argv[1], "run");
    hazard_options_parse(false, argc - 1, argv + 1, &options);
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        for (const struct hazard_case *one = hazard_list[i]->cases; one->guard != NULL; one++)
            n += hazard_options_want(&options, hazard_list[i], one);
    assert_true(n > 0);
    assert_true(options.step && options.language == language);
}

TEST_THAT(each_command_is_one_that_hazards_takes)
{
    static const char *const pages[] = {"teach.html", "zh/teach.html"};
    assert_int_equal(teach_site_make(NULL), 0);
    for (int language = 0; language < HAZARD_LANGUAGES; language++) {
        size_t n = 0;
        for (const char *next = teach_site_file(pages[language]);
             (next = strstr(next, "<pre>build/")) != NULL; n++) {
            char line[300];
            next += strlen("<pre>");
            snprintf(line, sizeof line, "%.*s", (int)strcspn(next, "<"), next);
            assert_command(line, language);
        }
        assert_int_equal(n, json_array_size(json_object_get(teach, "exercises")));
    }
}

/* The file is there, and has the element: of "index.html#late/23" the one with the id late. */
static void assert_link(const char *page, const char *href)
{
    char file[TEACH_PATH_MAX], id[200] = "";
    const char *slash = strrchr(page, '/'), *hash = strchr(href, '#');
    if (hash == href)
        snprintf(file, sizeof file, "%s", page);
    else
        snprintf(file, sizeof file, "%.*s%.*s", slash != NULL ? (int)(slash - page) + 1 : 0, page,
                 (int)strcspn(href, "#"), href);
    if (hash != NULL)
        snprintf(id, sizeof id, "id=\"%.*s\"", (int)strcspn(hash + 1, "/"), hash + 1);
    const char *text = teach_site_file(file);
    if (text[0] == '\0' || strstr(text, id) == NULL)
        fail_msg("%s leads to %s, where nothing is", page, href);
}

static int assert_links(const char *page)
{
    static char text[TEACH_FILE_MAX];
    int n = 0;
    snprintf(text, sizeof text, "%s", teach_site_file(page));
    assert_null(strstr(text, "{{"));
    for (const char *next = text; (next = strstr(next, " href=\"")) != NULL; n++) {
        char href[300];
        next += strlen(" href=\"");
        snprintf(href, sizeof href, "%.*s", (int)strcspn(next, "\""), next);
        if (strncmp(href, "http://127.0.0.1:8080/", 22) != 0) /* the live page */
            assert_link(page, href);
    }
    return n;
}

TEST_THAT(each_link_leads_to_something)
{
    assert_int_equal(teach_site_make(NULL), 0);
    assert_true(assert_links("teach.html") > 90);
    assert_true(assert_links("zh/teach.html") > 90);
    assert_true(assert_links("interview.html") > 70);
    assert_true(assert_links("zh/interview.html") > 70);
}

TEST_THAT(what_was_not_recorded_is_named)
{
    assert_int_equal(teach_site_make(NULL), 0);
    assert_non_null(strstr(teach_site_file("teach.html"),
                           "<a href=\"index.html#late/0\">5. A pause beyond the lease</a> "
                           "<span class=\"absent\">not recorded: expired-lease under redis-token"));
}

TEST_THAT(a_run_that_came_out_otherwise_makes_no_site)
{
    assert_int_equal(teach_site_make("two-step-release"), -1);
    assert_string_equal(teach_site_message,
                        "the lesson says that two-step-release under redis-token (GET, then DEL) "
                        "is unsafe, but it was recorded otherwise");
}
