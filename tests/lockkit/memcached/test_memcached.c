/* The memcached guard on a real memcached: items that the cache drops, leases in whole seconds,
 * other clients of the same recipe. For its connections see test_memcached_pool.c, for servers that
 * hang or die test_outage_memcached.c. */
#include "lock_world.h"
#include "memcached.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"
#include "two_clients.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "lock:item:1"

enum { LEASE_MS = 30000, LONG_MS = 20000 };

static lk_hold hold, second; /* released after each test, even a failed one */

static int open_world(void **state)
{
    world = &family_memcached;
    return world_open(state);
}

static int set_up(void **state)
{
    (void)state;
    hold = second = (lk_hold){0};
    return two_clients_open("memcached");
}

static int tear_down(void **state)
{
    lk_release(&hold);
    lk_release(&second);
    return two_clients_close(state);
}

static lk_status try_for(lk_client *who, lk_hold *ret)
{
    return world_acquire(who, KEY, LEASE_MS, 0, ret);
}

static bool answers(const struct sandbox_server *server, const char *question, const char *wanted)
{
    char line[MEMCACHED_LINE_MAX] = "";
    return memcached_ask(server, line, "%s\r\n", question) && strcmp(line, wanted) == 0;
}

/* -- items that the cache drops ---------------------------------------------------------------- */

/* Both clients believe that they hold the lock. The first one's release must not free the second's
 * lock, although a restarted server numbers items again, so both have the same number. */
static void expect_two_holders(void)
{
    assert_int_equal(try_for(other, &second), LK_OK);
    assert_int_equal(lk_check(&hold, NULL), LK_OK);
    assert_int_equal(lk_check(&second, NULL), LK_OK);
    assert_int_equal(hold.fence, 0);
    assert_int_equal(lk_confirm(&hold), LK_LOST);
    assert_int_equal(lk_extend(&hold, LEASE_MS), LK_LOST);
    assert_int_equal(lk_release(&hold), LK_LOST);
    assert_int_equal(lk_confirm(&second), LK_OK);
    assert_int_equal(lk_release(&second), LK_OK);
}

GROUP_FIXTURE(open_world, world_close);
TEST_FIXTURE(set_up, tear_down);

TEST_THAT(restart_while_held_lets_a_second_in)
{
    assert_int_not_equal(sandbox_signal(world_memcached, SIGKILL), -1);
    assert_int_equal(sandbox_restart(world_memcached), 0);
    assert_int_equal(try_for(client, &hold), LK_OK); /* the server's first item */
    assert_int_equal(try_for(other, &second), LK_TIMEOUT);
    assert_int_not_equal(sandbox_signal(world_memcached, SIGKILL), -1);
    assert_int_equal(sandbox_restart(world_memcached), 0);
    expect_two_holders();
}

TEST_THAT(flush_while_held_lets_a_second_in)
{
    assert_int_equal(try_for(client, &hold), LK_OK);
    assert_int_equal(try_for(other, &second), LK_TIMEOUT);
    assert_true(answers(world_memcached, "flush_all", "OK"));
    expect_two_holders();
}

/* Sets other items of the lock's size until the answer to `question` is `wanted`. False: it never
 * was. */
static bool fill_until(const struct sandbox_server *server, const char *question,
                       const char *wanted)
{
    enum { BATCH = 2000, BATCHES_MAX = 100, LINE = 128 };
    static char batch[BATCH * LINE + 64];
    for (int b = 0; b < BATCHES_MAX; b++) {
        size_t length = 0;
        char line[MEMCACHED_LINE_MAX];
        for (int i = 0; i < BATCH; i++)
            length += (size_t)snprintf(batch + length, sizeof batch - length,
                                       "set f%010d 0 0 %zu noreply\r\n%s\r\n", b * BATCH + i,
                                       strlen(hold.token), hold.token);
        snprintf(batch + length, sizeof batch - length, "%s\r\n", question);
        if (!memcached_ask(server, line, "%s", batch))
            return false;
        if (strcmp(line, wanted) == 0)
            return true;
    }
    return false;
}

