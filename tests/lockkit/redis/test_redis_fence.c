/*
 * The fence counter expires, but fences still rise. The test tries every sequence of events up to a
 * length on a real Redis whose clock it sets. For the rule see redis_fence.h.
 */
#include "lockkit.h"
#include "redis_fence.h"
#include "process.h"
#include "sandbox.h"
#include "redis.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY     "lock:order:1"
#define COUNTER "{lock:order:1}:fence"

enum { KEEP_MS = LK_REDIS_FENCE_KEEP_MS, HOUR_MS = 3600000, US_PER_MS = 1000, PATIENCE_MS = 20000 };

static const char *const guards[] = {"redis-token", "redis-reentrant", "redis-fair",
                                     "redis-readwrite", "redis-semaphore"};
enum { GUARDS = sizeof guards / sizeof guards[0] };

static struct sandbox *sandbox;
static struct sandbox_server *redis;
static redisContext *eye;
static lk_client *clients[GUARDS];

static int open_all(void **state)
{
    (void)state;
    char path[PATH_MAX], shim[PATH_MAX];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s/libclockshim.so", build != NULL ? build : "build");
    if (realpath(path, shim) == NULL || sandbox_open(&sandbox) != 0)
        return -1;
    redis = sandbox_redis_with_clock(sandbox, shim);
    eye = redis != NULL ? redis_connect(redis->port) : NULL;
    for (int i = 0; i < GUARDS; i++)
        if (eye == NULL || lk_open(guards[i], redis->url, NULL, &clients[i], NULL) != LK_OK)
            return -1;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (int i = 0; i < GUARDS; i++)
        lk_close(clients[i]);
    redisFree(eye);
    sandbox_close(sandbox);
    return 0;
}

static int64_t ask(const char *command)
{
    redisReply *reply = redisCommand(eye, command);
    assert_non_null(reply);
    int64_t integer = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    freeReplyObject(reply);
    return integer;
}

/* -- events --------------------------------------------------------------------------------------
 */

#define EVENT_MAP(X)                                                                               \
    X(GRANT)                                                                                       \
    X(PASS)      /* half of the time that a counter is kept passes */                              \
    X(OUTLIVE)   /* a second more than all of that time passes */                                  \
    X(SET_BACK)  /* the clock is set back by a second less than that time */                       \
    X(LOSE)      /* the counter is evicted, or its server starts empty */                          \
    X(REVERT)    /* the counter comes back as it was after the first grant */                      \
    X(RAISE)     /* the counter is raised to the store's last fence */                             \
    X(RAISE_FAR) /* ... which was made when the clock was an hour ahead */

enum event {
#define EVENT_ENUM(name) name,
    EVENT_MAP(EVENT_ENUM)
#undef EVENT_ENUM
        EVENTS
};

static const char *const event_names[] = {
#define EVENT_NAME(name) #name,
    EVENT_MAP(EVENT_NAME)
#undef EVENT_NAME
};

struct world {
    lk_client *client;
    int64_t ahead_ms;       /* of Redis' clock */
    uint64_t first, newest; /* first fence; last one, granted or raised to */
    bool gone, lost;        /* the counter is gone; lost: not by expiry, or older than it was */
    int64_t back_ms;        /* how far the clock was set back since then */
    uint64_t grants, lower; /* lower: grants with a lower fence, as the rule allows */
};

static void move_clock(struct world *world, int64_t by_ms)
{
    world->ahead_ms += by_ms;
    assert_int_equal(sandbox_set_clock(redis, world->ahead_ms * US_PER_MS), 0);
    if (by_ms < 0 && world->gone)
        world->back_ms -= by_ms;
}

static uint64_t clock_us(const struct world *world)
{
    return (uint64_t)(lk_env_system()->wall_us(NULL) + world->ahead_ms * US_PER_MS);
}

/* True if the conditions of redis_fence.h are violated. */
static bool may_be_lower(const struct world *world)
{
    return (world->gone && world->back_ms > KEEP_MS) ||
           (world->lost && clock_us(world) < world->newest);
}

