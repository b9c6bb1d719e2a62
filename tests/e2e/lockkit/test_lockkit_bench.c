/* lockkit bench: the real binary. */
#include "process.h"
#include "redis.h"
#include "shop.h"
#include "tests.h"
#include "tool.h"
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 64, SIGNALLED = 128, SEEN_WITHIN_MS = 20000 };

static double number(const json_t *json, const char *name)
{
    json_t *value = json_object_get(json, name);
    if (!json_is_number(value))
        fail_msg("no number %s", name);
    return json_number_value(value);
}

GROUP_FIXTURE(tool_open, tool_close);
TEST_FIXTURE(tool_empty, NULL);

TEST_THAT(bench_measures_what_it_was_asked_for)
{
    struct tool tool;
    assert_int_equal(RUN(&tool, "bench", "-g", "redis-fair", "--threads", "4", "--keys", "one",
                         "--hold-us", "2000", "--duration", "1", "--json"),
                     0);
    json_t *json = tool_said_json(&tool);
    assert_true(number(json, "pairs") >= 4);
    assert_true(number(json, "pairs_per_s") <= 500); /* one key, held for 2 ms each time */
    assert_true(number(json, "hand_overs_per_s") > 0);
    assert_true(number(json, "hand_overs_per_s") <= number(json, "pairs_per_s"));
    assert_true(number(json, "jain") > 0.9 && number(json, "jain") <= 1.000001); /* it is fair */
    assert_true(number(json, "wait_p50_us") >= 2000); /* three others come first */
    assert_true(number(json, "wait_p50_us") <= number(json, "wait_p99_us"));
    assert_true(number(json, "wait_p99_us") <= number(json, "wait_max_us"));
    assert_true(number(json, "commands_per_pair") >= 2);
    assert_int_equal(number(json, "failures"), 0);
    assert_int_equal(number(json, "overlaps"), 0);
    json_decref(json);
    assert_int_equal(RUN(&tool, "bench", "--duration", "0.1"), 0);
    assert_non_null(strstr(tool_said(&tool), "pairs/s"));
}

TEST_THAT(bench_takes_many_keys_at_a_time)
{
    struct tool tool;
    assert_int_equal(
        RUN(&tool, "bench", "--threads", "2", "--each", "8", "--duration", "0.5", "--json"), 0);
    json_t *json = tool_said_json(&tool);
    assert_int_equal(number(json, "keys"), 16);
    assert_int_equal(number(json, "each"), 8);
    assert_true(number(json, "pairs") >= 16);
    assert_int_equal((int64_t)number(json, "pairs") % 8, 0);
    assert_true(number(json, "commands_per_pair") >= 2);
    assert_int_equal(number(json, "failures"), 0);
    json_decref(json);
    assert_int_equal(RUN(&tool, "bench", "--each", "8", "--keys", "one"), USAGE);
    assert_int_equal(RUN(&tool, "bench", "--each", "33"), USAGE);
}

/* Its verdict can be bad: somebody frees the key over and over. */
TEST_THAT(bench_tells_a_lock_that_two_had)
{
    struct tool deleter = TOOL("acquire", "lock:deleter", "--", "sh", "-c",
                               "trap 'exit 0' TERM; while :; do "
                               "\"$0\" release --force lock:bench:0; done",
                               shop_binary("lockkit"));
    struct tool tool;
    assert_int_equal(RUN(&tool, "bench", "--threads", "4", "--keys", "one", "--hold-us", "20000",
                         "--duration", "2", "--json"),
                     FAILED);
    json_t *json = tool_said_json(&tool);
    assert_true(number(json, "overlaps") > 0);
    assert_true(number(json, "failures") > 0); /* releases of what was no longer theirs */
    json_decref(json);
    kill(deleter.pid, SIGTERM);
    assert_int_equal(tool_ends(&deleter), 0);
}

static bool has_begun(void *unused)
{
    (void)unused;
    return redis_do(tool_redis, "EXISTS {lock:bench:0}:fence") == 1;
}

TEST_THAT(bench_shows_what_it_has_when_a_signal_ends_it)
{
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        redis_do(tool_redis, "FLUSHALL");
        struct tool tool = TOOL("bench", "--threads", "4", "--keys", "one", "--hold-us", "10000",
                                "--duration", "3600", "--json");
        assert_true(wait_until(has_begun, NULL, SEEN_WITHIN_MS));
        kill(tool.pid, signals[i]);
        assert_int_equal(tool_ends(&tool), SIGNALLED + signals[i]);
        json_t *json = tool_said_json(&tool);
        assert_true(number(json, "pairs") >= 1);
        assert_true(number(json, "seconds") < 1000);
        double pairs = number(json, "pairs_per_s") * number(json, "seconds");
        assert_true(pairs > 0.99 * number(json, "pairs") && pairs < 1.01 * number(json, "pairs"));
        assert_int_equal(number(json, "failures"), 0);
        json_decref(json);
        assert_int_equal(redis_do(tool_redis, "EXISTS lock:bench:0"), 0);
    }
}

/* The last of its threads waits for a lock that another program has. */
TEST_THAT(bench_is_ended_by_a_signal_when_its_time_is_over_too)
{
    assert_int_equal(redis_do(tool_redis, "SET lock:bench:0 other"), 1);
    int64_t start_ms = test_now_ms();
    struct tool tool = TOOL("bench", "--keys", "one", "--duration", "0.1");
    while (test_now_ms() - start_ms < 1000)
        usleep(10000);
    kill(tool.pid, SIGTERM);
    assert_int_equal(tool_ends(&tool), 1000 + SIGTERM); /* by the signal */
    assert_true(test_now_ms() - start_ms < 8000);       /* it would wait for ten seconds */
}

TEST_THAT(bench_names_the_first_failure_and_no_waits_of_no_locks)
{
    struct tool tool;
    assert_int_equal(redis_do(tool_redis, "SET lock:bench:0 other"), 1);
    assert_int_equal(RUN(&tool, "bench", "--each", "1", "--duration", "0.1", "--json"), FAILED);
    json_t *json = tool_said_json(&tool);
    assert_int_equal(number(json, "pairs"), 0);
    assert_true(number(json, "failures") > 0);
    assert_string_equal(json_string_value(json_object_get(json, "first_failure")),
                        "not granted within wait_ms");
    assert_true(json_is_null(json_object_get(json, "wait_p50_us")));
    assert_true(json_is_null(json_object_get(json, "wait_max_us")));
    json_decref(json);
    assert_int_equal(RUN(&tool, "bench", "--each", "1", "--duration", "0.1"), FAILED);
    assert_non_null(strstr(tool_said(&tool), ": not granted within wait_ms\n"));
    assert_non_null(strstr(tool_said(&tool), " -\n"));
    assert_null(strstr(tool_said(&tool), " ms\n"));
}

int main(void)
{
    signal(SIGINT, SIG_DFL); /* ignored in the background of a shell */
    return tests_run();
}
