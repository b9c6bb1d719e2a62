/* The site from recordings as they may be: of a part, damaged, hostile. */
#include "exhibit.h"
#include "museum.h"
#include "process.h"
#include "sandbox.h"
#include "sandbox_process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_LONGEST = 700, FILE_MAX = 1 << 19 };

static struct sandbox *sandbox;
static char message[MUSEUM_MESSAGE_MAX], folder[PATH_LONGEST];

static int open_folder(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(folder, sizeof folder, "%s/site", sandbox_dir(sandbox));
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static const char *file_of(const char *name)
{
    static char text[FILE_MAX];
    char path[2 * PATH_LONGEST];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool has(const char *name, const char *text)
{
    return strstr(file_of(name), text) != NULL;
}

static json_t *event(int t_us, const char *actor, const char *point, int value)
{
    return json_pack("{s:i, s:s, s:s, s:o, s:i}", "t_us", t_us, "actor", actor, "point", point,
                     "value", value < 0 ? json_null() : json_integer(value), "fence", 0);
}

static json_t *lost_update(const char *first)
{
    return json_pack("[o, o, o, o, o]", event(0, "A", first, -1), event(1500, "A", "read", 1000),
                     event(2000, "B", "read", 1000), event(3000, "A", "committed", 800),
                     event(4000, "B", "committed", 700));
}

/* A lost update, as the lab records it, after this first event of A. */
static json_t *lab(const char *first)
{
    json_t *outcome = json_pack("{s:s, s:i, s:i, s:i, s:i}", "unit", "balance", "initial", 1000,
                                "expected_final", 500, "final", 700, "lost_amount", 200);
    json_t *record = json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "hazard", "lost-update",
                               "guard", "none", "variant", "", "fence", 0, "observed", "unsafe",
                               "outcome", outcome, "timeline", lost_update(first));
    return json_pack("{s:[o], s:[{}]}", "results", record, "not_run");
}

/* Makes the site; takes the recording. */
static int make(json_t *recording)
{
    const struct museum_recordings recordings = {.lab = recording};
    const int failed = museum_make(&recordings, folder, message);
    json_decref(recording);
    return failed;
}

GROUP_FIXTURE(open_folder, close_folder);

TEST_THAT(a_part_is_shown_and_the_rest_is_named)
{
    assert_int_equal(make(lab("sends")), 0);
    assert_true(has("index.html", "B writes 700. It had read 1,000, so A&#39;s change is gone."));
    assert_true(has("index.html", "This scene was not recorded: failover under redis-token."));
    assert_true(has("index.html", "The sale without a lock was not recorded."));
    assert_true(has("matrix.html", "are not shown: 1"));
    assert_true(has("matrix.html", "<b>—</b> cannot happen: the guard does not have what fails"));
    assert_true(has("zh/index.html", "B 写入 700。"));
    assert_true(has("lesson/lost-update.html", "<details class=\"exhibit\" id=\"none\" open>"));
}

/* Without scripts: every event as an item of an ordered list, and the verdict. */
TEST_THAT(the_pages_say_it_all_without_scripts)
{
    assert_int_equal(make(lab("sends")), 0);
    const char *text = strstr(file_of("lesson/lost-update.html"), "<ol class=\"trace\"");
    int items = 0;
    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, "<li")) != NULL; at++)
        items++;
    assert_int_equal(items, 5);
    assert_non_null(strstr(text, "A has written 800"));
    assert_non_null(strstr(text, "4.0 ms"));
    assert_non_null(strstr(text,
                           "UNSAFE: the row says 700. All accepted changes together make 500. "
                           "The row is 200 too high."));
}

/* A wrong balance is told as the lab tells it: of a withdrawal, and not of a row. */
TEST_THAT(a_wrong_balance_is_told_as_the_withdrawal_that_is_missing)
{
    static const struct {
        const char *id, *en, *zh;
    } told[] = {{"not-deducted", "not 500: one withdrawal of 200 was not deducted.",
                 "应为 500：有一笔 200 的扣款没有扣掉。"},
                {"too-little", "not 500: 200 too little was deducted.", "应为 500：少扣了 200。"},
                {"too-much", "not 500: 200 too much was deducted.", "应为 500：多扣了 200。"}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        json_t *recording = lab("sends");
        json_t *record = json_array_get(json_object_get(recording, "results"), 0);
        if (strcmp(told[i].id, "too-much") == 0)
            json_object_set_new(json_object_get(record, "outcome"), "final", json_integer(300));
        json_object_set_new(record, "facts", json_pack("[{s:s}]", "id", told[i].id));
        assert_int_equal(make(recording), 0);
        assert_true(has("lesson/lost-update.html", told[i].en));
        assert_true(has("zh/lesson/lost-update.html", told[i].zh));
    }
}

