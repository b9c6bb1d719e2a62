/* The site from recordings as they may be: of a part, damaged, hostile. And each note of the lab
 * has words. */
#include "museum.h"
#include "process.h"
#include "sandbox.h"
#include "sandbox_process.h"
#include "trace.h"
#include "words.h"

#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

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

/* A lost update, as the lab records it, after this first event of A. */
static json_t *lab(const char *first)
{
    json_t *outcome = json_pack("{s:s, s:i, s:i, s:i, s:i}", "unit", "balance", "initial", 1000,
                                "expected_final", 500, "final", 700, "lost_amount", 200);
    json_t *timeline =
        json_pack("[o, o, o, o, o]", event(0, "A", first, -1), event(1500, "A", "read", 1000),
                  event(2000, "B", "read", 1000), event(3000, "A", "committed", 800),
                  event(4000, "B", "committed", 700));
    json_t *record = json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "hazard", "lost-update",
                               "guard", "none", "variant", "", "fence", 0, "observed", "unsafe",
                               "outcome", outcome, "timeline", timeline);
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

static void a_part_is_shown_and_the_rest_is_named(void **state)
{
    (void)state;
    assert_int_equal(make(lab("sends")), 0);
    assert_true(has("index.html", "B writes 700. It had read 1,000, so A&#39;s change is gone."));
    assert_true(has("index.html", "This scene was not recorded: failover under redis-token."));
    assert_true(has("index.html", "The sale without a lock was not recorded."));
    assert_true(has("matrix.html", "are not shown: 1"));
    assert_true(has("zh/index.html", "B 写入 700。"));
    assert_true(has("lesson/lost-update.html", "<details class=\"exhibit\" id=\"none\" open>"));
}

/* Without scripts: every event as an item of an ordered list, and the verdict. */
static void the_pages_say_it_all_without_scripts(void **state)
{
    (void)state;
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

static void the_opening_has_the_figures_of_the_recorded_sale(void **state)
{
    (void)state;
    assert_int_equal(make(lab_sale(100)), 0);
    assert_true(has("index.html", "100 phones. 2,000 buyers."));
    assert_true(has("index.html", "1,350 sold. 1,250 of them do not exist."));
    assert_true(has("index.html", "Buyer u8"));
    assert_true(has("index.html", "Both have read the same 100."));
}

/* Two rows that start from different values prove nothing: the demo's sale is told then. */
static void a_sale_whose_rows_agree_is_not_told(void **state)
{
    (void)state;
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

static void a_recording_cannot_add_markup(void **state)
{
    (void)state;
    assert_int_equal(make(lab("</script><img src=x onerror=alert(1)>")), 0);
    assert_false(has("index.html", "<img"));
    assert_false(has("lesson/lost-update.html", "</script><img"));
    assert_true(has("index.html", "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
}

static void no_word_is_left_unfilled(void **state)
{
    static const char *const pages[] = {"index.html", "matrix.html", "lesson/lost-update.html",
                                        "zh/index.html"};
    (void)state;
    assert_int_equal(make(lab("sends")), 0);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        assert_false(has(pages[i], "{{"));
}

static void a_contradiction_is_an_error_that_names_it(void **state)
{
    (void)state;
    json_t *recording = lab("sends");
    json_t *record = json_array_get(json_object_get(recording, "results"), 0);
    json_array_set_new(json_object_get(record, "timeline"), 2, event(2000, "B", "read", 800));
    assert_int_equal(make(recording), -1);
    assert_non_null(strstr(message, "scene lost-update tells \"same\""));
}

static void what_is_no_recording_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(make(json_object()), -1);
    assert_non_null(strstr(message, "no results"));
    assert_int_equal(make(json_pack("{s:s}", "results", "none")), -1);
    assert_int_equal(make(json_pack("{s:[s, i, {}]}", "results", "x", 1)), 0);
    assert_int_equal(make(json_pack("[]")), -1);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    char was[PATH_LONGEST];
    (void)state;
    memcpy(was, folder, sizeof was);
    snprintf(folder, sizeof folder, "/dev/null/site");
    assert_int_equal(make(lab("sends")), -1);
    assert_non_null(strstr(message, "cannot write /dev/null/site/"));
    memcpy(folder, was, sizeof was);
}

/* -- each note of the lab ------------------------------------------------------------------------
 */

/* The note with something in each place: "nodes %s killed". A place right behind a word is an
 * optional tail, and left out: "answer is lost%s". */
static void fill_in(const char *format, char out[TRACE_POINT_MAX])
{
    size_t n = 0;
    for (; *format != '\0' && *format != '"' && n < TRACE_POINT_MAX - 1; format++)
        if (*format == '%') {
            format += 1 + strspn(format + 1, "l");
            if (n == 0 || !isalnum((unsigned char)out[n - 1]))
                out[n++] = *format == 's' ? 'A' : '7';
        } else
            out[n++] = *format;
    out[n] = '\0';
}

static int check_notes(const char *text, const json_t *words)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, "run_note(")) != NULL; at++) {
        const char *quote = strchr(at, ','), *end = strstr(at, ");");
        if (strncmp(at, "run_note(struct", 15) == 0 || quote == NULL)
            continue;
        quote = strchr(quote + 1, ','); /* after the actor */
        for (quote = strchr(quote, '"'); quote != NULL && quote < end; quote = strchr(quote, '"')) {
            char point[TRACE_POINT_MAX], key[TRACE_POINT_MAX + 8];
            struct trace_event told;
            fill_in(quote + 1, point);
            quote = strchr(quote + 1, '"') + 1;
            if (point[0] == '\0' || point[0] == ' ' || point[0] == ',')
                continue; /* what joins parts */
            json_t *record =
                json_pack("{s:[o]}", "timeline",
                          event(0, strncmp(point, "shop-", 5) == 0 ? "tasks" : "locks", point, -1));
            assert_true(trace_event(record, 0, &told));
            json_decref(record);
            snprintf(key, sizeof key, "at.%s", told.words);
            if (json_object_get(words, key) == NULL)
                fail_msg("no words for the lab's note \"%s\"", point);
            n++;
        }
    }
    return n;
}

static void each_note_of_the_lab_has_words(void **state)
{
    int n = 0;
    json_t *words = words_open("zh");
    DIR *dir = opendir("loadgen/lab");
    struct dirent *entry;
    (void)state;
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        static char text[FILE_MAX];
        char path[PATH_LONGEST];
        if (strstr(entry->d_name, ".c") == NULL)
            continue;
        snprintf(path, sizeof path, "loadgen/lab/%s", entry->d_name);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        n += check_notes(text, words);
    }
    closedir(dir);
    json_decref(words);
    assert_true(n > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_shown_and_the_rest_is_named),
        cmocka_unit_test(the_pages_say_it_all_without_scripts),
        cmocka_unit_test(the_opening_has_the_figures_of_the_recorded_sale),
        cmocka_unit_test(a_sale_whose_rows_agree_is_not_told),
        cmocka_unit_test(a_recording_cannot_add_markup),
        cmocka_unit_test(no_word_is_left_unfilled),
        cmocka_unit_test(a_contradiction_is_an_error_that_names_it),
        cmocka_unit_test(what_is_no_recording_is_an_error),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_an_error),
        cmocka_unit_test(each_note_of_the_lab_has_words),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
