/* Thresholds: what can be said, and when it is broken. */
#include "threshold.h"
#include "tests.h"

#include <string.h>

static struct hist latency;
static const struct verdict verdict = {.oversold = 3};

/* 1,000 latencies from 1 to 1,000 ms; 1 % of 2,000 sendings broken. */
static const struct threshold_figures at_end = {.latency = &latency,
                                                .seconds = 2.5,
                                                .answered = 1000,
                                                .sent = 2000,
                                                .errors = 20,
                                                .timeouts = 5,
                                                .at_end = true,
                                                .verdict = &verdict};

static struct threshold parsed(const char *text)
{
    struct threshold threshold;
    char message[512];
    if (threshold_parse(text, &threshold, message, sizeof message) != 0)
        fail_msg("'%s': %s", text, message);
    return threshold;
}

static bool kept(const char *text, const struct threshold_figures *figures)
{
    struct threshold threshold = parsed(text);
    double value;
    return threshold_kept(&threshold, figures, &value);
}

static int fill(void **state)
{
    (void)state;
    if (hist_init(&latency) != 0)
        return -1;
    for (int i = 1; i <= 1000; i++)
        hist_record(&latency, i * 1000);
    return 0;
}

static int empty(void **state)
{
    (void)state;
    hist_free(&latency);
    return 0;
}

GROUP_FIXTURE(fill, empty);

