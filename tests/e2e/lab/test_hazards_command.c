/* The lab's command: what it lists, in which order it reports, and what a run leaves that did not
 * come to its end. */
#include "process.h"
#include "hazards_rig.h"

#include <fcntl.h>

enum { PATIENCE_MS = 20000 };

static void write_old_page(void)
{
    FILE *file = fopen(page, "we");
    assert_non_null(file);
    fputs("188 cases, 0 not as expected", file);
    assert_int_equal(fclose(file), 0);
}

static size_t count(const json_t *json, const char *list)
{
    return json_array_size(json_object_get(json, list));
}

GROUP_FIXTURE(open_folder, close_folder);

/* What was found before or after it is written all the same, and nothing old looks current. */
TEST_THAT(case_that_cannot_be_run_is_named)
{
    write_wrapper("$(case \"$*\" in *redis-set*) echo --no-such-flag;; esac)");
    write_old_page();
    expect((const char *const[]){"run", "--hazard", "wrong-delete", "--guard", "redis-set",
                                 "--guard", "redis-token", "--seckilld", wrapper, "--json", report,
                                 "--html", page, NULL},
           EXIT_FAILURE);
    json_t *json = load_report(), *left;
    assert_true(json_is_false(json_object_get(json, "complete")));
    assert_int_equal(count(json, "results"), 1);
    assert_int_equal(count(json, "not_run"), 1);
    left = json_array_get(json_object_get(json, "not_run"), 0);
    assert_string_equal(json_string_value(json_object_get(left, "guard")), "redis-set");
    json_decref(json);
    assert_true(page_has("Incomplete, 1 not run: 2 cases, 0 not as expected"));
    assert_true(page_has("not run"));
    assert_true(file_has(output, "incomplete: 1 of 2 cases run, 0 mismatches; not run:\n"
                                 "     wrong-delete  redis-set\n"));
}

static bool has_three_starts(void *path)
{
    return access(path, F_OK) == 0 && file_has(path, "x\nx\nx\n");
}

TEST_THAT(interrupted_run_writes_what_there_is)
{
    char started[SANDBOX_TEXT_MAX + 16], marks[SANDBOX_TEXT_MAX + 40];
    snprintf(started, sizeof started, "%s/started", sandbox_dir(sandbox));
    snprintf(marks, sizeof marks, "$(echo x >>'%s')", started);
    write_wrapper(marks);
    write_old_page();
    pid_t pid =
        start((const char *const[]){"run", "--hazard", "lost-update", "--repeat", "20",
                                    "--seckilld", wrapper, "--json", report, "--html", page, NULL});
    /* Two instances for the first case, and one for the second: the first is over. */
    assert_true(wait_until(has_three_starts, started, 2 * PATIENCE_MS));
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(await(pid), INTERRUPTED);
    json_t *json = load_report();
    assert_true(json_is_false(json_object_get(json, "complete")));
    assert_true(count(json, "results") >= 1);
    assert_true(count(json, "not_run") >= 1);
    assert_true(count(json, "results") + count(json, "not_run") >= 23);
    json_decref(json);
    assert_true(page_has("Incomplete"));
    assert_true(file_has(output, "incomplete: "));
}

static int prompts(void)
{
    static char content[1 << 16];
    int n = 0;
    FILE *file = fopen(output, "re");
    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    for (const char *at = content; (at = strstr(at, "(press Enter to go on)")) != NULL; at++)
        n++;
    return n;
}

static bool has_prompted(void *n)
{
    return prompts() == *(int *)n;
}

/* The keys come one by one, or together. */
TEST_THAT(story_waits_for_each_key_and_can_be_interrupted)
{
    static const char keys[] = "\n\n";
    int ends[2], ours = dup(STDIN_FILENO), one = 1, three = 3, status;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    pid_t pid = start(
        (const char *const[]){"run", "--hazard", "lost-update", "--guard", "none", "--step", NULL});
    assert_int_equal(dup2(ours, STDIN_FILENO), STDIN_FILENO);
    assert_true(wait_until(has_prompted, &one, PATIENCE_MS));
    assert_int_equal(write(ends[1], keys, sizeof keys - 1), sizeof keys - 1);
    assert_true(wait_until(has_prompted, &three, PATIENCE_MS));
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_true(program_ends(pid, PATIENCE_MS, &status));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), INTERRUPTED);
    assert_int_equal(prompts(), three);
    assert_true(file_has(output, "incomplete: 0 of 1 case run, 0 mismatches; not run:\n"));
    close(ours);
    close(ends[0]);
    close(ends[1]);
}

