/* A run that is killed leaves a history that can be judged: each request that reached the service
 * is in it. */
#include "load.h"
#include "loadgen_rig.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { KILLED = 9 };

static char history[SANDBOX_TEXT_MAX + 16], audit[SANDBOX_TEXT_MAX + 16];

static int64_t size_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_size : -1;
}

/* Some hundred requests were sent. */
static bool load_runs(void *unused)
{
    (void)unused;
    return size_of(history) > 100000;
}

static void start_and_kill(const char *guard, const char *workload)
{
    int status;
    unlink(history);
    pid_t pid = start((const char *const[]){workload, "--url", shop.service->url, "--guards", guard,
                                            "--mode", "closed", "--connections", "32", "--duration",
                                            "10m", "--pairs", "0", "--history", history, NULL});
    assert_true(wait_until(load_runs, NULL, ENDS_WITHIN_MS));
    kill(pid, SIGKILL);
    assert_true(program_ends(pid, ENDS_WITHIN_MS, &status));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == KILLED);
}

/* What was in flight may be done before, between or after: whatever it is, it is in the history. */
static void check_says(int expected)
{
    struct load_target target;
    char message[200], *answer;
    assert_int_equal(load_target_parse(shop.service->url, &target, message, sizeof message), 0);
    assert_int_equal(load_fetch(&target, "GET", "/v1/audit", "", NULL, ENDS_WITHIN_MS, &answer),
                     200);
    FILE *out = fopen(audit, "we");
    assert_non_null(out);
    fputs(answer, out);
    assert_int_equal(fclose(out), 0);
    free(answer);
    pid_t pid = start((const char *const[]){"check", history, "--audit", audit, NULL});
    int status;
    assert_true(program_ends(pid, ENDS_WITHIN_MS, &status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        fail_msg("exit status %d, expected %d:\n%s", WEXITSTATUS(status), expected,
                 content_of(output));
}

TEST_THAT(history_of_a_killed_run_is_judged)
{
    for (int i = 0; i < 5; i++) {
        start_and_kill("redis-token", i % 2 == 0 ? "accounts" : "transfers");
        check_says(0);
        start_and_kill("none", "accounts");
        check_says(99);
    }
}

TEST_THAT(torn_line_of_a_killed_run_is_told)
{
    start_and_kill("redis-token", "accounts");
    /* In the middle of the last line, as a write that a kill cut short. */
    assert_int_equal(truncate(history, size_of(history) - 5), 0);
    pid_t pid = start((const char *const[]){"check", history, NULL});
    int status;
    assert_true(program_ends(pid, ENDS_WITHIN_MS, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_non_null(strstr(content_of(output), "the last, ends in the middle and was left out"));
    assert_int_equal(strncmp(content_of(output), "Holds: ", 7), 0);
}

static int open_killed(void **state)
{
    int result = open_shop(state);
    snprintf(history, sizeof history, "%s/history", sandbox_dir(shop.sandbox));
    snprintf(audit, sizeof audit, "%s/audit", sandbox_dir(shop.sandbox));
    snprintf(audit, sizeof audit, "%s/audit", sandbox_dir(shop.sandbox));
    return result;
}

GROUP_FIXTURE(open_killed, close_shop);
