/* The words of the museum: each language has the same keys, with the same places to fill in, and
 * every key that a page or a scene names. */
#include "hazard.h"
#include "scenes.h"
#include "tests.h"
#include "web_files.h"
#include "words.h"

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
