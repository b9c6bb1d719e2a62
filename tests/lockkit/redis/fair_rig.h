/* A held redis-fair lock, and waiters in its queue. */
#ifndef FAIR_RIG_H
#define FAIR_RIG_H

#include "holder.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "redis.h"
#include "tests.h"

#define GUARD "redis-fair"
#define KEY   "lock:item:1"
#define QUEUE "{lock:item:1}:queue"
#define SEEN  "{lock:item:1}:seen"

enum { LONG_MS = 30000, SOON_MS = 1500 };

static lk_client *client;
static lk_hold first;

/* A Redis with nothing but a fence counter that counts the grants, and a client that holds the
 * lock. */
static inline int hold_it(void **state)
{
    (void)state;
    world_ask("FLUSHALL");
    client = world_client(GUARD, NULL);
    return lk_raise_fence(client, KEY, REDIS_FENCE_AHEAD) == LK_OK &&
                   world_acquire(client, KEY, LONG_MS, 0, &first) == LK_OK
               ? 0
               : -1;
}

static inline int let_go(void **state)
{
    (void)state;
    lk_close(client);
    return 0;
}

/* Starts a waiter and waits until it is in the queue. */
static inline void queue_up(struct asker *waiter, lk_client *whose, int64_t wait_ms)
{
    int64_t before = world_ask("LLEN " QUEUE);
    *waiter = (struct asker){.client = whose, .key = KEY, .lease_ms = LONG_MS, .wait_ms = wait_ms};
    asker_start(waiter);
    assert_true(world_becomes(before + 1, LONG_MS, "LLEN " QUEUE));
}

static inline void nothing_is_left_but_the_fence(void)
{
    assert_int_equal(world_ask("EXISTS " KEY " " QUEUE " " SEEN), 0);
    assert_int_equal(world_ask("DBSIZE"), 1);
}

#endif
