/* The words of the museum: each language has the same keys, with the same places to fill in, and
 * every key that a page or a scene names. */
#include "hazard.h"
#include "scenes.h"
#include "tests.h"
#include "web_files.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

static json_t *en, *zh;

static int open_words(void **state)
{
    (void)state;
    en = words_open("en");
    zh = words_open("zh");
    return en != NULL && zh != NULL ? 0 : -1;
}

static int close_words(void **state)
{
    (void)state;
    json_decref(en);
    json_decref(zh);
    return 0;
}

/* How often the text has this place: "{v}". */
static int count(const char *text, const char *place, size_t length)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += strncmp(text, place, length) == 0;
    return n;
}

static void assert_has_places_of(const char *key, const char *one, const char *other)
{
    for (const char *at = strchr(one, '{'); at != NULL; at = strchr(at + 1, '{')) {
        const size_t length = strcspn(at, "}") + 1;
        if (count(one, at, length) != count(other, at, length))
            fail_msg("%s: %.*s is not in both languages", key, (int)length, at);
    }
}

GROUP_FIXTURE(open_words, close_words);

/* Each remark in the code is a place that the language fills in, or the name of a product. Adds the
 * words that are used. */
static void assert_remarks(const char *of, const char *code, json_t *used)
{
    static const char *const marks[] = {"-- ", "/* ", "// ", "# "};
    static const char *const names[] = {"<", "...", "SQL", "C\n", "C:", "Java", "Redis\n"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (const char *at = strstr(code, marks[i]); at != NULL; at = strstr(at + 1, marks[i])) {
            const char *said = at + strlen(marks[i]);
            bool is_known = false;
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                is_known |= strncmp(said, names[k], strlen(names[k])) == 0;
            if (!is_known)
                fail_msg("%s: '%.30s' is in English only", of, said);
        }
    for (const char *at = strchr(code, '<'); at != NULL; at = strchr(at + 1, '<')) {
        char key[64];
        const size_t length = strcspn(at + 1, ">");
        if (at[1] == '=' || at[1] == ' ')
            continue;
        snprintf(key, sizeof key, "code.%.*s", (int)length, at + 1);
        if (json_object_get(en, key) == NULL)
            fail_msg("%s: there are no words for %s", of, key);
        json_object_set_new(used, key, json_true());
    }
}

TEST_THAT(each_remark_in_shown_code_is_in_the_language_of_its_page)
{
    const char *of, *point, *part;
    json_t *one, *code, *parts, *used = json_object();
    json_t *which = json_loads(web_find("which.json"), 0, NULL);
    json_t *commands = json_loads(web_find("commands.json"), 0, NULL);
    json_object_foreach(json_object_get(which, "guards"), of, one)
    {
        assert_remarks(of, json_string_value(json_object_get(one, "code")), used);
    }
    json_object_foreach(commands, part, parts)
    {
        json_object_foreach(parts, of, one)
        {
            json_object_foreach(one, point, code)
            {
                assert_remarks(of, json_string_value(code), used);
            }
        }
    }
    json_object_foreach(en, of, one)
    {
        if (strncmp(of, "code.", 5) == 0 && json_object_get(used, of) == NULL)
            fail_msg("nothing uses %s", of);
    }
    json_t *filled = words_code(zh, "-- <work>\nif (a <= 1) // <hash>");
    assert_string_equal(json_string_value(filled),
                        "-- 读取、判断、写入、提交\nif (a <= 1) // key 的哈希值");
    json_decref(filled);
    json_decref(used);
    json_decref(commands);
    json_decref(which);
}

TEST_THAT(both_languages_have_the_same_keys_and_places)
{
    const char *key;
    json_t *text;
    assert_true(json_object_size(en) > 100);
    json_object_foreach(en, key, text)
    {
        const char *other = json_string_value(json_object_get(zh, key));
        if (other == NULL)
            fail_msg("%s is in English only", key);
        assert_has_places_of(key, json_string_value(text), other);
        assert_has_places_of(key, other, json_string_value(text));
    }
    assert_int_equal(json_object_size(zh), json_object_size(en));
}

/* Names of commands and products are the same in both. */
TEST_THAT(nothing_is_left_in_english_among_the_chinese_words)
{
    const char *key;
    json_t *text;
    json_object_foreach(zh, key, text)
    {
        bool chinese = false;
        for (const char *at = json_string_value(text); *at != '\0'; at++)
            chinese |= (unsigned char)*at >= 0xe3;
        if (!chinese && strcmp(key, "lang") != 0 && strncmp(key, "other", 5) != 0 &&
            strncmp(key, "which.servers.", 14) != 0)
            fail_msg("%s: %s", key, json_string_value(text));
    }
}

TEST_THAT(each_beat_of_each_scene_has_its_words)
{
    for (size_t i = 0; i < scenes_n; i++)
        for (const struct beat *beat = scenes[i].beats; beat->actor != NULL; beat++)
            assert_true(words_of(zh, scenes[i].id, beat->words)[0] != '\0');
}

TEST_THAT(each_scene_is_a_case_of_the_catalogue)
{
    for (size_t i = 0; i < scenes_n; i++) {
        const struct hazard *hazard = hazard_find(scenes[i].hazard);
        bool found = false;
        assert_non_null(hazard);
        for (const struct hazard_case *one = hazard->cases; one->guard != NULL; one++)
            found |= strcmp(one->guard, scenes[i].guard) == 0 &&
                     strcmp(one->as[EN] != NULL ? one->as[EN] : "", scenes[i].variant) == 0 &&
                     strcmp(hazard_outcome_text(one->expected), scenes[i].outcome) == 0;
        if (!found)
            fail_msg("scene %s is not in the catalogue", scenes[i].id);
    }
}

TEST_THAT(each_word_of_a_page_is_there)
{
    static const char *const pages[] = {"head.html",   "index.html", "lesson.html",
                                        "matrix.html", "teach.html", "interview.html"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        for (const char *at = strstr(web_find(pages[i]), "{{"); at != NULL;
             at = strstr(at + 2, "{{")) {
            char key[64];
            snprintf(key, sizeof key, "%.*s", (int)(strstr(at, "}}") - at - 2), at + 2);
            if (key[0] != '@' && key[0] != '=' && json_object_get(en, key) == NULL)
                fail_msg("%s has no words for %s", pages[i], key);
        }
}