/* The threads that keep the leases read and write no value, so they have a line of time, but no box
 * of a client. */
TEST_THAT(a_thread_that_keeps_leases_is_not_drawn_as_a_client)
{
    static const char *const threads[] = {"watchdog", "lease timer"};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        char others[64];
        json_t *recording = lab("sends");
        json_t *record = json_array_get(json_object_get(recording, "results"), 0);
        json_array_insert_new(json_object_get(record, "timeline"), 1,
                              event(1000, threads[i], "lock.lost", -1));
        snprintf(others, sizeof others, "\"others\":[\"%s\"]", threads[i]);
        assert_int_equal(make(recording), 0);
        assert_true(has("lesson/lost-update.html", "\"clients\":[\"A\",\"B\"]"));
        assert_true(has("lesson/lost-update.html", others));
    }
}

/* Of the links in the page's first lines, how many lead to a file. -1: one does not, or one that is
 * not the last leads to the other language. */
static int good_links(const char *page)
{
    const char *at = strstr(file_of(page), "<nav"), *end = strstr(at, "</nav>");
    const char *slash = strrchr(page, '/'), *out = strstr(page, "lesson/") ? "../../" : "../";
    bool left = false; /* for the other language */
    int n = 0;
    while ((at = strstr(at, "href=\"")) != NULL && at < end) {
        char path[3 * PATH_LONGEST];
        const int length = (int)strcspn(at += strlen("href=\""), "#\"");
        snprintf(path, sizeof path, "%s/%.*s%.*s", folder, slash ? (int)(slash - page) + 1 : 0,
                 page, length, at);
        if (access(path, R_OK) != 0 || left)
            return -1;
        left = strncmp(at, out, strlen(out)) == 0;
        n++;
    }
    return n;
}

/* The same row on each page. The page itself is no link. */
/* The last four digits of the newer one are the lower number. */
TEST_THAT(fences_are_cut_where_they_can_still_be_compared)
{
    json_t *recording = lab("sends");
    json_t *record = json_array_get(json_object_get(recording, "results"), 0), *event;
    size_t i;
    json_array_foreach(json_object_get(record, "timeline"), i, event)
    {
        json_object_set_new(event, "fence",
                            json_integer(i == 1 || i == 3   ? 1764400009999998
                                         : i == 2 || i == 4 ? 1764400010000004
                                                            : 0));
    }
    assert_int_equal(make(recording), 0);
    assert_true(has("lesson/lost-update.html", ">#…09999998<"));
    assert_true(has("lesson/lost-update.html", ">#…10000004<"));
}

TEST_THAT(each_page_links_to_all_others)
{
    static const char *const pages[] = {"index.html", "levels.html", "matrix.html", "teach.html",
                                        "interview.html"};
    assert_int_equal(make(lab("sends")), 0);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char zh[PATH_LONGEST];
        snprintf(zh, sizeof zh, "zh/%s", pages[i]);
        assert_int_equal(good_links(pages[i]), 7);
        assert_int_equal(good_links(zh), 7);
        assert_true(has(pages[i], "<b aria-current=\"page\">") &&
                    has(zh, "<b aria-current=\"page\">"));
    }
    assert_int_equal(good_links("lesson/lost-update.html"), 8);
    assert_int_equal(good_links("zh/lesson/lost-update.html"), 8);
}

static json_t *two_rows(int second)
{
    return json_pack("[{s:s, s:i, s:i, s:s}, {s:s, s:i, s:i, s:s}]", "txn_id", "h1-u3", "before",
                     100, "after", 99, "instance", "shop-1", "txn_id", "h1-u8", "before", second,
                     "after", 99, "instance", "shop-2");
}

