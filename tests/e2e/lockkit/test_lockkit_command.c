/* lockkit status, release and guards: the real binary. */
#include "lockkit.h"
#include "process.h"
#include "redis.h"
#include "shop.h"
#include "tests.h"
#include "tool.h"
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    FAILED = 1,
    USAGE = 64,
    AWAY = 69,
    BROKEN = 70,
    LOST = 76,
    LEASE_MS = 30000,
    SEEN_WITHIN_MS = 20000
};

static bool is_held(void *key)
{
    return redis_do(tool_redis, "EXISTS %s", (const char *)key) == 1;
}

static struct tool hold(const char *key, const char *guard)
{
    struct tool tool = TOOL("acquire", "-g", guard, key, "--", "cat");
    assert_true(wait_until(is_held, (void *)key, SEEN_WITHIN_MS));
    return tool;
}

/* -- status -------------------------------------------------------------------------------------
 */

GROUP_FIXTURE(tool_open, tool_close);
TEST_FIXTURE(tool_empty, NULL);

TEST_THAT(status_shows_what_is_held_and_what_is_free)
{
    struct tool status, holder = hold("lock:b", "redis-token");
    assert_int_equal(RUN(&status, "status", "lock:b", "lock:a"), 0);
    const char *said = tool_said(&status);
    const char *b = strstr(said, "lock:b  exclusive"), *a = strstr(said, "lock:a  free");
    assert_non_null(a);
    assert_non_null(b);
    assert_true(b < a); /* in the order asked for */
    assert_int_equal(strncmp(said, "key ", 4), 0);
    assert_int_equal(RUN(&status, "status"), 0);
    assert_non_null(strstr(tool_said(&status), "lock:b"));
    assert_null(strstr(tool_said(&status), "lock:a"));
    assert_int_equal(RUN(&status, "status", "--prefix", "lock:x"), 0);
    assert_null(strstr(tool_said(&status), "lock:b"));
    assert_int_equal(tool_ends(&holder), 0);
}

TEST_THAT(status_as_json_tells_each_fact)
{
    struct tool status, holder = hold("lock:b", "redis-token"),
                        late = hold("lock:a", "redis-token");
    assert_int_equal(RUN(&status, "status", "--json"), 0);
    json_t *json = tool_said_json(&status);
    json_t *locks = json_object_get(json, "locks");
    assert_string_equal(json_string_value(json_object_get(json, "guard")), "redis-token");
    assert_int_equal(json_array_size(locks), 2);
    const char *key, *mode, *token;
    json_int_t holders, left_ms, fence, waiters;
    json_t *first = json_array_get(locks, 0);
    assert_int_equal(json_unpack(first, "{s:s,s:s,s:I,s:I,s:I,s:I,s:s !}", "key", &key, "mode",
                                 &mode, "holders", &holders, "left_ms", &left_ms, "fence", &fence,
                                 "waiters", &waiters, "token", &token),
                     0);
    assert_string_equal(key, "lock:a"); /* sorted */
    assert_string_equal(mode, "exclusive");
    assert_int_equal(holders, 1);
    assert_in_range(left_ms, 1, LEASE_MS);
    assert_true(fence > 0);
    assert_true(strlen(token) > 32);
    json_decref(json);
    assert_int_equal(RUN(&status, "status", "--json", "lock:free"), 0);
    json = tool_said_json(&status);
    first = json_array_get(json_object_get(json, "locks"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "mode")), "free");
    assert_true(json_is_null(json_object_get(first, "left_ms")));
    json_decref(json);
    assert_int_equal(tool_ends(&holder), 0);
    assert_int_equal(tool_ends(&late), 0);
}

TEST_THAT(status_tells_permits_from_an_exclusive_hold)
{
    struct tool tool,
        holder = TOOL("acquire", "-g", "redis-semaphore", "--permits", "2", "lock:a", "--", "cat");
    assert_true(wait_until(is_held, (void *)"lock:a", SEEN_WITHIN_MS));
    assert_int_equal(RUN(&tool, "status", "-g", "redis-semaphore", "lock:a"), 0);
    assert_non_null(strstr(tool_said(&tool), "lock:a  permits         1"));
    assert_int_equal(tool_ends(&holder), 0);
}

