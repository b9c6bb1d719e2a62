/* lockkit acquire, the real binary: a command under a lock, and its end when the lock is lost. */
#include "process.h"
#include "redis.h"
#include "shop.h"
#include "tests.h"
#include "tool.h"
#include <inttypes.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY "lock:task:1"

enum {
    USAGE = 64,
    AWAY = 69,
    TIMEOUT = 75,
    LOST = 76,
    NO_EXEC = 126,
    NOT_FOUND = 127,
    SIGNALLED = 1000,
    SEEN_WITHIN_MS = 20000,
    PROCESSES = 8
};

static int empty(void **state)
{
    (void)state;
    redis_do(tool_redis, "FLUSHALL");
    return 0;
}

static bool is_held(void *key)
{
    return redis_do(tool_redis, "EXISTS %s", (const char *)key) == 1;
}

static bool is_free(void *key)
{
    return !is_held(key);
}

static void expect_held(const char *key)
{
    assert_true(wait_until(is_held, (void *)key, SEEN_WITHIN_MS));
}

/* -- holding ------------------------------------------------------------------------------------
 */

GROUP_FIXTURE(tool_open, tool_close);
TEST_FIXTURE(empty, NULL);

TEST_THAT(others_are_refused_while_the_command_runs)
{
    struct tool second, first = TOOL("acquire", KEY, "--", "cat");
    expect_held(KEY);
    assert_int_equal(RUN(&second, "acquire", "--wait-ms", "0", KEY, "--", "true"), TIMEOUT);
    assert_non_null(strstr(tool_complained(&second), KEY));
    assert_int_equal(RUN(&second, "acquire", "--wait-ms", "100", KEY, "--", "true"), TIMEOUT);
    assert_int_equal(tool_ends(&first), 0); /* cat has read its end of file */
    assert_true(is_free((void *)KEY));
    assert_int_equal(RUN(&second, "acquire", "--wait-ms", "0", KEY, "--", "true"), 0);
}

TEST_THAT(status_of_the_command_is_passed_on)
{
    struct tool tool;
    assert_int_equal(RUN(&tool, "acquire", KEY, "--", "sh", "-c", "exit 7"), 7);
    assert_int_equal(RUN(&tool, "acquire", KEY, "--", "sh", "-c", "kill -9 $$"), 128 + SIGKILL);
    assert_true(is_free((void *)KEY));
}

TEST_THAT(command_learns_key_token_and_fence)
{
    struct tool tool;
    char fence[32];
    redis_do(tool_redis, "SET {" KEY "}:fence 4000000000000041");
    redis_do(tool_redis, "SET {lock:b}:fence 4000000000000006");
    assert_int_equal(RUN(&tool, "acquire", KEY, "--", "sh", "-c",
                         "echo \"$LOCKKIT_KEY/$LOCKKIT_FENCE/${#LOCKKIT_TOKEN}/\""),
                     0);
    assert_int_equal(
        strncmp(tool_said(&tool), KEY "/4000000000000042/", strlen(KEY "/4000000000000042/")), 0);
    snprintf(fence, sizeof fence, "%s", tool_said(&tool) + strlen(KEY "/4000000000000042/"));
    assert_true(atoi(fence) > 32); /* the token's length */
    assert_int_equal(RUN(&tool, "acquire", "lock:b", KEY, "--", "sh", "-c",
                         "echo \"$LOCKKIT_KEY/$LOCKKIT_FENCE/\"; set -- $LOCKKIT_TOKEN; echo $#"),
                     0);
    assert_string_equal(tool_said(&tool), "lock:b " KEY "/4000000000000007 4000000000000043/\n2\n");
}

/* Each reads, thinks and writes: only the lock keeps two of them apart. */
TEST_THAT(processes_exclude_each_other)
{
    struct tool tools[PROCESSES];
    char script[600], text[32] = "";
    snprintf(script, sizeof script,
             "f=%s/count; n=$(cat $f 2>/dev/null || echo 0); sleep 0.02; "
             "echo $((n + 1)) > $f",
             sandbox_dir(tool_sandbox));
    for (int i = 0; i < PROCESSES; i++)
        tools[i] = TOOL("acquire", KEY, "--", "sh", "-c", script);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(tool_ends(&tools[i]), 0);
    snprintf(script, sizeof script, "%s/count", sandbox_dir(tool_sandbox));
    FILE *file = fopen(script, "re");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_int_equal(atoi(text), PROCESSES);
}

