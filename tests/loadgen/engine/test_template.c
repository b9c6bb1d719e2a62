/* Requests from templates. */
#include "template.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 7 };

static char *expand(const char *text, uint64_t seq, unsigned place)
{
    static char out[4][1000];
    static int turn;
    struct template template;
    char message[200], *to = out[turn++ % 4];
    if (template_compile(text, &template, message, sizeof message) != 0)
        fail_msg("'%s': %s", text, message);
    long length = template_expand(&template, SEED, seq, place, to, sizeof out[0] - 1);
    assert_true(length >= 0);
    to[length] = '\0';
    return to;
}

TEST_THAT(placeholders_are_filled_in)
{
    assert_string_equal(expand("", 3, 0), "");
    assert_string_equal(expand("plain {text}", 3, 0), "plain {text}");
    assert_string_equal(expand("{{seq}}", 3, 0), "3");
    assert_string_equal(expand("a{{seq}}b{{seq}}c", 12, 0), "a12b12c");
    assert_string_equal(expand("{{random 5 5}}", 12, 0), "5");
    for (uint64_t seq = 0; seq < 1000; seq++) {
        int number = atoi(expand("{{random -3 4}}", seq, 0));
        assert_true(number >= -3 && number <= 4);
        assert_true(atol(expand("{{random}}", seq, 0)) >= 0);
        assert_true(atol(expand("{{random -2 9223372036854775807}}", seq, 0)) >= -2);
        expand("{{random -9223372036854775808 9223372036854775807}}", seq, 0);
    }
}

TEST_THAT(uuid_is_one_of_version_4)
{
    for (uint64_t seq = 0; seq < 1000; seq++) {
        const char *uuid = expand("{{uuid}}", seq, 0);
        unsigned a, b, c, d;
        unsigned long e;
        int end = 0;
        assert_int_equal(sscanf(uuid, "%8x-%4x-%4x-%4x-%12lx%n", &a, &b, &c, &d, &e, &end), 5);
        assert_int_equal(end, 36);
        assert_int_equal(strlen(uuid), 36);
        assert_int_equal(c >> 12, 4);
        assert_int_equal(d >> 14, 2);
    }
}

TEST_THAT(same_seed_and_number_ask_for_the_same_and_others_do_not)
{
    assert_string_equal(expand("{{uuid}}", 5, 0), expand("{{uuid}}", 5, 0));
    assert_string_not_equal(expand("{{uuid}}", 5, 0), expand("{{uuid}}", 6, 0));
    assert_string_not_equal(expand("{{uuid}}", 5, 0), expand("{{uuid}}", 5, 1));
    char *two = expand("{{uuid}} {{uuid}}", 5, 0);
    assert_true(strncmp(two, two + 37, 36) != 0);
}

TEST_THAT(nonsense_is_refused)
{
    static const char *const wrong[] = {"{{",      "{{seq",           "{{seq }}",
                                        "{{now}}", "{{random 1}}",    "{{random 2 1}}",
                                        "{{}}",    "{{random 1 2 3}}"};
    struct template template;
    char message[200], many[1000] = "", out[10];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(template_compile(wrong[i], &template, message, sizeof message), -1);
    for (int i = 0; i < TEMPLATE_PARTS_MAX + 1; i++)
        strcat(many, "{{seq}}");
    assert_int_equal(template_compile(many, &template, message, sizeof message), -1);
    assert_int_equal(template_compile("12345{{uuid}}", &template, message, sizeof message), 0);
    assert_int_equal(template_expand(&template, SEED, 1, 0, out, sizeof out), -1);
}

TEST_THAT(message_shows_the_placeholder_and_no_more)
{
    static const struct {
        const char *text, *shown;
    } wrong[] = {{"X: {{nope}}\r\nHost: a\r\n", "'{{nope}}' is"},
                 {"X: {{nope\r\nY: {{seq}}\r\n", "'{{nope' is"},
                 {"a {{random 1 2 3 4 5 6 7 8 9}} b", "'{{random 1 2 3 4 5 6 7 8 9}}' is"}};
    struct template template;
    char message[200];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(template_compile(wrong[i].text, &template, message, sizeof message), -1);
        if (strncmp(message, wrong[i].shown, strlen(wrong[i].shown)) != 0)
            fail_msg("%s", message);
    }
}
