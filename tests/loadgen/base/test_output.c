/* Files that a command line names. */
#include "output.h"
#include "sandbox.h"
#include "tests.h"

#include <string.h>
#include <unistd.h>

static struct sandbox *sandbox; /* only for a folder that goes away */

static int open_folder(void **state)
{
    (void)state;
    return sandbox_open(&sandbox);
}

static int close_folder(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

GROUP_FIXTURE(open_folder, close_folder);

TEST_THAT(missing_folders_are_made)
{
    char path[SANDBOX_TEXT_MAX + 32], text[8] = "";
    snprintf(path, sizeof path, "%s/a/b/c.txt", sandbox_dir(sandbox));
    FILE *out = output_open("test", path);
    assert_non_null(out);
    fputs("text", out);
    assert_int_equal(output_close("test", path, out), 0);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    assert_non_null(fgets(text, sizeof text, in));
    fclose(in);
    assert_string_equal(text, "text");
}

TEST_THAT(what_cannot_be_written_is_told)
{
    assert_null(output_open("test", sandbox_dir(sandbox))); /* a folder */
    FILE *full = output_open("test", "/dev/full");
    assert_non_null(full);
    fputs("text", full);
    assert_int_equal(output_close("test", "/dev/full", full), -1);
}

TEST_THAT(files_are_looked_at_before_the_work_and_left_as_they_are)
{
    char there[SANDBOX_TEXT_MAX + 32], new[SANDBOX_TEXT_MAX + 32], text[8] = "";
    snprintf(there, sizeof there, "%s/there.txt", sandbox_dir(sandbox));
    snprintf(new, sizeof new, "%s/sub/new.txt", sandbox_dir(sandbox));
    FILE *out = fopen(there, "we");
    assert_non_null(out);
    fputs("text", out);
    fclose(out);
    const char *const good[] = {NULL, "-", there, new};
    assert_int_equal(output_check_files("test", good, 4), 0);
    assert_int_equal(access(new, F_OK), -1);
    FILE *in = fopen(there, "re");
    assert_non_null(fgets(text, sizeof text, in));
    fclose(in);
    assert_string_equal(text, "text");
    const char *const bad[] = {there, "/proc/self/no/report.json"};
    assert_int_equal(output_check_files("test", bad, 2), -1);
}

TEST_THAT(json_is_written_whole_or_told)
{
    char path[SANDBOX_TEXT_MAX + 32];
    snprintf(path, sizeof path, "%s/json/of.json", sandbox_dir(sandbox));
    assert_int_equal(output_json("test", path, json_pack("{s:f}", "rate", 0.1)), 0);
    json_t *json = json_load_file(path, 0, NULL);
    assert_true(json_real_value(json_object_get(json, "rate")) == 0.1);
    json_decref(json);
    assert_int_equal(output_json("test", "/dev/full", json_object()), -1);
    assert_int_equal(output_json("test", sandbox_dir(sandbox), json_object()), -1);
    assert_int_equal(output_json("test", path, NULL), -1); /* no memory */
}

TEST_THAT(dash_is_stdout_and_stays_open)
{
    FILE *out = output_open("test", "-");
    assert_ptr_equal(out, stdout);
    assert_int_equal(output_close("test", "-", out), 0);
    assert_true(printf("\n") == 1);
}
