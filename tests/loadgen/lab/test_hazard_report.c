/* What people read of the lab: lines in columns, the words of the measure, who refused a write. */
#include "text_width.h"
#include "hazard_html.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

static struct lab_report report;

/* What this writes, to be freed. */
static char *written(void (*write)(FILE *out))
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    write(out);
    assert_int_equal(fclose(out), 0);
    return text;
}

TEST_THAT(measure_is_in_words)
{
    static const struct hazard account = {.id = "account"}, item = {.id = "item", .subject = ITEM},
                               crowd = {.id = "crowd", .subject = ITEM, .crowd = 2000},
                               queue = {.id = "queue", .queue = 20},
                               herd = {.id = "herd", .slow_wakes = 5};
    static const struct {
        const struct hazard *hazard;
        enum hazard_outcome observed;
        struct run_outcome outcome;
        const char *text;
    } rows[] = {
        {&account, HAZARD_UNSAFE, {.expected_final = 500, .final = 700}, "200 not deducted"},
        {&account, HAZARD_UNSAFE, {.expected_final = 800, .final = 600}, "200 too much"},
        {&account, HAZARD_UNSAFE, {.lost_updates = 1}, "1 overwritten"},
        {&item, HAZARD_UNSAFE, {.expected_final = 1, .final = 2}, "1 too many"},
        {&item, HAZARD_UNSAFE, {.expected_final = 2, .final = 1}, "1 too few"},
        {&item, HAZARD_UNSAFE, {.duplicates = 1, .lost_updates = 1}, "1 done twice"},
        {&crowd, HAZARD_REFUSED, {.failed = 1932}, "1,932 failed"},
        {&queue, HAZARD_SLOW, {.overtakings = 19}, "overtaken by 19"},
        {&herd, HAZARD_SAFE, {.wakes = 1}, "1 woken"},
        {&account, HAZARD_STUCK, {.measure_ms = 2000}, "2.00 s"},
        {&account, HAZARD_SAFE, {.measure_ms = 2000}, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct lab_result result = {
            .hazard = rows[i].hazard, .observed = rows[i].observed, .outcome = rows[i].outcome};
        char text[LAB_MEASURE_MAX];
        assert_string_equal(lab_measure(&result, EN, text), rows[i].text);
    }
}

static void write_text(FILE *out)
{
    lab_report_to_text(&report, out);
}

/* The verdict first; whatever the lengths, outcome and guard stand under their headings, and no
 * line is wider than a terminal. */
TEST_THAT(lines_stand_under_their_heading)
{
    static const struct hazard_case cases[] = {
        {.guard = "none", .expected = HAZARD_SAFE},
        {.guard = "redlock",
         .expected = HAZARD_SAFE,
         .as = {"3 of 5 answers lost, cleaned up only where the answer was yes", ""}},
    };
    static const struct hazard hazard = {.id = "a-failure-with-a-really-long-name"};
    report = (struct lab_report){.repeat = 2, .n_results = 2};
    for (int i = 0; i < 2; i++)
        report.results[i] =
            (struct lab_result){.hazard = &hazard, .one = &cases[i], .runs = 2, .agreeing = 2};
    char *text = written(write_text), *rest = text;
    assert_true(columns_of(text) <= 80);
    assert_string_equal(strsep(&rest, "\n"), "As expected: 2 cases, 0 mismatches");
    assert_string_equal(strsep(&rest, "\n"), "");
    const char *heading = strsep(&rest, "\n");
    const char *outcome = strstr(heading, "outcome"), *guard = strstr(heading, "guard");
    assert_true(outcome != NULL && guard != NULL);
    assert_string_equal(strsep(&rest, "\n"), hazard.id);
    for (int i = 0; i < 2; i++) {
        const char *line = strsep(&rest, "\n");
        assert_int_equal(strncmp(line + (outcome - heading), "safe ", 5), 0);
        assert_int_equal(strncmp(line + (guard - heading), cases[i].guard, 4), 0);
    }
    free(text);
}

TEST_THAT(mismatch_is_the_verdict)
{
    static const struct hazard_case one = {.guard = "none", .expected = HAZARD_UNSAFE};
    static const struct hazard hazard = {.id = "lost-update"};
    report = (struct lab_report){.repeat = 1, .n_results = 1};
    report.results[0] =
        (struct lab_result){.hazard = &hazard, .one = &one, .runs = 1, .observed = HAZARD_SAFE};
    char *text = written(write_text);
    static const char expected[] =
        "NOT AS EXPECTED: 1 case, 1 mismatch\n"
        "MISMATCH lost-update under none: safe, expected unsafe; the fault took effect in 0 of 1 "
        "runs\n";
    assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
    free(text);
}

static struct lab_result fenced;

static void write_trace(FILE *out)
{
    hazard_html_trace(&fenced, out);
}

static void expect_in_trace(const char *text, bool there)
{
    char *list = written(write_trace);
    if ((strstr(list, text) != NULL) != there)
        fail_msg("%s%s in\n%s", text, there ? " is not" : "", list);
    free(list);
}

static void write_page(FILE *out)
{
    lab_report_to_html(&report, out);
}

/* Whatever was chosen: two-processes and double-task name their guards in another order. */
TEST_THAT(columns_are_in_the_catalogue_s_order)
{
    static const char *const ids[] = {"two-processes", "double-task"};
    report = (struct lab_report){.repeat = 1};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        for (const struct hazard_case *one = hazard_find(ids[i])->cases; one->guard != NULL; one++)
            report.results[report.n_results++] =
                (struct lab_result){.hazard = hazard_find(ids[i]), .one = one};
    char *page = written(write_page);
    assert_non_null(strstr(page, "<th scope='col'>none</th><th scope='col'>mutex</th>"
                                 "<th scope='col'>redis-token</th>"));
    free(page);
}

/* Each element that begins so: its text up to its end is in both languages. */
static void expect_bilingual(const char *page, const char *begin, const char *end)
{
    int n = 0;
    for (const char *at = page; (at = strstr(at, begin)) != NULL; n++) {
        const char *stop = strstr(at, end), *chinese = strstr(at, "<span lang='zh'>");
        assert_non_null(stop);
        if (chinese == NULL || chinese > stop || chinese[strlen("<span lang='zh'>")] == '<')
            fail_msg("in English only: %.*s", (int)(stop - at), at);
        at = stop;
    }
    assert_true(n > 0);
}

TEST_THAT(headings_are_in_both_languages)
{
    static const char *const heads[][2] = {{"<h1>", "</h1>"},
                                           {"<h2>", "</h2>"},
                                           {"<h3>", "</h3>"},
                                           {"<strong>", "</strong>"},
                                           {"<p class='headline", "</p>"},
                                           {"<table class='matrix'>", "</th>"},
                                           {"<small>nothing lost", "</small>"}};
    report = (struct lab_report){.repeat = 1, .n_results = 1};
    report.results[0] = (struct lab_result){.hazard = hazard_find("lost-update"),
                                            .one = &hazard_find("lost-update")->cases[0],
                                            .runs = 1,
                                            .outcome.has_fork = true};
    char *page = written(write_page);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        expect_bilingual(page, heads[i][0], heads[i][1]);
    free(page);
}

TEST_THAT(refused_write_names_the_fence_that_refused_it)
{
    struct run_event events[] = {
        {.actor = "A", .point = "decided", .fence = 1},
        {.actor = "A", .point = "checked", .fence = 1},
        {.actor = "B", .point = "committed", .fence = 2},
        {.actor = "watchdog", .point = "lock.lost"},
        {.actor = "A", .point = "lost", .fence = 1},
        {.actor = "A", .point = "rejected", .fence = 1},
    };
    fenced = (struct lab_result){
        .fence = true, .events = events, .n_events = sizeof events / sizeof events[0]};
    expect_in_trace("rejected: fence 1 &lt; 2", true);
    strcpy(events[1].point, "decided"); /* it saw for itself that its lease was over */
    expect_in_trace("fence 1", false);
    expect_in_trace("rejected", true);
    strcpy(events[1].point, "checked");
    events[2].fence = 1;
    expect_in_trace("fence 1", false);
}

TEST_THAT(everybody_who_acts_is_told)
{
    struct run_event events[] = {
        {.actor = "A", .point = "by A"},
        {.actor = "B", .point = "by B"},
        {.actor = "C", .point = "by C"},
        {.actor = "crowd", .point = "by crowd"},
        {.actor = "queue", .point = "by queue"},
        {.actor = "tasks", .point = "by tasks"},
        {.actor = "readers", .point = "by readers"},
        {.actor = "locks", .point = "by locks"},
        {.actor = "store", .point = "by store"},
        {.actor = "watchdog", .point = "by watchdog"},
    };
    fenced = (struct lab_result){.events = events, .n_events = sizeof events / sizeof events[0]};
    for (int i = 0; i < fenced.n_events; i++)
        expect_in_trace(events[i].point, true);
}
