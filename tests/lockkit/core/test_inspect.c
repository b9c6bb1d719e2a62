/* Inspection of Redis locks: the facts about each kind, and the contents of a list. */
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define KEY "lock:item:1"

enum { LONG_MS = 20000, SOON_MS = 2000, SHORT_MS = 300, MANY = 400, WAITERS = 3 };

static lk_lock_info look(lk_client *client, const char *key)
{
    lk_lock_info info;
    assert_int_equal(lk_inspect(client, key, &info), LK_OK);
    return info;
}

/* -- one key ------------------------------------------------------------------------------------
 */

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

TEST_THAT(free_key_is_told_to_be_free_with_its_last_fence)
{
    lk_client *client = world_client("redis-token", NULL);
    lk_hold hold;
    assert_int_equal(look(client, KEY).fence, 0);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_lock_info info = look(client, KEY);
    assert_int_equal(info.holders, 0);
    assert_int_equal(info.fence, hold.fence);
    assert_true(info.left_ms == INT64_MAX);
    assert_string_equal(info.token, "");
    lk_close(client);
}

TEST_THAT(readers_are_counted_while_their_leases_last)
{
    lk_client *client = world_client("redis-readwrite", NULL);
    lk_request request = {.key = KEY, .mode = LK_SHARED};
    lk_hold lasting, brief;
    assert_int_equal(lk_acquire(client, &request, &lasting), LK_OK);
    request.lease_ms = SHORT_MS;
    assert_int_equal(lk_acquire(client, &request, &brief), LK_OK);
    lk_lock_info info = look(client, KEY);
    assert_int_equal(info.holders, 2);
    assert_int_equal(info.mode, LK_SHARED);
    assert_true(world_becomes(3, SOON_MS, "DBSIZE")); /* lock, counter, one lease */
    info = look(client, KEY);
    assert_int_equal(info.holders, 1);
    assert_string_equal(info.token, lasting.token);
    assert_int_equal(lk_release(&lasting), LK_OK);
    lk_release(&brief);
    lk_close(client);
}

TEST_THAT(permits_are_counted_and_the_next_to_end_is_shown)
{
    lk_client *client = world_client("redis-semaphore", NULL);
    lk_request request = {.key = KEY, .permits = 5, .lease_ms = LONG_MS};
    lk_hold holds[3];
    for (int i = 0; i < 3; i++) {
        request.lease_ms = LONG_MS * (3 - i);
        assert_int_equal(lk_acquire(client, &request, &holds[i]), LK_OK);
    }
    lk_lock_info info = look(client, KEY);
    assert_int_equal(info.holders, 3);
    assert_string_equal(info.token, holds[2].token);
    assert_in_range(info.left_ms, LONG_MS / 2, LONG_MS);
    for (int i = 0; i < 3; i++)
        lk_release(&holds[i]);
    lk_close(client);
}

TEST_THAT(owner_of_a_lock_entered_twice_is_shown_as_one_holder)
{
    lk_client *client = world_client("redis-reentrant", NULL);
    lk_request request = {.key = KEY, .owner = "worker"};
    lk_hold outer, inner;
    assert_int_equal(lk_acquire(client, &request, &outer), LK_OK);
    assert_int_equal(lk_acquire(client, &request, &inner), LK_OK);
    lk_lock_info info = look(client, KEY);
    assert_int_equal(info.holders, 1);
    assert_string_equal(info.token, outer.token);
    assert_int_equal(lk_release(&inner), LK_OK);
    assert_int_equal(lk_confirm(&outer), LK_OK);
    assert_int_equal(lk_confirm(&inner), LK_LOST);
    assert_int_equal(lk_release(&outer), LK_OK);
    lk_close(client);
}

TEST_THAT(waiters_of_a_queue_are_counted)
{
    struct asker waiters[WAITERS];
    struct hooked hooked;
    lk_client *client = world_client("redis-fair", NULL);
    lk_client *waiting = world_client("redis-fair", &(lk_options){.env = hook(&hooked)});
    lk_hold hold;
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_OK);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct asker){.client = waiting, .key = KEY, .wait_ms = LONG_MS};
        asker_start(&waiters[i]);
        assert_true(world_becomes(i + 1, LONG_MS, "LLEN {" KEY "}:queue"));
    }
    assert_int_equal(look(client, KEY).waiters, WAITERS);
    assert_int_equal(lk_release(&hold), LK_OK);
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(asker_join(&waiters[i]), LK_OK);
        assert_int_equal(lk_release(&waiters[i].hold), LK_OK);
    }
    assert_int_equal(look(client, KEY).waiters, 0);
    lk_close(waiting);
    lk_close(client);
}

/* The server has no lease for this key; only the stamp shows its end. */
TEST_THAT(stamp_of_getset_is_read_as_a_lease)
{
    lk_client *client = world_client("redis-getset", NULL);
    lk_hold hold;
    assert_int_equal(world_acquire(client, KEY, LONG_MS, 0, &hold), LK_OK);
    assert_in_range(look(client, KEY).left_ms, LONG_MS / 2, LONG_MS);
    assert_int_equal(lk_release(&hold), LK_OK);
    world_ask("SET " KEY " 1000000"); /* a stamp in 1970 */
    assert_int_equal(look(client, KEY).holders, 0);
    lk_close(client);
}

