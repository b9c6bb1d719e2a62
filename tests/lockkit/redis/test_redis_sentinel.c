/* redis+sentinel://: finding the master in any state of the Sentinels. */
#include "process.h"
#include "lateness.h"
#include "sandbox_proxy.h"
#include "redis.h"
#include "redis_link.h"
#include "redis_set.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define KEY "lock:item:1"

static struct sandbox *sandbox;
static struct sandbox_sentinel set;

static int open_set(void **state)
{
    (void)state;
    return sandbox_open(&sandbox) == 0 ? sandbox_sentinel(sandbox, &set) : -1;
}

static int close_set(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

/* The URL of the set with another master name or another first Sentinel. */
static void url_of(char *ret, size_t size, int first_port, const char *name)
{
    snprintf(ret, size, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/%s", first_port,
             set.sentinel[2]->port, name);
}

GROUP_FIXTURE(open_set, close_set);

TEST_THAT(every_redis_guard_locks_at_the_master)
{
    const lk_provider_info *info;
    int n = 0;
    for (size_t i = 0; (info = lk_provider_at(i)) != NULL; i++) {
        if (strncmp(info->name, "redis-", 6) != 0)
            continue;
        lk_client *client = set_patient_client(info->name, set.url, NULL);
        lk_hold hold, other;
        assert_int_equal(lk_ping(client), LK_OK);
        assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
        assert_int_equal(redis_do(set.master, "EXISTS " KEY), 1);
        assert_int_equal(set_acquire(client, KEY, 50, &other), LK_TIMEOUT);
        assert_int_equal(lk_release(&hold), LK_OK);
        assert_int_equal(redis_do(set.master, "EXISTS " KEY), 0);
        lk_close(client);
        n++;
    }
    assert_true(n >= 7);
}

/* Sends one PING, which must fail with this message. */
static void expect_message(const char *url, const char *text)
{
    struct link link;
    char message[LK_MESSAGE_MAX];
    assert_true(link_open_for(&link, url, SET_PATIENT_MS));
    assert_int_equal(lk_redis_ping(link.redis), LK_UNAVAILABLE);
    lk_redis_last_error(link.redis, message, sizeof message);
    if (strstr(message, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", message, text);
    link_close(&link);
}

TEST_THAT(unknown_master_name_is_told)
{
    char url[SANDBOX_TEXT_MAX];
    url_of(url, sizeof url, set.sentinel[0]->port, "nosuch");
    expect_message(url, "knows no master named \"nosuch\"");
    lk_client *client = set_patient_client("redis-token", url, NULL);
    lk_hold hold;
    char message[LK_MESSAGE_MAX];
    lk_last_error(client, message, sizeof message);
    assert_string_equal(message, "");
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_UNAVAILABLE);
    lk_last_error(client, message, sizeof message);
    assert_non_null(strstr(message, "knows no master named \"nosuch\""));
    lk_close(client);
}

TEST_THAT(node_that_is_no_master_is_refused_whatever_the_sentinel_says)
{
    char url[SANDBOX_TEXT_MAX];
    assert_int_equal(
        redis_do(set.sentinel[2], "SENTINEL MONITOR wrong 127.0.0.1 %d 2", set.replica->port), 1);
    url_of(url, sizeof url, set.sentinel[2]->port, "wrong");
    expect_message(url, "is no master");
    assert_int_equal(redis_do(set.sentinel[2], "SENTINEL REMOVE wrong"), 1);
}

TEST_THAT(lost_answer_of_the_master_is_unknown_and_not_asked_for_again)
{
    char url[SANDBOX_TEXT_MAX];
    struct link link;
    lk_redis_reply reply;
    struct proxy *proxy = proxy_open(set.master->port);
    assert_non_null(proxy);
    assert_int_equal(
        redis_do(set.sentinel[2], "SENTINEL MONITOR proxied 127.0.0.1 %d 2", proxy_port(proxy)), 1);
    url_of(url, sizeof url, set.sentinel[2]->port, "proxied");
    assert_true(link_open_for(&link, url, SET_PATIENT_MS));
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "k"), LK_OK);
    proxy_lose_answer(proxy, "INCR", 1, PROXY_CUT);
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "k"), LK_UNKNOWN);
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "k"), LK_OK);
    assert_int_equal(reply.root.integer, 3);
    link_close(&link);
    assert_int_equal(redis_do(set.sentinel[2], "SENTINEL REMOVE proxied"), 1);
    proxy_close(proxy);
}