/* The server's -M prevents this: it refuses new items, and so new locks, instead of evicting. */
TEST_THAT(eviction_while_held_lets_a_second_in_unless_the_server_may_not_evict)
{
    static const char *const evicting[] = {"-m", "1", "-I", "512k", NULL};
    static const char *const refusing[] = {"-m", "1", "-I", "512k", "-M", NULL};
    char one_more[MEMCACHED_LINE_MAX];
    struct sandbox_server *whole = world_memcached;
    lk_close(client);
    lk_close(other);
    world_memcached = sandbox_memcached(world_sandbox, evicting);
    struct sandbox_server *small = world_memcached;
    client = world_client("memcached", NULL);
    other = world_client("memcached", NULL);
    lk_status first = try_for(client, &hold);
    bool gone = fill_until(small, "mg " KEY " u", "EN");
    lk_status twice = try_for(other, &second);
    lk_release(&hold);
    lk_release(&second);
    lk_close(client);
    lk_close(other);

    world_memcached = sandbox_memcached(world_sandbox, refusing);
    client = world_client("memcached", NULL);
    other = world_client("memcached", NULL);
    lk_status again = try_for(client, &hold);
    snprintf(one_more, sizeof one_more, "add fillerfills 0 0 %zu\r\n%s", strlen(hold.token),
             hold.token);
    bool full = fill_until(world_memcached, one_more, "SERVER_ERROR out of memory storing object");
    lk_status refused = try_for(other, &second);
    world_memcached = whole;
    assert_int_equal(first, LK_OK);
    assert_true(gone);
    assert_int_equal(twice, LK_OK);
    assert_int_equal(again, LK_OK);
    assert_true(full);
    assert_int_equal(refused, LK_UNAVAILABLE); /* certainly not executed */
    assert_int_equal(lk_confirm(&hold), LK_OK);
}

/* -- seconds ----------------------------------------------------------------------------------- */

TEST_THAT(server_is_asked_for_the_lease_in_seconds_and_one_more)
{
    static const struct {
        int64_t lease_ms, seconds;
    } rows[] = {{10, 2}, {1000, 2}, {1001, 3}, {30000, 31}, {LK_LEASE_MS_MAX, 86401}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t left_ms = 0;
        assert_int_equal(world_acquire(client, KEY, rows[i].lease_ms, LONG_MS, &hold), LK_OK);
        int64_t on_server_ms = world->left_ms(KEY);
        lk_status status = lk_check(&hold, &left_ms);
        lk_release(&hold);
        assert_in_range(on_server_ms, (rows[i].seconds - 2) * 1000, rows[i].seconds * 1000);
        assert_true(on_server_ms > 0 || rows[i].lease_ms < 1000);
        assert_true(status == LK_OK || rows[i].lease_ms == 10); /* 10 ms may have passed */
        assert_true(left_ms <= rows[i].lease_ms);               /* by our own clock */
    }
}

/* The leases start at different points of the server's second: without the extra second some would
 * be too short. */
TEST_THAT(nobody_is_let_in_before_the_lease_is_over)
{
    enum { HOLDS = 4, PHASE_MS = 230, SHORT_MS = 1000 };
    lk_hold holds[HOLDS], successors[HOLDS];
    int64_t begun_ms[HOLDS];
    char keys[HOLDS][32];
    for (int i = 0; i < HOLDS; i++) {
        snprintf(keys[i], sizeof keys[i], "lock:item:%d", i);
        begun_ms[i] = test_now_ms();
        assert_int_equal(world_acquire(client, keys[i], SHORT_MS, 0, &holds[i]), LK_OK);
        lk_env_system()->sleep_us(NULL, PHASE_MS * 1000); /* another point of the second */
    }
    for (int i = 0; i < HOLDS; i++) {
        assert_int_equal(world_acquire(other, keys[i], LEASE_MS, LONG_MS, &successors[i]), LK_OK);
        assert_true(test_now_ms() - begun_ms[i] >= SHORT_MS);
        assert_int_equal(lk_check(&holds[i], NULL), LK_LOST);
        assert_int_equal(lk_release(&holds[i]), LK_LOST);
        assert_int_equal(lk_release(&successors[i]), LK_OK);
    }
}

TEST_THAT(extension_sets_the_lease_anew)
{
    assert_int_equal(world_acquire(client, KEY, 2000, 0, &hold), LK_OK);
    assert_int_equal(lk_extend(&hold, 60000), LK_OK);
    assert_in_range(world->left_ms(KEY), 59000, 61000);
    assert_int_equal(lk_extend(&hold, 5000), LK_OK);
    assert_in_range(world->left_ms(KEY), 4000, 6000);
    assert_true(world->remove(KEY));
    assert_int_equal(lk_extend(&hold, 5000), LK_LOST);
}

/* -- between check and change -------------------------------------------------------------------
 */

struct late {
    pthread_t thread;
    bool extends;
    lk_status status;
};

static void *act(void *arg)
{
    struct late *late = arg;
    late->status = late->extends ? lk_extend(&hold, LEASE_MS) : lk_release(&hold);
    return NULL;
}

static bool is_on_its_way(void *proxy)
{
    return proxy_held(proxy) == 1;
}