TEST_THAT(each_metric_is_judged_by_its_figure)
{
    static const struct {
        const char *text;
        bool kept;
    } cases[] = {
        {"p(99)<991ms", true},    {"p(99)<989ms", false},    {"p(50) < 0.51s", true},
        {"p(50)<499000", false},  {"p(99.9)<=1s", true},     {"max<=1000ms", true},
        {"max<999ms", false},     {"min>=1000us", true},     {"avg>500ms", true},
        {"avg<500ms", false},     {"rate>399", true},        {"rate>=401", false},
        {"rate==400", true},      {"errors<=20", true},      {"errors<20", false},
        {"errors<1.1%", true},    {"errors<0.9 %", false},   {"timeouts==5", true},
        {"timeouts!=5", false},   {"dropped==0", true},      {"oversold==3", true},
        {"oversold == 0", false}, {"lost_updates==0", true}, {"unknown<1", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (kept(cases[i].text, &at_end) != cases[i].kept)
            fail_msg("%s: %s", cases[i].text, cases[i].kept ? "broken" : "kept");
}

TEST_THAT(nonsense_is_refused_with_what_was_expected)
{
    static const char *const wrong[] = {
        "",
        "p<5",
        "p(0)<5",
        "p(101)<5",
        "p(99<5",
        "p()<5",
        "p(x)<5",
        "p(nan)<5",
        "speed>5",
        "rate",
        "rate 5",
        "rate=>5",
        "rate>",
        "rate>x",
        "rate>5ms",
        "errors<5s",
        "oversold<1%",
        "p(99)<5m",
        "rate>5 5",
        "max<5ms,",
        "rate>infinity",
        "errors<0.000000000000000000000000000000000000000000000000000000000001%",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct threshold threshold;
        char message[512] = "";
        if (threshold_parse(wrong[i], &threshold, message, sizeof message) == 0)
            fail_msg("'%s' is understood", wrong[i]);
        assert_true(strlen(message) > 10);
    }
}

TEST_THAT(what_is_not_known_yet_is_no_breach_but_at_the_end_it_is)
{
    struct hist none = {0};
    struct threshold_figures figures = {.latency = &none};
    assert_true(kept("p(99)<1ms", &figures));
    assert_true(kept("oversold==0", &figures));
    assert_true(kept("rate>100", &figures)); /* still in the warm-up */
    figures.seconds = 0.999;
    assert_true(kept("rate>100", &figures)); /* of too short a time */
    figures.seconds = 1;
    figures.dropped = 7;
    assert_false(kept("rate>100", &figures));
    assert_true(kept("dropped==0", &figures));
    figures.seconds = 0;
    figures.at_end = true;
    assert_false(kept("rate>100", &figures));
    assert_false(kept("p(99)<1ms", &figures));
    assert_false(kept("oversold==0", &figures));
    assert_true(kept("errors==0", &figures));
    assert_false(kept("dropped==0", &figures));
}

TEST_THAT(figures_under_way_leave_the_warm_up_and_second_tries_out)
{
    const struct load_progress now = {.elapsed_us = 3500000,
                                      .due = 900,
                                      .sent = 850,
                                      .retries = 50,
                                      .measured = 700,
                                      .answered = 600,
                                      .failed = 3,
                                      .ends = {[LOAD_TIMED_OUT] = 7, [LOAD_BROKEN] = 2},
                                      .latency = &latency};
    struct threshold_figures figures = threshold_figures_now(&now, 500);
    assert_true(figures.seconds == 3.0);
    assert_true(kept("rate==200", &figures));
    assert_true(kept("dropped==0", &figures)); /* 100 are late, and may still be sent */
    assert_true(kept("dropped>100", &figures));
    assert_true(kept("retries==50", &figures));
    assert_true(kept("timeouts==7", &figures));
    assert_true(kept("errors==12", &figures));
    assert_true(kept("oversold==0", &figures)); /* nobody knows yet */
    assert_true(threshold_figures_now(&now, 5000).seconds == 0);
}

/* 1,000 answers and 1,000 requests that never went out: these have waited for ever. */
TEST_THAT(requests_never_sent_count_as_slowest_of_all)
{
    struct threshold_figures figures = at_end;
    struct threshold p60 = parsed("p(60)<3600s"), average = parsed("avg<3600s"),
                     most = parsed("max<3600s");
    char text[64];
    double value;
    figures.never_sent = 1000;
    assert_true(kept("p(50)<=1000ms", &figures));
    assert_true(kept("p(25)<501ms", &figures));
    assert_false(kept("p(25)<499ms", &figures));
    assert_true(kept("min==1ms", &figures));
    const struct threshold *all[] = {&p60, &average, &most};
    for (size_t i = 0; i < 3; i++) {
        assert_false(threshold_kept(all[i], &figures, &value));
        assert_string_equal(threshold_value_text(all[i], value, text, sizeof text), "never");
    }
}

TEST_THAT(without_figures_a_share_is_nothing_and_a_latency_is_unknown)
{
    struct threshold_figures nothing = {.at_end = true};
    assert_true(kept("errors<=0%", &nothing));
    assert_false(kept("errors>0%", &nothing));
    assert_false(kept("p(99)<3600s", &nothing));
    assert_false(kept("min>=0", &nothing));
    nothing.at_end = false;
    assert_true(kept("p(99)<3600s", &nothing));
    nothing.at_end = true;
    nothing.sent = 60;
    nothing.dropped = 40;
    assert_true(kept("dropped==40%", &nothing)); /* of all that should have been sent */
    const struct load_progress late = {.due = 9, .sent = 5, .latency = &latency};
    assert_true(threshold_figures_now(&late, 0).dropped == 0);
}

/* However small the room for the message. */
TEST_THAT(unknown_metric_is_refused_within_the_room)
{
    struct threshold threshold;
    for (size_t room = 1; room < 200; room++) {
        char message[256];
        memset(message, 'x', sizeof message);
        assert_int_not_equal(threshold_parse("speed>5", &threshold, message, room), 0);
        assert_true(memchr(message, '\0', room) != NULL);
        assert_int_equal(message[room], 'x');
    }
}

TEST_THAT(values_are_told_in_units_that_people_know)
{
    static const struct {
        const char *threshold;
        double value;
        const char *text;
    } cases[] = {{"p(99)<50ms", 1500, "1.5 ms"},
                 {"errors<1%", 0.25, "0.25 %"},
                 {"errors<1", 25000, "25,000"},
                 {"rate>1", 12345.6, "12,346"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct threshold threshold = parsed(cases[i].threshold);
        char text[64];
        assert_string_equal(threshold_value_text(&threshold, cases[i].value, text, sizeof text),
                            cases[i].text);
    }
}

TEST_THAT(first_broken_one_is_named)
{
    struct threshold all[] = {parsed("rate>1"), parsed("errors<1%"), parsed("max<1ms")};
    assert_ptr_equal(threshold_first_broken(all, 3, &at_end), &all[1]);
    assert_null(threshold_first_broken(all, 1, &at_end));
}