TEST_THAT(permits_and_readers_let_so_many_in)
{
    struct tool third;
    struct tool a = TOOL("acquire", "-g", "redis-semaphore", "--permits", "2", KEY, "--", "cat");
    struct tool b = TOOL("acquire", "-g", "redis-semaphore", "--permits", "2", KEY, "--", "sh",
                         "-c", "echo ready; cat");
    assert_true(tool_says(&b, "ready"));
    expect_held(KEY);
    while (redis_do(tool_redis, "ZCARD " KEY) < 2)
        assert_true(process_runs(process_of(a.pid)));
    assert_int_equal(RUN(&third, "acquire", "-g", "redis-semaphore", "--permits", "2", "--wait-ms",
                         "0", KEY, "--", "true"),
                     TIMEOUT);
    assert_int_equal(tool_ends(&a), 0);
    assert_int_equal(tool_ends(&b), 0);
    a = TOOL("acquire", "-g", "redis-readwrite", "--shared", KEY, "--", "cat");
    expect_held(KEY);
    assert_int_equal(RUN(&b, "acquire", "-g", "redis-readwrite", "--shared", "--wait-ms", "0", KEY,
                         "--", "true"),
                     0);
    assert_int_equal(
        RUN(&b, "acquire", "-g", "redis-readwrite", "--wait-ms", "0", KEY, "--", "true"), TIMEOUT);
    assert_int_equal(tool_ends(&a), 0);
}

/* Its lease is a fifth of a second, its work ten times that. */
TEST_THAT(lease_is_renewed_while_the_command_runs)
{
    struct tool second;
    struct tool tool = TOOL("acquire", "--lease-ms", "200", KEY, "--", "sh", "-c",
                            "echo ready; sleep 2; echo done");
    assert_true(tool_says(&tool, "ready"));
    assert_int_equal(RUN(&second, "acquire", "--wait-ms", "1000", KEY, "--", "true"), TIMEOUT);
    assert_int_equal(tool_ends(&tool), 0);
    assert_non_null(strstr(tool_said(&tool), "done"));
}

/* -- losing -------------------------------------------------------------------------------------
 */

static bool is_gone(void *process)
{
    return !process_runs(*(struct process *)process);
}

/* The pid that it printed. */
static struct process printed_by(const struct tool *tool)
{
    struct process process = process_of((pid_t)atoi(tool_said(tool)));
    assert_true(process.started >= 0);
    return process;
}

/* With all that it started, even what does not listen. */
TEST_THAT(command_whose_lock_is_deleted_is_ended)
{
    struct tool tool = TOOL("acquire", "--lease-ms", "600", KEY, "--", "sh", "-c",
                            "trap 'echo told; exit 0' TERM; "
                            "(trap '' TERM; exec sleep 600) & echo $!; echo ready; wait");
    assert_true(tool_says(&tool, "ready"));
    struct process grandchild = printed_by(&tool);
    int64_t start_ms = test_now_ms();
    assert_int_equal(redis_do(tool_redis, "DEL " KEY), 1);
    assert_int_equal(tool_ends(&tool), LOST);
    assert_true(test_now_ms() - start_ms < SEEN_WITHIN_MS);
    assert_non_null(strstr(tool_complained(&tool), "vanished"));
    assert_non_null(strstr(tool_said(&tool), "told")); /* it could tidy up */
    assert_true(wait_until(is_gone, &grandchild, SEEN_WITHIN_MS));
}