static json_t *lab_sale(int second)
{
    json_t *outcome =
        json_pack("{s:s, s:i, s:i, s:i, s:o}", "unit", "sold", "initial", 100, "final", 1350,
                  "oversold", 1250, "counterexample", two_rows(second));
    json_t *record =
        json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:[o]}", "hazard", "oversell", "guard", "none",
                  "variant", "", "fence", 0, "observed", "unsafe", "outcome", outcome, "timeline",
                  event(0, "crowd", "sends 2000 orders", -1));
    return json_pack("{s:[o], s:[]}", "results", record, "not_run");
}

static json_t *demo_sale(void)
{
    return json_pack("{s:[{s:s, s:s, s:i, s:i, s:{s:i}, s:o}]}", "runs", "workload", "sale",
                     "guard", "none", "initial", 2250, "accepted", 2900, "asked", "requests", 3000,
                     "counterexample", two_rows(100));
}

TEST_THAT(the_opening_has_the_figures_of_the_recorded_sale)
{
    assert_int_equal(make(lab_sale(100)), 0);
    assert_true(has("index.html", "100 phones. 2,000 buyers."));
    assert_true(has("index.html", "1,350 sold. 1,250 of them do not exist."));
    assert_true(has("index.html", "Buyer u8"));
    assert_true(has("index.html", "Both have read the same 100."));
}

/* Two rows that start from different values prove nothing: the demo's sale is told then. */
TEST_THAT(a_sale_whose_rows_agree_is_not_told)
{
    assert_int_equal(make(lab_sale(99)), 0);
    assert_true(has("index.html", "The sale without a lock was not recorded."));
    json_t *recording = lab_sale(99), *demo = demo_sale();
    const struct museum_recordings both = {.lab = recording, .demo = demo};
    assert_int_equal(museum_make(&both, folder, message), 0);
    assert_true(has("index.html", "2,250 phones. 3,000 buyers."));
    assert_true(has("index.html", "2,900 sold. 650 of them do not exist."));
    json_decref(recording);
    json_decref(demo);
}

TEST_THAT(a_recording_cannot_add_markup)
{
    assert_int_equal(make(lab("</script><img src=x onerror=alert(1)>")), 0);
    assert_false(has("index.html", "<img"));
    assert_false(has("lesson/lost-update.html", "</script><img"));
    assert_true(has("index.html", "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
}

/* A lesson that is no scene, with a sale whose rows name their instance. */
static json_t *hostile(const char *text)
{
    json_t *recording = lab_sale(100);
    json_t *results = json_object_get(recording, "results");
    json_t *record = json_deep_copy(json_array_get(results, 0));
    json_t *rows =
        json_object_get(json_object_get(json_array_get(results, 0), "outcome"), "counterexample");
    json_object_set_new(json_array_get(rows, 0), "instance", json_string(text));
    json_object_set_new(json_array_get(rows, 0), "txn_id", json_sprintf("h1-%s", text));
    json_object_set_new(record, "hazard", json_string("lost-update"));
    json_object_set_new(record, "guard", json_string(text));
    json_object_set_new(record, "variant", json_string(text));
    json_array_append_new(results, record);
    record = json_deep_copy(json_array_get(json_object_get(recording, "results"), 1));
    json_object_set_new(record, "guard", json_string("none")); /* the scene that links to it */
    json_object_set_new(record, "variant", json_string(""));
    json_object_set_new(record, "timeline", lost_update("sends"));
    json_array_append_new(results, record);
    return recording;
}

TEST_THAT(no_text_of_a_recording_is_markup)
{
    static const char *const pages[] = {"index.html", "matrix.html", "lesson/lost-update.html",
                                        "zh/matrix.html"};
    assert_int_equal(make(hostile("\"><img src=x onerror=alert(1)>")), 0);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        assert_true(has(pages[i], "&quot;&gt;&lt;img src=x"));
        assert_false(has(pages[i], "<img"));
        assert_false(has(pages[i], "\">&lt;img")); /* no attribute ends early */
    }
    assert_true(has("matrix.html", "href=\"lesson/lost-update.html#img-src-x-onerror-alert-1."));
    assert_true(has("index.html", "<span>&quot;&gt;&lt;img src=x"));
}

TEST_THAT(a_point_without_words_is_told_as_it_is)
{
    assert_int_equal(make(lab("meets {nobody} and {")), 0);
    assert_true(has("lesson/lost-update.html", "meets {nobody} and {</span>"));
}

TEST_THAT(no_word_is_left_unfilled)
{
    static const char *const pages[] = {"index.html", "matrix.html", "lesson/lost-update.html",
                                        "zh/index.html"};
    assert_int_equal(make(lab("sends")), 0);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        assert_false(has(pages[i], "{{"));
}

TEST_THAT(a_contradiction_is_an_error_that_names_it)
{
    json_t *recording = lab("sends");
    json_t *record = json_array_get(json_object_get(recording, "results"), 0);
    json_array_set_new(json_object_get(record, "timeline"), 2, event(2000, "B", "read", 800));
    assert_int_equal(make(recording), -1);
    assert_non_null(strstr(message, "scene lost-update tells \"same\""));
}

/* This member of the first record, and of its first event, is this text. */
static json_t *lab_with(const char *member, const char *text)
{
    json_t *recording = lab("sends");
    json_t *record = json_array_get(json_object_get(recording, "results"), 0);
    json_t *first = json_array_get(json_object_get(record, "timeline"), 0);
    json_t *outcome = json_object_get(record, "outcome");
    json_t *of = json_object_get(first, member) != NULL     ? first
                 : json_object_get(outcome, member) != NULL ? outcome
                                                            : record;
    json_object_set_new(of, member, text != NULL ? json_string(text) : json_null());
    return recording;
}

TEST_THAT(what_the_pages_cannot_tell_is_an_error_before_anything_is_written)
{
    static const struct {
        const char *member, *text, *told;
    } wrong[] = {
        {"observed", "lucky", "its observed is not an outcome"},
        {"observed", NULL, "its observed is not an outcome"},
        {"guard", NULL, "it has no guard"},
        {"unit", NULL, "its unit is not a word"},
        {"actor", "1234567890123456789012345", "too long or not ASCII"},
        {"point", "the lock of Zoë", "too long or not ASCII"},
    };
    char was[PATH_LONGEST];
    memcpy(was, folder, sizeof was);
    strcat(folder, "-of-nothing");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(make(lab_with(wrong[i].member, wrong[i].text)), -1);
        assert_non_null(strstr(message, wrong[i].told));
        assert_non_null(strstr(message, "results[0], lost-update under"));
        assert_int_not_equal(access(folder, F_OK), 0);
    }
    memcpy(folder, was, sizeof was);
}