/* Any value at the key excludes other clients. */
TEST_THAT(lock_of_another_guard_or_a_strange_value_is_seen_as_held)
{
    lk_client *reentrant = world_client("redis-reentrant", NULL);
    lk_client *token = world_client("redis-token", NULL);
    lk_hold hold;
    assert_int_equal(world_acquire(reentrant, KEY, 0, 0, &hold), LK_OK);
    lk_lock_info info = look(token, KEY);
    assert_int_equal(info.holders, 1);
    assert_string_equal(info.token, hold.token);
    assert_int_equal(lk_release(&hold), LK_OK);
    world_ask("RPUSH " KEY " a b");
    assert_int_equal(look(token, KEY).holders, 1);
    char value[2000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    memcpy(value, "a b\n", 4);
    assert_int_equal(world_ask("SET " KEY " %s", value), 1);
    info = look(token, KEY);
    assert_int_equal(strlen(info.token), LK_TOKEN_MAX);
    assert_memory_equal(info.token, "a?b?vvv", 7);
    world_ask("DEL " KEY);
    assert_int_equal(world_ask("HSET " KEY " %s 1", value), 1);
    assert_int_equal(strlen(look(token, KEY).token), LK_TOKEN_MAX);
    lk_close(token);
    lk_close(reentrant);
}

/* -- lists --------------------------------------------------------------------------------------
 */

struct tally {
    int n, stop_at, foreign, free;
    bool seen[MANY];
    char last[LK_KEY_MAX + 1];
};

static int count(void *arg, const lk_lock_info *info)
{
    struct tally *tally = arg;
    int at;
    if (sscanf(info->key, "lock:many:%d", &at) == 1 && at >= 0 && at < MANY)
        tally->seen[at] = true;
    else
        tally->foreign++;
    tally->free += info->holders == 0;
    memcpy(tally->last, info->key, sizeof tally->last);
    return ++tally->n == tally->stop_at;
}

static struct tally list(lk_client *client, const char *prefix, int stop_at)
{
    struct tally tally = {.stop_at = stop_at};
    assert_int_equal(lk_list(client, prefix, count, &tally), LK_OK);
    assert_int_equal(tally.free, 0);
    return tally;
}

TEST_THAT(all_of_many_are_told_until_each_has_enough)
{
    static lk_hold holds[MANY];
    char key[32];
    lk_client *client = world_client("redis-reentrant", NULL);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "lock:many:%d", i);
        assert_int_equal(world_acquire(client, key, LONG_MS, 0, &holds[i]), LK_OK);
    }
    struct tally tally = list(client, "lock:many:", 0);
    for (int i = 0; i < MANY; i++)
        assert_true(tally.seen[i]);
    assert_int_equal(tally.foreign, 0);
    assert_int_equal(list(client, "lock:many:", 7).n, 7);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    assert_int_equal(list(client, "", 0).n, 0); /* the counters are no locks */
    lk_close(client);
}

