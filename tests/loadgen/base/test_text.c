/* Numbers and text for people. */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void numbers_read_well(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