/* In another order, the lines and columns are where they always are. */
TEST_THAT(matrix_is_in_the_catalogue_s_order)
{
    static const char *const guards[] = {"none", "redis-token", "sql-atomic", "sql-version"};
    for (const char *const *seed = (const char *const[]){"0", "7", NULL}; *seed != NULL; seed++) {
        expect((const char *const[]){"run", "--hazard", "lost-update", "--guard", "none", "--guard",
                                     "redis-token", "--guard", "sql-atomic", "--guard",
                                     "sql-version", "--seed", *seed, "--json", report, "--html",
                                     page, NULL},
               EXIT_SUCCESS);
        json_t *json = load_report();
        for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
            json_t *result = json_array_get(json_object_get(json, "results"), i);
            assert_string_equal(json_string_value(json_object_get(result, "guard")), guards[i]);
        }
        json_decref(json);
        assert_true(page_has("<th scope='col'>none</th><th scope='col'>redis-token</th>"
                             "<th scope='col'>sql-atomic</th><th scope='col'>sql-version</th>"));
    }
}

TEST_THAT(stories_are_told_in_both_languages)
{
    static const char *const said[][2] = {
        {"en", "A is held at \"decided\": it read 1000 and will write 800"},
        {"zh", "余额为 700，应为 500：有一笔 200 的扣款没有扣掉"}};
    for (size_t i = 0; i < 2; i++) {
        expect((const char *const[]){"run", "--hazard", "lost-update", "--guard", "none",
                                     "--narrate", "--lang", said[i][0], NULL},
               EXIT_SUCCESS);
        assert_true(file_has(output, said[i][1]));
    }
}

TEST_THAT(wrong_arguments_are_told)
{
    expect((const char *const[]){NULL}, USAGE);
    expect((const char *const[]){"run", "--hazard", "no-such", NULL}, USAGE);
    expect((const char *const[]){"run", "--repeat", "0", NULL}, USAGE);
    expect((const char *const[]){"run", "--hazard", "eviction", "--guard", "mutex", NULL}, USAGE);
    expect((const char *const[]){"list", "--guard", "no-such", NULL}, USAGE);
    expect((const char *const[]){"list", "--repeat", "2", NULL}, USAGE);
    expect((const char *const[]){"show", NULL}, USAGE);
    assert_true(file_has(output, "unknown command 'show'"));
}

TEST_THAT(list_shows_what_is_asked_for)
{
    expect((const char *const[]){"list", "--json", report, NULL}, EXIT_SUCCESS);
    json_t *json = load_json(report);
    assert_true(json_array_size(json) >= 30);
    json_decref(json);
    expect((const char *const[]){"list", "--hazard", "lost-update", "--hazard", "eviction",
                                 "--guard", "none", "--json", report, NULL},
           EXIT_SUCCESS);
    json = load_json(report);
    assert_int_equal(json_array_size(json), 1);
    assert_int_equal(count(json_array_get(json, 0), "cases"), 1);
    json_decref(json);
    const char *const to_full[] = {shop_binary("hazards"), "list", NULL};
    assert_int_equal(await(program_start(to_full, "/dev/full", output)), EXIT_FAILURE);
    assert_true(file_has(output, "standard output"));
    for (const char *const *as = (const char *const[]){"--lang=en", "--markdown", NULL};
         *as != NULL; as++) {
        expect(
            (const char *const[]){"list", "--hazard", "lost-update", "--guard", "none", *as, NULL},
            EXIT_SUCCESS);
        assert_true(file_has(output, "lost-update"));
        assert_true(file_has(output, "none"));
        assert_false(file_has(output, "mutex"));
        assert_false(file_has(output, "oversell"));
    }
}