TEST_THAT(command_that_ignores_its_end_is_killed_after_the_grace)
{
    struct tool tool = TOOL("acquire", "--lease-ms", "600", "--grace-ms", "300", KEY, "--", "sh",
                            "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    assert_true(tool_says(&tool, "ready"));
    assert_int_equal(redis_do(tool_redis, "DEL " KEY), 1);
    assert_int_equal(tool_ends(&tool), LOST);
}

TEST_THAT(success_without_the_lock_is_no_success)
{
    struct tool tool = TOOL("acquire", KEY, "--", "sh", "-c", "echo ready; read line; exit 0");
    assert_true(tool_says(&tool, "ready"));
    assert_int_equal(redis_do(tool_redis, "DEL " KEY), 1); /* the watchdog looks in 10 s */
    assert_int_equal(tool_ends(&tool), LOST);
}

TEST_THAT(guard_that_cannot_renew_is_lost_with_its_lease)
{
    struct tool tool;
    assert_int_equal(
        RUN(&tool, "acquire", "-g", "redis-set", "--lease-ms", "300", KEY, "--", "sleep", "600"),
        LOST);
}

/* -- signals ------------------------------------------------------------------------------------
 */

TEST_THAT(signals_reach_the_command)
{
    struct tool tool = TOOL("acquire", KEY, "--", "sh", "-c",
                            "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done");
    assert_true(tool_says(&tool, "ready"));
    kill(tool.pid, SIGTERM);
    assert_int_equal(tool_ends(&tool), 9);
    assert_true(is_free((void *)KEY));
}

TEST_THAT(waiting_for_the_lock_ends_with_a_signal)
{
    struct tool first = TOOL("acquire", KEY, "--", "cat");
    expect_held(KEY);
    struct redis_watch *watch = redis_watch_open(tool_redis);
    struct tool second = TOOL("acquire", KEY, "--", "true");
    assert_true(redis_watch_sees(watch, KEY, SEEN_WITHIN_MS)); /* it has tried */
    kill(second.pid, SIGTERM);
    assert_int_equal(tool_ends(&second), SIGNALLED + SIGTERM);
    redis_watch_close(watch);
    assert_int_equal(tool_ends(&first), 0);
}

TEST_THAT(killed_holder_takes_its_command_along)
{
    struct tool tool = TOOL("acquire", "--lease-ms", "1000", KEY, "--", "sh", "-c",
                            "echo $$; echo ready; while :; do sleep 0.05; done");
    assert_true(tool_says(&tool, "ready"));
    struct process child = printed_by(&tool);
    kill(tool.pid, SIGKILL);
    assert_int_equal(tool_ends(&tool), SIGNALLED + SIGKILL);
    assert_true(wait_until(is_gone, &child, SEEN_WITHIN_MS));
    assert_true(wait_until(is_free, (void *)KEY, SEEN_WITHIN_MS)); /* with its lease */
}

/* At a terminal the command reads what is typed, and Ctrl-C is for it. */
TEST_THAT(terminal_belongs_to_the_command)
{
    int terminal;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(shop_binary("lockkit"), "lockkit", "acquire", KEY, "--", "sed", "-u", "s/^/heard /",
              (char *)NULL);
        _exit(NOT_FOUND);
    }
    struct tool tool = {.pid = pid, .in = terminal};
    char text[512] = "";
    size_t length = 0;
    expect_held(KEY);
    assert_int_equal(write(terminal, "hello\n", 6), 6);
    while (strstr(text, "heard hello") == NULL && length < sizeof text - 1) {
        struct pollfd readable = {.fd = terminal, .events = POLLIN};
        assert_int_equal(poll(&readable, 1, SEEN_WITHIN_MS), 1);
        ssize_t n = read(terminal, text + length, sizeof text - 1 - length);
        assert_true(n > 0);
        length += (size_t)n;
    }
    assert_non_null(strstr(text, "heard hello"));
    assert_int_equal(write(terminal, "\x03", 1), 1);
    while (read(terminal, text, sizeof text) > 0) /* until nobody has it open */
        ;
    assert_int_equal(tool_ends(&tool), 128 + SIGINT);
    assert_true(is_free((void *)KEY));
}

/* -- failures of its own ------------------------------------------------------------------------
 */

TEST_THAT(failures_have_statuses_of_their_own)
{
    struct tool tool;
    assert_int_equal(RUN(&tool, "acquire", KEY, "--", "/no/such/command"), NOT_FOUND);
    assert_int_equal(RUN(&tool, "acquire", KEY, "--", "/tmp"), NO_EXEC);
    assert_true(is_free((void *)KEY));
    assert_int_equal(RUN(&tool, "acquire", "-e", "redis://127.0.0.1:1", KEY, "--", "true"), AWAY);
    assert_int_equal(RUN(&tool, "acquire", KEY), USAGE);
    assert_int_equal(RUN(&tool, "acquire", KEY, "--"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "a key", "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", KEY, KEY, "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "-g", "no-such", KEY, "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "--shared", KEY, "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "--permits", "2", KEY, "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "--wait-ms", "-1", KEY, "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "--lease-ms", "1x", KEY, "--", "true"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "--nonsense", KEY, "--", "true"), USAGE);
}