/* The client has checked that the key is its own; then the key passes to another client; then the
 * change reaches the server. */
static void act_too_late(bool extends, const char *command)
{
    struct proxy *proxy = proxy_open(world->port());
    struct late late = {.extends = extends};
    assert_non_null(proxy);
    lk_client *slow = world_client_at("memcached", proxy_port(proxy),
                                      &(lk_options){.command_timeout_ms = LONG_MS});
    assert_int_equal(try_for(slow, &hold), LK_OK);
    proxy_hold(proxy, command, 1);
    assert_int_equal(pthread_create(&late.thread, NULL, act, &late), 0);
    bool on_its_way = wait_until(is_on_its_way, proxy, LONG_MS);
    bool removed = world->remove(KEY);
    lk_status passed = try_for(other, &second);
    proxy_let_go(proxy);
    pthread_join(late.thread, NULL);
    lk_release(&hold);
    lk_close(slow);
    proxy_close(proxy);
    assert_true(on_its_way && removed);
    assert_int_equal(passed, LK_OK);
    assert_int_equal(late.status, LK_LOST);
    assert_int_equal(lk_confirm(&second), LK_OK);
}

TEST_THAT(release_that_comes_late_frees_no_successor)
{
    act_too_late(false, "md ");
}

TEST_THAT(extension_that_comes_late_takes_nothing_back)
{
    act_too_late(true, "cas ");
}

/* -- other clients ----------------------------------------------------------------------------- */

TEST_THAT(other_clients_of_the_recipe_exclude_and_are_excluded)
{
    char line[MEMCACHED_LINE_MAX], question[MEMCACHED_LINE_MAX];
    assert_true(answers(world_memcached, "add " KEY " 0 60 6\r\ntheirs", "STORED"));
    assert_int_equal(try_for(client, &hold), LK_TIMEOUT);
    assert_true(answers(world_memcached, "delete " KEY, "DELETED"));
    assert_int_equal(try_for(client, &hold), LK_OK);
    assert_true(answers(world_memcached, "add " KEY " 0 60 6\r\ntheirs", "NOT_STORED"));
    /* another client changes it by the number of the item */
    unsigned long long cas;
    assert_true(memcached_ask(world_memcached, line, "gets " KEY "\r\n"));
    snprintf(question, sizeof question, "VALUE " KEY " 0 %zu %%llu", strlen(hold.token));
    assert_int_equal(sscanf(line, question, &cas), 1); /* NOLINT: made above */
    snprintf(question, sizeof question, "cas " KEY " 0 60 6 %llu\r\ntheirs", cas);
    assert_true(answers(world_memcached, question, "STORED"));
    assert_int_equal(lk_extend(&hold, LEASE_MS), LK_LOST);
    assert_int_equal(lk_release(&hold), LK_LOST);
    assert_true(answers(world_memcached, "mg " KEY, "HD"));
}

/* The value as it is displayed: without control characters for the terminal. */
static const char *printable(const char *value)
{
    static char shown[100];
    size_t n = strlen(value);
    for (size_t i = 0; i <= n; i++)
        shown[i] = i < n && (value[i] <= ' ' || value[i] > '~') ? '?' : value[i];
    return shown;
}

/* Any foreign value counts as another client's lock, and the next answer still belongs to the next
 * command. */
TEST_THAT(values_of_others_confuse_nobody)
{
    static const char *const values[] = {"",       "END\r\n", "x\r\nEND\r\nVALUE " KEY " 0 1 1\r\n",
                                         "STORED", "\n",      "\033[2J\303"};
    char big[600], question[800];
    for (size_t i = 0; i <= sizeof values / sizeof values[0]; i++) {
        bool last = i == sizeof values / sizeof values[0];
        memset(big, 'x', sizeof big - 1);
        big[sizeof big - 1] = '\0';
        const char *value = last ? big : values[i];
        lk_lock_info info;
        assert_int_equal(try_for(client, &hold), LK_OK);
        snprintf(question, sizeof question, "set " KEY " 7 60 %zu\r\n%s", strlen(value), value);
        assert_true(answers(world_memcached, question, "STORED"));
        assert_int_equal(lk_inspect(client, KEY, &info), LK_OK);
        assert_int_equal(info.holders, 1);
        assert_string_equal(info.token, last ? "" : printable(value));
        assert_int_equal(lk_confirm(&hold), LK_LOST);
        assert_int_equal(lk_release(&hold), LK_LOST);
        assert_int_equal(lk_force_release(client, KEY), LK_OK);
        assert_int_equal(lk_ping(client), LK_OK);
    }
}
