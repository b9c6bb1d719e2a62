/* What a newcomer types first: the demo shows what it promises to show, says so in its exit status,
 * and leaves nothing behind, interrupted or killed. All guards with TEST_FULL=1. */
#include "process.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 300, TO_SHOW_S = 20, CLEAN_WITHIN_MS = 10000, ARGS_MAX = 20 };
enum {
    STOCK = 2250,
    OVERSOLD_MIN = 20
}; /* of the demo; what a weak guard loses is not left to luck */

static struct sandbox *sandbox; /* only for a folder that goes away */
static char temporary[SANDBOX_TEXT_MAX + 8], report[SANDBOX_TEXT_MAX + 16],
    output[SANDBOX_TEXT_MAX + 16];

static int open_folder(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(temporary, sizeof temporary, "%s/t", sandbox_dir(sandbox));
    snprintf(report, sizeof report, "%s/report.json", sandbox_dir(sandbox));
    snprintf(output, sizeof output, "%s/output", sandbox_dir(sandbox));
    return mkdir(temporary, 0700) != 0 || setenv("TMPDIR", temporary, 1) != 0 ? -1 : 0;
}

static int close_folder(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    sandbox_close(sandbox);
    return 0;
}

static bool nothing_left(void *arg)
{
    (void)arg;
    int entries = 0;
    DIR *dir = opendir(temporary);
    if (dir == NULL)
        return false;
    while (readdir(dir) != NULL)
        entries++;
    closedir(dir);
    return entries == 2; /* "." and ".." */
}

/* Starts loadgen demo with these arguments, output to a file. */
static pid_t start_demo(const char *const *args)
{
    const char *argv[ARGS_MAX + 1] = {shop_binary("loadgen"), "demo", "--json", report};
    size_t n = 4;
    for (; *args != NULL; args++)
        if (n < ARGS_MAX)
            argv[n++] = *args;
    return program_start(argv, output, NULL);
}

static void show_output(void)
{
    char line[512];
    FILE *file = fopen(output, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        print_error("| %s", line);
    if (file != NULL)
        fclose(file);
}

/* No time is judged here: a demo that hangs is told before tests/run.sh ends this program. */
static int64_t patience_ms(void)
{
    const char *limit = getenv("TEST_TIMEOUT_S");
    return 1000L * ((limit != NULL ? atoi(limit) : LIMIT_S) - TO_SHOW_S);
}

static int wait_for_demo(pid_t pid)
{
    int status;
    if (!program_ends(pid, patience_ms(), &status)) {
        show_output();
        fail_msg("the demo does not end");
    }
    return status;
}

static void check_exit(int status, int expected)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        show_output();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
}

static int64_t number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value))
        fail_msg("no number \"%s\" in the report", name);
    return json_integer_value(value);
}

/* What the contract promises of each run. */
static void check_members(const json_t *run)
{
    static const char *const percentiles[] = {"p50", "p90", "p99", "max"};
    static const char *const load[] = {"connections", "sent", "completed", "dropped"};
    for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++) {
        assert_true(number(json_object_get(run, "latency_us"), percentiles[i]) > 0);
        assert_true(number(json_object_get(run, "service_us"), percentiles[i]) > 0);
    }
    for (size_t i = 0; i < sizeof load / sizeof load[0]; i++)
        number(json_object_get(run, "load"), load[i]);
    assert_true(number(run, "accepted") > 0);
    assert_true(json_is_number(json_object_get(run, "accepted_per_s")));
    assert_true(json_is_number(json_object_get(run, "throughput_rps")));
    assert_true(json_is_object(json_object_get(run, "status")));
    assert_true(json_is_object(json_object_get(run, "problems")));
    assert_true(json_is_true(json_object_get(run, "as_claimed")));
}

static void check_safe(const json_t *verdict)
{
    static const char *const none_of[] = {"oversold",   "undersold", "lost_updates", "lost_amount",
                                          "duplicates", "negative",  "unknown"};
    for (size_t i = 0; i < sizeof none_of / sizeof none_of[0]; i++)
        assert_int_equal(number(verdict, none_of[i]), 0);
    assert_true(json_is_true(json_object_get(verdict, "safe")));
}