TEST_THAT(no_redis_among_the_sentinels_is_told)
{
    char url[SANDBOX_TEXT_MAX];
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster", set.master->port);
    expect_message(url, "unknown command");
}

enum { WITHIN_MS = 3000 };
static const lk_options within = {.command_timeout_ms = WITHIN_MS};

TEST_THAT(next_sentinel_is_asked_when_one_is_dead_or_hangs)
{
    for (int hangs = 0; hangs <= 1; hangs++) {
        char url[SANDBOX_TEXT_MAX];
        url_of(url, sizeof url, set.sentinel[1]->port, SANDBOX_MASTER_NAME);
        assert_true(sandbox_signal(set.sentinel[1], hangs ? SIGSTOP : SIGKILL) >= 0);
        lk_client *client = set_client("redis-token", url, &within);
        lk_hold hold;
        int64_t start_ms = test_now_ms();
        assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
        assert_true(ended_within(start_ms, 2 * WITHIN_MS + 700));
        assert_int_equal(lk_release(&hold), LK_OK);
        lk_close(client);
        if (hangs)
            assert_int_equal(sandbox_signal(set.sentinel[1], SIGCONT), 0);
        else
            assert_int_equal(sandbox_restart(set.sentinel[1]), 0);
    }
}

TEST_THAT(no_sentinel_at_all_is_unavailable_in_time)
{
    for (int i = 0; i < SANDBOX_SENTINELS; i++)
        assert_int_equal(sandbox_signal(set.sentinel[i], SIGSTOP), 0);
    lk_client *client = set_client("redis-token", set.url, &within);
    lk_hold hold;
    int64_t start_ms = test_now_ms();
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_UNAVAILABLE);
    assert_true(ended_within(start_ms, 2 * WITHIN_MS + 700));
    for (int i = 0; i < SANDBOX_SENTINELS; i++)
        assert_int_equal(sandbox_signal(set.sentinel[i], SIGCONT), 0);
    assert_true(set_recovers(client, KEY, SET_SWITCH_MS, NULL));
    lk_close(client);
}

/* Sentinels are asked only to connect. A working connection does not need them. */
TEST_THAT(sentinels_are_not_asked_again_while_the_connection_works)
{
    lk_client *client = set_client("redis-token", set.url, NULL);
    assert_true(set_recovers(client, KEY, SET_SWITCH_MS, NULL));
    for (int i = 0; i < SANDBOX_SENTINELS; i++)
        assert_int_equal(sandbox_signal(set.sentinel[i], SIGSTOP), 0);
    for (int i = 0; i < 20; i++) {
        lk_hold hold;
        assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
    }
    for (int i = 0; i < SANDBOX_SENTINELS; i++)
        assert_int_equal(sandbox_signal(set.sentinel[i], SIGCONT), 0);
    lk_close(client);
}

/* The connection survives the demotion, so only the answer shows it. Runs last: it changes the
 * master. */
TEST_THAT(readonly_answer_makes_the_client_ask_for_the_master_again)
{
    struct link link;
    lk_redis_reply reply;
    char message[LK_MESSAGE_MAX];
    assert_true(link_open_for(&link, set.url, SET_PATIENT_MS));
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    assert_int_equal(redis_do(set.master, "REPLICAOF 127.0.0.1 %d", sandbox_free_port()), 1);
    lk_status status = lk_redis_command(link.redis, &reply, "SET", "k", "v");
    assert_int_equal(lk_redis_expect(link.redis, &reply, 0, status), LK_UNAVAILABLE);
    lk_redis_last_error(link.redis, message, sizeof message);
    assert_non_null(strstr(message, "READONLY"));
    assert_int_equal(lk_redis_ping(link.redis), LK_UNAVAILABLE);
    lk_redis_last_error(link.redis, message, sizeof message);
    assert_non_null(strstr(message, "is no master"));
    link_close(&link);
}
