/* The live view: what it shows, and that it fits. */
#include "text_width.h"
#include "live.h"
#include "tests.h"

#include <string.h>

static struct live_facts sale(void)
{
    return (struct live_facts){.workload = "sale",
                               .guard = "none",
                               .elapsed_us = 1500000,
                               .completed = 1234,
                               .planned = 2000,
                               .rates = {100, 800, 400},
                               .n_rates = 3,
                               .p50_us = 900,
                               .p99_us = 12000,
                               .p999_us = 51000,
                               .accepted = 130,
                               .errors = 2,
                               .has_stock = true,
                               .initial = 100,
                               .stock = -7,
                               .sold = 130};
}

TEST_THAT(shows_rate_percentiles_stock_oversold_and_errors)
{
    struct live_facts facts = sale();
    char text[LIVE_TEXT_MAX];
    assert_int_equal(live_compose(&facts, 120, text), 5);
    static const char *const wanted[] = {"sale under none: 1,234 of 2,000 requests done",
                                         "400/s  ▂█▅", "p50 900 us, p99 12.0 ms",
                                         "30 oversold, -7 of 100 left", "errors 2"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strstr(text, wanted[i]) == NULL)
            fail_msg("'%s' is not in\n%s", wanted[i], text);
}

/* The main figures, and the newest rate at the end of the curve, are seen at 80 columns. */
TEST_THAT(main_figures_are_seen_at_80_columns)
{
    struct live_facts facts = sale();
    char text[LIVE_TEXT_MAX];
    facts.n_rates = LIVE_RATES_MAX;
    for (int i = 0; i < LIVE_RATES_MAX; i++)
        facts.rates[i] = i == LIVE_RATES_MAX - 1 ? 1 : 1e6;
    facts.initial = facts.stock = 1000000;
    facts.sold = 1234567;
    assert_int_equal(live_compose(&facts, 79, text), 5);
    assert_non_null(strstr(text, "1.00/s  "));
    assert_non_null(strstr(text, "█▁\n"));
    assert_non_null(strstr(text, "234,567 oversold, 1,000,000 of 1,000,000 left  ██"));
}

TEST_THAT(no_line_is_wider_than_the_window)
{
    struct live_facts facts = sale();
    char text[LIVE_TEXT_MAX];
    facts.n_rates = LIVE_RATES_MAX;
    for (int i = 0; i < LIVE_RATES_MAX; i++)
        facts.rates[i] = i * 1e6;
    for (int width = 20; width < 300; width++) {
        int lines = live_compose(&facts, width, text), ends = 0;
        assert_true(columns_of(text) <= (size_t)width);
        for (const char *c = text; *c != '\0'; c++)
            ends += *c == '\n';
        assert_int_equal(ends, lines);
    }
}

TEST_THAT(nothing_measured_yet_is_not_shown_as_zero)
{
    struct live_facts facts = {.workload = "accounts", .guard = "none", .p50_us = -1};
    char text[LIVE_TEXT_MAX];
    assert_int_equal(live_compose(&facts, 80, text), 3);
    assert_null(strstr(text, "p50"));
    assert_null(strstr(text, "stock"));
}