/* The proof: two changes made from one reading. */
static void check_unsafe(const json_t *run)
{
    const json_t *verdict = json_object_get(run, "verdict");
    const json_t *proof = json_object_get(run, "counterexample");
    assert_true(json_is_false(json_object_get(verdict, "safe")));
    assert_true(number(verdict, "lost_updates") > 0);
    assert_int_equal(json_array_size(proof), 2);
    const json_t *first = json_array_get(proof, 0), *second = json_array_get(proof, 1);
    assert_int_equal(number(first, "version_before"), number(second, "version_before"));
    assert_int_equal(number(first, "before"), number(second, "before"));
    assert_string_not_equal(json_string_value(json_object_get(first, "txn_id")),
                            json_string_value(json_object_get(second, "txn_id")));
}

TEST_FIXTURE(open_folder, close_folder);

TEST_THAT(demo_shows_losses_without_a_distributed_lock_and_none_with_one)
{
    bool full = test_size(0, 1) == 1;
    static const char *const few[] = {"--guards", "none,mutex,redis-token", NULL};
    check_exit(wait_for_demo(start_demo(full ? few + 2 : few)), 0);
    assert_true(nothing_left(NULL));
    json_error_t error;
    json_t *document = json_load_file(report, 0, &error), *run;
    assert_non_null(document);
    assert_true(json_is_true(json_object_get(document, "as_claimed")));
    size_t i, sales_on_two = 0, accounts_on_two = 0;
    json_array_foreach(json_object_get(document, "runs"), i, run)
    {
        const char *guard = json_string_value(json_object_get(run, "guard"));
        bool sale = strcmp(json_string_value(json_object_get(run, "workload")), "sale") == 0;
        bool two = number(run, "instances") == 2;
        bool weak = strcmp(guard, "none") == 0 || (strcmp(guard, "mutex") == 0 && two);
        sales_on_two += sale && two;
        accounts_on_two += !sale && two;
        check_members(run);
        if (weak)
            check_unsafe(run);
        else
            check_safe(json_object_get(run, "verdict"));
        if (weak && sale)
            assert_true(number(json_object_get(run, "verdict"), "oversold") >= OVERSOLD_MIN);
        if (!sale) /* the columns of one row agree */
            assert_int_equal(number(json_object_get(run, "verdict"), "lost_amount"),
                             number(run, "actual") - number(run, "expected"));
        if (!weak && sale)
            assert_int_equal(number(run, "accepted"), STOCK);
    }
    assert_int_equal(sales_on_two, full ? 7 : 3); /* one for each guard */
    assert_int_equal(accounts_on_two, full ? 7 : 3);
    json_decref(document);
}

TEST_THAT(a_claim_that_does_not_hold_exits_99)
{
    check_exit(wait_for_demo(start_demo(
                   (const char *const[]){"--guards", "none", "--expect", "none=safe", NULL})),
               99);
    assert_true(nothing_left(NULL));
}

static bool servers_run(void *arg)
{
    char path[SANDBOX_TEXT_MAX * 3];
    bool found = false;
    DIR *dir = opendir(temporary);
    (void)arg;
    if (dir == NULL)
        return false;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && !found;) {
        snprintf(path, sizeof path, "%s/%s/demo.db", temporary, entry->d_name);
        found = access(path, F_OK) == 0;
    }
    closedir(dir);
    return found;
}

TEST_THAT(an_interrupted_demo_leaves_nothing)
{
    pid_t pid = start_demo((const char *const[]){NULL});
    assert_true(wait_until(servers_run, NULL, patience_ms()));
    kill(pid, SIGINT);
    check_exit(wait_for_demo(pid), 130);
    assert_true(nothing_left(NULL));
}

TEST_THAT(a_killed_demo_leaves_nothing)
{
    pid_t pid = start_demo((const char *const[]){NULL});
    assert_true(wait_until(servers_run, NULL, patience_ms()));
    kill(pid, SIGKILL);
    assert_true(WIFSIGNALED(wait_for_demo(pid)));
    assert_true(wait_until(nothing_left, NULL, CLEAN_WITHIN_MS));
}