TEST_THAT(status_is_sorted_by_key)
{
    struct tool status;
    char last[32] = "";
    for (int i = 0; i < 20; i++)
        assert_int_equal(redis_do(tool_redis, "SET lock:%d token", 29 - i), 1);
    assert_int_equal(RUN(&status, "status", "--json"), 0);
    json_t *json = tool_said_json(&status), *lock;
    size_t i;
    json_array_foreach(json_object_get(json, "locks"), i, lock)
    {
        const char *key = json_string_value(json_object_get(lock, "key"));
        assert_true(strcmp(key, last) > 0);
        snprintf(last, sizeof last, "%s", key);
    }
    assert_string_equal(last, "lock:29");
    json_decref(json);
}

/* -- release ------------------------------------------------------------------------------------
 */

TEST_THAT(release_frees_by_force_only_and_its_holder_is_told)
{
    struct tool tool;
    struct tool holder = TOOL("acquire", "--lease-ms", "600", "lock:a", "--", "sleep", "600");
    assert_true(wait_until(is_held, (void *)"lock:a", SEEN_WITHIN_MS));
    assert_int_equal(RUN(&tool, "release", "lock:a"), USAGE);
    assert_non_null(strstr(tool_complained(&tool), "--force"));
    assert_true(is_held((void *)"lock:a"));
    assert_int_equal(RUN(&tool, "release", "--force", "lock:a"), 0);
    assert_string_equal(tool_said(&tool), "lock:a: freed\n");
    assert_int_equal(tool_ends(&holder), LOST);
    assert_int_equal(RUN(&tool, "release", "--force", "lock:a"), FAILED);
    assert_string_equal(tool_said(&tool), "lock:a: nobody held it\n");
}

TEST_THAT(forced_release_wakes_who_waits)
{
    struct tool tool, holder = hold("lock:a", "redis-reentrant");
    struct redis_watch *watch = redis_watch_open(tool_redis);
    struct tool waiter = TOOL("acquire", "-g", "redis-reentrant", "lock:a", "--", "echo", "mine");
    assert_true(redis_watch_sees(watch, "SUBSCRIBE", SEEN_WITHIN_MS));
    redis_watch_close(watch);
    int64_t start_ms = test_now_ms();
    assert_int_equal(RUN(&tool, "release", "-g", "redis-reentrant", "--force", "lock:a"), 0);
    assert_int_equal(tool_ends(&waiter), 0);
    assert_true(test_now_ms() - start_ms < LEASE_MS / 2);
    assert_string_equal(tool_said(&waiter), "mine\n");
    assert_int_equal(tool_ends(&holder), LOST);
}

/* -- guards -------------------------------------------------------------------------------------
 */

TEST_THAT(guards_are_those_of_the_library)
{
    struct tool tool;
    assert_int_equal(RUN(&tool, "guards", "--json"), 0);
    json_t *json = tool_said_json(&tool);
    size_t n = 0;
    for (; lk_provider_at(n) != NULL; n++) {
        const lk_provider_info *info = lk_provider_at(n);
        json_t *guard = json_array_get(json, n), *claims = json_object_get(guard, "claims");
        assert_string_equal(json_string_value(json_object_get(guard, "guard")), info->name);
        assert_int_equal(json_array_size(claims), __builtin_popcount(info->caps));
        assert_string_equal(json_string_value(json_object_get(guard, "weakness")), info->weakness);
    }
    assert_int_equal(json_array_size(json), n);
    json_decref(json);
    assert_int_equal(RUN(&tool, "guards"), 0);
    for (size_t i = 0; i < n; i++)
        assert_non_null(strstr(tool_said(&tool), lk_provider_at(i)->weakness));
}

/* -- mistakes -----------------------------------------------------------------------------------
 */