static const char *slug_of(const char *guard, const char *variant)
{
    static char slug[EXHIBIT_SLUG_MAX + 1];
    json_t *record = json_pack("{s:s, s:s}", "guard", guard, "variant", variant);
    memset(slug, '!', sizeof slug);
    exhibit_slug(record, slug);
    json_decref(record);
    assert_int_equal(slug[EXHIBIT_SLUG_MAX], '!'); /* nothing is written behind it */
    return slug;
}

TEST_THAT(an_address_is_short_and_plain)
{
    char guard[201];
    assert_string_equal(slug_of("redis-token", "Fence on!"), "redis-token.fence-on");
    assert_string_equal(slug_of("none", ""), "none");
    assert_string_equal(slug_of("", ""), "");
    assert_string_equal(slug_of("", "  a  "), ".a");
    assert_string_equal(slug_of("\">", "é"), "");
    for (int length = EXHIBIT_SLUG_MAX - 4; length <= 200; length++) {
        memset(guard, 'g', sizeof guard);
        guard[length] = '\0';
        const char *slug = slug_of(guard, "variant");
        assert_in_range(strlen(slug), EXHIBIT_SLUG_MAX - 4, EXHIBIT_SLUG_MAX - 1);
        assert_memory_equal(slug, guard, EXHIBIT_SLUG_MAX - 4);
    }
}

TEST_THAT(what_is_no_recording_is_an_error)
{
    assert_int_equal(make(json_object()), -1);
    assert_non_null(strstr(message, "no results"));
    assert_int_equal(make(json_pack("{s:s}", "results", "none")), -1);
    assert_int_equal(make(json_pack("{s:[s, i, {}]}", "results", "x", 1)), 0);
    assert_int_equal(make(json_pack("[]")), -1);
}

TEST_THAT(a_folder_that_cannot_be_made_is_an_error)
{
    char was[PATH_LONGEST];
    memcpy(was, folder, sizeof was);
    snprintf(folder, sizeof folder, "/dev/null/site");
    assert_int_equal(make(lab("sends")), -1);
    assert_non_null(strstr(message, "cannot write /dev/null/site/"));
    memcpy(folder, was, sizeof was);
}
