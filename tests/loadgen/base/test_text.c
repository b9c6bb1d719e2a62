/* Numbers and text for people. */
#include "text.h"
#include "tests.h"

#include <stdint.h>
#include <string.h>

TEST_THAT(numbers_read_well)
{
    char out[TEXT_MAX];
    assert_string_equal(text_count(out, 0), "0");
    assert_string_equal(text_count(out, 999), "999");
    assert_string_equal(text_count(out, 1000), "1,000");
    assert_string_equal(text_count(out, -123456), "-123,456");
    assert_string_equal(text_count(out, INT64_MIN), "-9,223,372,036,854,775,808");
    assert_string_equal(text_signed(out, 300), "+300");
    assert_string_equal(text_signed(out, -2000), "-2,000");
    assert_string_equal(text_time_us(out, 850), "850 us");
    assert_string_equal(text_time_us(out, 12340), "12.3 ms");
    assert_string_equal(text_time_us(out, 99960), "100 ms");
    assert_string_equal(text_time_us(out, 1204000), "1.20 s");
    char small[6];
    assert_string_equal(text_html(small, sizeof small, "a<b"), "a&lt;");
}

TEST_THAT(lines_break_between_words_before_80_columns)
{
    char in[200], out[240], tight[12];
    assert_string_equal(text_wrap(out, sizeof out, "  one line\nand another", 4),
                        "  one line\nand another");
    memset(in, 'x', 78);
    strcpy(in + 78, " yy\n  zz");
    text_wrap(out, sizeof out, in, 4);
    assert_string_equal(out + 78, "\n    yy\n  zz");
    strcpy(in + 78, " y z");
    text_wrap(out, sizeof out, in, 2);
    assert_string_equal(out + 78, " y\n  z");
    memset(in, 'x', 120); /* a word that no line holds stays whole */
    in[120] = '\0';
    assert_string_equal(text_wrap(out, sizeof out, in, 2), in);
    assert_string_equal(text_wrap(tight, sizeof tight, "some words too many", 0), "some words");
}