TEST_THAT(mistakes_and_absent_servers_have_their_statuses)
{
    struct tool tool;
    static const char nowhere[] = "redis://127.0.0.1:1";
    assert_int_equal(RUN(&tool, "--help"), 0);
    assert_int_equal(tool_run((const char *const[]){NULL}, &tool), USAGE);
    assert_int_equal(RUN(&tool, "nonsense"), USAGE);
    static const char *const names[] = {"acquire", "status", "release", "guards", "bench"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(RUN(&tool, names[i], "--help"), 0);
    assert_int_equal(RUN(&tool, "status", "-e", nowhere), AWAY);
    assert_non_null(strstr(tool_complained(&tool), "127.0.0.1:1: Connection refused"));
    assert_non_null(strstr(tool_complained(&tool), "name another with -e"));
    assert_int_equal(RUN(&tool, "status", "-e", nowhere, "lock:a"), AWAY);
    assert_int_equal(RUN(&tool, "release", "-e", nowhere, "--force", "lock:a"), AWAY);
    assert_int_equal(RUN(&tool, "bench", "-e", nowhere), AWAY);
    assert_int_equal(RUN(&tool, "acquire", "-e", "redis+cluster://127.0.0.1:1", "a", "--", "true"),
                     AWAY);
    assert_non_null(strstr(tool_complained(&tool), "127.0.0.1:1: Connection refused"));
    assert_int_equal(RUN(&tool, "status", "a key"), USAGE);
    assert_int_equal(RUN(&tool, "status", "-g", "no-such"), USAGE);
    assert_int_equal(RUN(&tool, "acquire", "-g", "mutex", "a", "--", "true"), USAGE);
    assert_non_null(strstr(tool_complained(&tool), "mutex does not exclude other processes"));
    assert_int_equal(RUN(&tool, "release", "--force"), USAGE);
    assert_int_equal(RUN(&tool, "bench", "--threads", "0"), USAGE);
    assert_int_equal(RUN(&tool, "bench", "--keys", "some"), USAGE);
    assert_int_equal(RUN(&tool, "bench", "--duration", "long"), USAGE);
    assert_int_equal(RUN(&tool, "bench", "--shared"), USAGE);
    assert_int_equal(RUN(&tool, "bench", "--permits", "2"), USAGE);
}

TEST_THAT(a_key_that_cannot_be_one_is_told_the_rule)
{
    char longest[LK_KEY_MAX + 1] = "", longer[LK_KEY_MAX + 2] = "";
    memset(longest, 'k', sizeof longest - 1);
    memset(longer, 'k', sizeof longer - 1);
    const struct {
        const char *first, *second, *rule;
    } rows[] = {{"lock:a", "lock:a", "key 'lock:a' is given twice"},
                {"lock:a", "", "'' cannot be a key: that is 1 to 200"},
                {"lock:a", "a key", "'a key' cannot be a key"},
                {"lock:a", "l\303\266ck", "printable ASCII"},
                {"lock:a", "{a}", "without spaces or braces"},
                {"lock:a", longer, "kkk...' cannot be a key: that is 1 to 200"}};
    struct tool tool;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(RUN(&tool, "acquire", rows[i].first, rows[i].second, "--", "true"), USAGE);
        assert_non_null(strstr(tool_complained(&tool), rows[i].rule));
    }
    assert_int_equal(RUN(&tool, "status", "lock:a", "lock:a"), 0);
    assert_int_equal(RUN(&tool, "release", "--force", ""), USAGE);
    assert_non_null(strstr(tool_complained(&tool), "'' cannot be a key"));
    assert_int_equal(RUN(&tool, "acquire", longest, "--", "true"), 0);
}

TEST_THAT(help_lists_the_statuses)
{
    static const char *const names[] = {"acquire", "status", "release", "bench", "guards"};
    struct tool tool;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(RUN(&tool, names[i], "--help"), 0);
        const char *statuses = strstr(tool_said(&tool), "Exit status: ");
        assert_non_null(statuses);
        assert_non_null(strstr(statuses, "64"));
        bool asks_a_server = strcmp(names[i], "guards") != 0;
        assert_int_equal(strstr(statuses, "69") != NULL, asks_a_server);
        assert_non_null(strstr(statuses, "70"));
    }
}

static int run_in_shell(const char *script, struct tool *ret)
{
    return RUN(ret, "acquire", "lock:shell", "--", "sh", "-c", script, shop_binary("lockkit"));
}

TEST_THAT(output_that_cannot_be_written_is_a_failure)
{
    static const char *const scripts[] = {
        "\"$0\" guards > /dev/full",        "\"$0\" guards --json > /dev/full",
        "\"$0\" status > /dev/full",        "\"$0\" status --json > /dev/full",
        "\"$0\" bench --help > /dev/full",  "\"$0\" --help > /dev/full",
        "\"$0\" status lock:a > /dev/full", "\"$0\" bench --duration 0.1 --json > /dev/full"};
    struct tool tool;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        assert_int_equal(run_in_shell(scripts[i], &tool), BROKEN);
        assert_string_equal(tool_complained(&tool), "lockkit: cannot write the standard output: No "
                                                    "space left on device\n");
    }
    assert_int_equal(run_in_shell("\"$0\" guards >&-", &tool), BROKEN);
    assert_int_equal(run_in_shell("\"$0\" status >&-", &tool), BROKEN); /* not into a socket */
    assert_int_equal(run_in_shell("\"$0\" acquire lock:a -- true >&-", &tool), 0);
}