TEST_THAT(list_shows_one_guards_kind_and_nothing_beside_the_locks)
{
    static const char *const names[] = {"redis-token", "redis-reentrant", "redis-readwrite",
                                        "redis-semaphore"};
    lk_client *clients[4];
    lk_hold holds[4];
    for (int i = 0; i < 4; i++) {
        clients[i] = world_client(names[i], NULL);
        assert_int_equal(world_acquire(clients[i], names[i], 0, 0, &holds[i]), LK_OK);
    }
    for (int i = 0; i < 4; i++) {
        struct tally tally = list(clients[i], "", 0);
        assert_int_equal(tally.n, 1);
        assert_string_equal(tally.last, names[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(lk_release(&holds[i]), LK_OK);
        lk_close(clients[i]);
    }
}

TEST_THAT(prefix_is_taken_literally)
{
    lk_client *client = world_client("redis-token", NULL);
    world_ask("SET lock:[a]*:1 t");
    world_ask("SET lock:ab:1 t");
    world_ask("SET lock:a\\?:1 t");
    assert_int_equal(list(client, "lock:[a]*", 0).n, 1);
    assert_int_equal(list(client, "lock:a\\?", 0).n, 1);
    assert_int_equal(list(client, "lock:a?", 0).n, 0);
    assert_int_equal(list(client, "lock:", 0).n, 3);
    lk_close(client);
}

TEST_THAT(names_that_no_lock_can_have_are_passed_over)
{
    char name[LK_KEY_MAX + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    lk_client *client = world_client("redis-token", NULL);
    world_ask("SET %s t", name);
    world_ask("EVAL %s 0", "redis.call('set', 'lock:a\\0b', 't')"); /* \0 in Lua: a NUL */
    world_ask("SET %s t", "lock:a b");
    world_ask("SET lock:{a} t");
    assert_int_equal(world_ask("DBSIZE"), 4);
    assert_int_equal(list(client, "", 0).n, 0);
    lk_close(client);
}

static int stop_at_once(void *arg, const lk_lock_info *info)
{
    (void)arg;
    (void)info;
    return 1;
}

TEST_THAT(arguments_are_checked_and_a_server_away_is_told)
{
    lk_lock_info info;
    lk_hold hold;
    lk_client *client = world_client("redis-token", NULL);
    assert_int_equal(lk_inspect(client, "", &info), LK_INVALID);
    assert_int_equal(lk_inspect(client, "a b", &info), LK_INVALID);
    assert_int_equal(lk_list(client, "a{", stop_at_once, NULL), LK_INVALID);
    assert_int_equal(lk_force_release(client, NULL), LK_INVALID);
    lk_close(client);
    client = world_client_at("redis-token", sandbox_free_port(), NULL);
    assert_int_equal(lk_inspect(client, KEY, &info), LK_UNAVAILABLE);
    assert_int_equal(lk_list(client, "lock:", stop_at_once, NULL), LK_UNAVAILABLE);
    assert_int_equal(lk_force_release(client, KEY), LK_UNAVAILABLE);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_UNAVAILABLE);
    assert_int_equal(lk_confirm(&hold), LK_LOST);
    lk_close(client);
}

/* A mistyped key must not delete other data, such as a queue. */
TEST_THAT(what_no_guard_stores_is_not_freed_by_force)
{
    static const char *const guards[] = {"redis-token", "redis-reentrant"};
    for (size_t i = 0; i < sizeof guards / sizeof *guards; i++) {
        lk_client *client = world_client(guards[i], NULL);
        assert_int_equal(world_ask("RPUSH jobs one"), i + 1);
        assert_int_equal(lk_force_release(client, "jobs"), LK_LOST);
        assert_int_equal(world_ask("LLEN jobs"), i + 1);
        lk_close(client);
    }
}

/* -- in this process ----------------------------------------------------------------------------
 */

TEST_THAT(mutex_shows_holder_and_waiters_and_cannot_be_forced)
{
    lk_client *client = world_client("mutex", NULL);
    lk_hold first, second;
    assert_int_equal(world_acquire(client, KEY, 0, 0, &first), LK_OK);
    assert_int_equal(world_acquire(client, "lock:item:2", 0, 0, &second), LK_OK);
    lk_lock_info info = look(client, KEY);
    assert_int_equal(info.holders, 1);
    assert_string_equal(info.token, first.token);
    assert_int_equal(lk_confirm(&first), LK_OK);
    assert_int_equal(list(client, "lock:item:", 0).n, 2);
    assert_int_equal(list(client, "lock:item:2", 0).n, 1);
    struct asker waiter = {.client = client, .key = KEY, .wait_ms = LONG_MS};
    asker_start(&waiter);
    while (look(client, KEY).waiters == 0)
        lk_env_system()->sleep_us(NULL, 1000);
    assert_int_equal(lk_force_release(client, KEY), LK_UNSUPPORTED);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&waiter), LK_OK);
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
    assert_int_equal(lk_release(&second), LK_OK);
    assert_int_equal(look(client, KEY).holders, 0);
    lk_close(client);
}

/* -- several locks ------------------------------------------------------------------------------
 */

/* Like Redisson's multi-lock: different kinds of lock, servers and modes. */
TEST_THAT(locks_of_several_kinds_are_had_together_or_not_at_all)
{
    lk_client *readwrite = world_client("redis-readwrite", NULL);
    lk_client *semaphore = world_client("redis-semaphore", NULL);
    lk_client *fair = world_client("redis-fair", NULL);
    lk_request requests[] = {
        {.client = semaphore, .key = "lock:c", .permits = 2},
        {.client = readwrite, .key = "lock:a", .mode = LK_SHARED},
        {.client = fair, .key = "lock:d"},
        {.client = readwrite, .key = "lock:b"},
    };
    lk_hold holds[4], others[4];
    assert_int_equal(lk_acquire_many(NULL, requests, 4, holds), LK_OK);
    assert_int_equal(look(readwrite, "lock:a").mode, LK_SHARED);
    assert_int_equal(lk_acquire_many(NULL, requests, 2, others), LK_OK); /* both can be shared */
    for (int i = 0; i < 2; i++)
        assert_int_equal(lk_release(&others[i]), LK_OK);
    assert_int_equal(lk_acquire_many(NULL, requests, 3, others), LK_TIMEOUT); /* the third cannot */
    assert_int_equal(look(readwrite, "lock:a").holders, 1);
    assert_int_equal(look(semaphore, "lock:c").holders, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    assert_int_equal(lk_acquire_many(NULL, requests, 4, holds), LK_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(lk_release(&holds[i]), LK_OK);
    lk_close(fair);
    lk_close(semaphore);
    lk_close(readwrite);
}
