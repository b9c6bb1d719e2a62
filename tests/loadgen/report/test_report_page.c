/* The page that a report makes: one file, readable, its pictures inside their frames. */
#include "report_rig.h"

TEST_FIXTURE(open_report, close_report);

TEST_THAT(page_needs_nothing_from_elsewhere_and_escapes)
{
    static const char *const outside[] = {"http://", "https://", "src=", "<link",
                                          "<script", "@import",  "url("};
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    strcpy(report->runs[0].counterexample[0].txn_id, "<b>'\"&");
    add_run(&workload_accounts, "redis-token", true);
    char *page = written(report_to_html);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_null(strstr(page, outside[i]));
    assert_non_null(strstr(page, "loadgen sale &lt;&amp;&gt;"));
    assert_null(strstr(page, "<b>"));
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    assert_true(strstr(page, "class='headline") < strstr(page, "<svg"));
    free(page);
}

TEST_THAT(proof_of_a_lost_update_is_two_rows_from_one_version)
{
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    char *page = written(report_to_html);
    const char *proof = strstr(page, "Proof: how");
    assert_non_null(proof);
    assert_non_null(strstr(proof, "<td>63</td><td>37</td><td>36</td>"));
    assert_non_null(strstr(proof, "Both changes started from the same version"));
    free(page);
}

TEST_THAT(chart_and_table_of_the_page_have_one_p99)
{
    add_run(&workload_sale, "redis-token", true);
    for (int i = 0; i < 100; i++)
        hist_record(&report->runs[0].load.service, 7);
    char *page = written(report_to_html);
    assert_non_null(strstr(page, "/s, p99 990 us"));
    assert_non_null(strstr(page, "<td>990 us</td>"));
    assert_null(strstr(page, "p99 7 us"));
    free(page);
}

TEST_THAT(text_behind_the_longest_bar_stays_on_the_picture)
{
    enum { PICTURE_WIDTH = 900, DIGIT_WIDTH = 7 };
    int texts = 0;
    add_run(&workload_accounts, "none", false);
    report->runs[0].verdict =
        (struct verdict){.lost_updates = 2147483647, .lost_amount = INT64_C(123456789012345678)};
    char *page = written(report_to_html);
    static const char bar[] = "<text class='badtext' x='";
    for (const char *at_bar = strstr(page, bar); at_bar != NULL; at_bar = strstr(at_bar + 1, bar)) {
        const char *text = strchr(at_bar, '>') + 1;
        double length = (double)strcspn(text, "<");
        assert_true(atof(at_bar + strlen(bar)) + DIGIT_WIDTH * length <= PICTURE_WIDTH);
        texts++;
    }
    assert_int_equal(texts, 1);
    free(page);
}

TEST_THAT(lock_time_beyond_the_last_bucket_is_more_than_its_bound)
{
    add_run(&workload_sale, "redis-token", true);
    report->runs[0].lock_times =
        (struct lock_times){.n_bounds = 2,
                            .bounds_us = {1000, 30000000},
                            .wait = {.below = {60, 60}, .count = 100, .sum_us = 1e9},
                            .hold = {.below = {100, 100}, .count = 100, .sum_us = 1e4}};
    char *page = written(report_to_html);
    const char *row = strstr(page, "<th>hold, p99</th>");
    assert_non_null(row);
    assert_non_null(strstr(row, "<td>≤ 1.0 ms</td><td>&gt; 30.00 s</td>"));
    free(page);
}