static uint64_t grant(struct world *world)
{
    lk_hold hold;
    lk_request request = {.key = KEY};
    assert_int_equal(lk_acquire(world->client, &request, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    world->grants++;
    return hold.fence;
}

static void raise_to(const struct world *world, uint64_t fence)
{
    assert_int_equal(lk_raise_fence(world->client, KEY, fence), LK_OK);
}

/* As after a restart with a snapshot, which keeps the time at which the counter ends. */
static void revert_to(uint64_t fence)
{
    char command[128];
    snprintf(command, sizeof command, "SET " COUNTER " %" PRIu64 " PXAT %" PRIu64, fence,
             fence / US_PER_MS + KEEP_MS);
    ask(command);
}

static bool happens(struct world *world, enum event event)
{
    bool rises = true, is_there = !world->gone;
    switch (event) {
    case GRANT: {
        uint64_t fence = grant(world);
        if (fence <= world->newest && may_be_lower(world)) {
            world->lower++; /* the store refuses it and raises the counter */
            raise_to(world, world->newest);
            fence = grant(world);
        }
        rises = fence > world->newest;
        world->newest = fence;
        world->first = world->first != 0 ? world->first : fence;
        world->lost = false;
        is_there = true;
        break;
    }
    case PASS:
        move_clock(world, KEEP_MS / 2);
        is_there = is_there && ask("EXISTS " COUNTER) == 1;
        break;
    case OUTLIVE:
        move_clock(world, KEEP_MS + 1000);
        is_there = is_there && ask("EXISTS " COUNTER) == 1;
        break;
    case SET_BACK:
        move_clock(world, 1000 - KEEP_MS);
        break;
    case LOSE:
        ask("DEL " COUNTER);
        is_there = false;
        world->lost = true;
        break;
    case REVERT:
        revert_to(world->first);
        is_there = ask("EXISTS " COUNTER) == 1;
        world->lost = true;
        break;
    case RAISE:
        raise_to(world, world->newest);
        is_there = true;
        world->lost = false;
        break;
    case RAISE_FAR:
        world->newest += (uint64_t)HOUR_MS * US_PER_MS;
        raise_to(world, world->newest);
        is_there = true;
        world->lost = false;
        break;
    case EVENTS:
        break;
    }
    if (is_there || !world->gone)
        world->back_ms = 0;
    world->gone = !is_there;
    return rises;
}

/* Runs every sequence of `length` events after a first grant. Returns the number of sequences.
 * *ret_rises is false if a fence did not rise in one of them. */
static uint64_t enumerate(lk_client *client, int length, bool *ret_rises, uint64_t *ret_lower)
{
    uint64_t n = 1, sequence = 0;
    for (int i = 0; i < length; i++)
        n *= EVENTS;
    *ret_rises = true;
    *ret_lower = 0;
    for (; sequence < n && *ret_rises; sequence++) {
        struct world world = {.client = client};
        ask("FLUSHALL");
        move_clock(&world, 0);
        *ret_rises = happens(&world, GRANT);
        uint64_t left = sequence;
        for (int i = 0; i < length && *ret_rises; i++, left /= EVENTS)
            *ret_rises = happens(&world, (enum event)(left % EVENTS));
        *ret_rises = *ret_rises && happens(&world, GRANT);
        *ret_lower += world.lower;
        left = sequence;
        for (int i = 0; i < length && !*ret_rises; i++, left /= EVENTS)
            printf("%s ", event_names[left % EVENTS]);
    }
    return sequence;
}

GROUP_FIXTURE(open_all, close_all);

TEST_THAT(fences_rise_whatever_happens)
{
    for (int i = 0; i < GUARDS; i++) {
        bool rises;
        uint64_t lower;
        uint64_t n = enumerate(clients[i], (int)test_size(i == 0 ? 4 : 3, 5), &rises, &lower);
        printf("%s: %" PRIu64 " orders of events, %" PRIu64
               " grants lower after a clock set back too far, healed\n",
               guards[i], n, lower);
        assert_true(rises);
        assert_true(lower > 0);
    }
}

/* -- a server that goes on with an older state ------------------------------------------------- */

static void grant_higher(lk_client *by, uint64_t *newest)
{
    lk_hold hold;
    assert_int_equal(lk_try_acquire(by, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(hold.fence > *newest);
    *newest = hold.fence;
}

TEST_THAT(fences_rise_after_an_older_counter_was_restored)
{
    enum { GRANTS = 100 };
    for (int i = 0; i < GUARDS; i++) {
        ask("FLUSHALL");
        assert_int_equal(sandbox_set_clock(redis, 0), 0);
        uint64_t newest = 0;
        grant_higher(clients[i], &newest);
        redisReply *older = redisCommand(eye, "DUMP " COUNTER);
        assert_non_null(older);
        assert_int_equal(older->type, REDIS_REPLY_STRING);
        for (int grant = 0; grant < GRANTS; grant++)
            grant_higher(clients[i], &newest);
        redisReply *restored =
            redisCommand(eye, "RESTORE " COUNTER " %d %b REPLACE", KEEP_MS, older->str, older->len);
        assert_non_null(restored);
        assert_int_equal(restored->type, REDIS_REPLY_STATUS);
        freeReplyObject(older);
        freeReplyObject(restored);
        /* Each guard goes on with the counter that the others share. */
        for (int next = 0; next < GUARDS; next++)
            grant_higher(clients[(i + next) % GUARDS], &newest);
    }
}

/* -- remaining keys ------------------------------------------------------------------------------
 */

static bool is_empty(void *arg)
{
    (void)arg;
    return ask("DBSIZE") == 0;
}

TEST_THAT(nothing_is_left_a_minute_after_the_last_grant)
{
    enum { ORDERS = 200 };
    for (int i = 0; i < GUARDS; i++) {
        ask("FLUSHALL");
        assert_int_equal(sandbox_set_clock(redis, 0), 0);
        for (int order = 0; order < ORDERS; order++) {
            char key[32];
            lk_hold hold;
            snprintf(key, sizeof key, "lock:order:%d", order);
            assert_int_equal(lk_try_acquire(clients[i], key, &hold), LK_OK);
            assert_int_equal(lk_release(&hold), LK_OK);
        }
        assert_int_equal(ask("DBSIZE"), ORDERS);
        assert_in_range(ask("PTTL {lock:order:0}:fence"), 1, KEEP_MS);
        assert_int_equal(sandbox_set_clock(redis, (KEEP_MS + 1000) * INT64_C(1000)), 0);
        assert_true(wait_until(is_empty, NULL, PATIENCE_MS));
    }
}
