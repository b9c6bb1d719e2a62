/* redis-fair: order of arrival, hand-over, and waiters that die or give up. */
#include "fair_rig.h"
#include "lateness.h"
#include "providers.h"
#include "redis_fair_scripts.h"
#include "lock_hooks.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "redis_link.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIM_MS = LK_FAIR_CLAIM_MS, WAITERS = 12 };

static void queue_up_holder(struct holder *holder, int64_t lease_ms)
{
    int64_t before = world_ask("LLEN " QUEUE);
    struct holder_plan plan = {.guard = GUARD,
                               .endpoints = world_redis->url,
                               .key = KEY,
                               .lease_ms = lease_ms,
                               .wait_ms = LONG_MS};
    assert_true(holder_start(holder, &plan));
    assert_true(holder_says(holder, "waiting"));
    assert_true(world_becomes(before + 1, LONG_MS, "LLEN " QUEUE));
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(hold_it, let_go);

/* The waiters belong to two clients, alternately. */
TEST_THAT(grants_follow_the_order_of_arrival_and_fences_rise)
{
    struct asker waiters[WAITERS];
    lk_client *other = world_client(GUARD, NULL);
    for (int i = 0; i < WAITERS; i++)
        queue_up(&waiters[i], i % 3 == 0 ? other : client, LONG_MS);
    lk_hold *last = &first;
    uint64_t fence = first.fence;
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(lk_release(last), LK_OK);
        assert_int_equal(asker_join(&waiters[i]), LK_OK); /* only this waiter */
        last = &waiters[i].hold;
        assert_true(last->fence > fence);
        fence = last->fence;
        for (int j = i + 1; j < WAITERS; j++)
            assert_false(asker_ended(&waiters[j]));
        assert_int_equal(world_ask("LLEN " QUEUE), WAITERS - 1 - i);
    }
    assert_int_equal(lk_release(last), LK_OK);
    nothing_is_left_but_the_fence();
    lk_close(other);
}

TEST_THAT(newcomer_does_not_overtake_though_the_lock_looks_free)
{
    struct asker waiter;
    lk_hold hold;
    queue_up(&waiter, client, LONG_MS);
    assert_int_equal(world_ask("DEL " KEY), 1); /* as if the lease had ended */
    lk_client *newcomer = world_client(GUARD, NULL);
    assert_int_equal(world_acquire(newcomer, KEY, 0, 0, &hold), LK_TIMEOUT);
    assert_int_equal(asker_join(&waiter), LK_OK);
    assert_int_equal(lk_release(&first), LK_LOST);
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
    lk_close(newcomer);
}

TEST_THAT(waiter_who_gives_up_leaves_the_queue)
{
    struct asker hasty, patient;
    queue_up(&hasty, client, 300);
    queue_up(&patient, client, LONG_MS);
    assert_int_equal(asker_join(&hasty), LK_TIMEOUT);
    assert_int_equal(world_ask("LLEN " QUEUE), 1);
    assert_int_equal(world_ask("HLEN " SEEN), 1);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&patient), LK_OK);
    assert_int_equal(lk_release(&patient.hold), LK_OK);
    nothing_is_left_but_the_fence();
}

/* The hand-over comes between the waiter's last refused try and its leaving the queue. lk_acquire()
 * cannot be stopped there, so the provider is called directly. */
TEST_THAT(waiter_who_gives_up_passes_on_what_it_was_handed)
{
    static const char id[] = "00112233445566778899aabbccddeeff";
    const lk_provider *fair = &lk_redis_fair;
    struct link link;
    struct asker patient;
    lk_hold hold = {.key = KEY, .lease_ms = LONG_MS};
    lk_attempt attempt = {.hold = &hold};
    void *self;
    char holder[LK_TOKEN_MAX + 1];
    int64_t until_us = lk_env_system()->now_us(NULL) + LONG_MS * 1000;
    assert_true(link_open(&link, world_redis->url));
    memcpy(link.context.client_id, id, sizeof id);
    snprintf(hold.token, sizeof hold.token, "%s:hasty", id);
    assert_int_equal(fair->open(&link.context, &self, NULL), LK_OK);
    assert_int_equal(fair->try_acquire(self, &attempt), LK_BUSY);
    assert_int_equal(fair->wait(self, &attempt, until_us), LK_OK);
    assert_int_equal(fair->try_acquire(self, &attempt), LK_BUSY);
    queue_up(&patient, client, LONG_MS);
    assert_int_equal(lk_release(&first), LK_OK);
    world_ask_text(holder, sizeof holder, "GET " KEY);
    assert_string_equal(holder, hold.token);
    fair->wait_end(self, &attempt);
    assert_true(attempt.queued); /* so the core calls release() */
    assert_int_equal(fair->release(self, &hold), LK_OK);
    assert_int_equal(asker_join(&patient), LK_OK);
    assert_true(patient.hold.fence == first.fence + 2);
    assert_int_equal(lk_release(&patient.hold), LK_OK);
    nothing_is_left_but_the_fence();
    fair->close(self);
    link_close(&link);
}

TEST_THAT(dead_waiter_is_passed_over_within_its_threshold)
{
    struct holder dead;
    struct asker patient;
    queue_up_holder(&dead, LONG_MS);
    queue_up(&patient, client, LONG_MS);
    holder_kill(&dead);
    assert_int_equal(world_ask("LLEN " QUEUE), 2);
    int64_t start_ms = test_now_ms();
    assert_int_equal(lk_release(&first), LK_OK); /* handed to the dead waiter, seen recently */
    assert_int_equal(world_ask("LLEN " QUEUE), 1);
    assert_int_equal(asker_join(&patient), LK_OK);
    int64_t took_ms = test_now_ms() - start_ms;
    assert_true(took_at_most(took_ms, CLAIM_MS + SOON_MS));
    assert_int_equal(lk_release(&patient.hold), LK_OK);
    nothing_is_left_but_the_fence();
}

/* Queues a dead waiter, last seen ago_ms ago, and a live one behind it. Returns how many fences
 * were granted until the second has the lock. */
static uint64_t grants_past_a_waiter_last_seen(int64_t ago_ms)
{
    struct holder dead;
    struct asker patient;
    char token[LK_TOKEN_MAX + 1], sign[64];
    queue_up_holder(&dead, LONG_MS);
    queue_up(&patient, client, LONG_MS);
    holder_kill(&dead);
    world_ask_text(token, sizeof token, "LINDEX " QUEUE " 0");
    snprintf(sign, sizeof sign, "%lld %d 1",
             (long long)(lk_env_system()->wall_us(NULL) / 1000 - ago_ms), LONG_MS);
    assert_int_equal(world_ask("HSET " SEEN " %s %s", token, sign), 0);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&patient), LK_OK);
    uint64_t grants = patient.hold.fence - first.fence;
    assert_int_equal(lk_release(&patient.hold), LK_OK);
    return grants;
}

/* The numbers are fixed here: they do not follow the guard's constants. */
TEST_THAT(waiter_dead_for_two_seconds_is_passed_over_at_once)
{
    assert_int_equal(grants_past_a_waiter_last_seen(2100), 1);
}

TEST_THAT(waiter_seen_within_two_seconds_is_handed_the_lock)
{
    assert_int_equal(grants_past_a_waiter_last_seen(500), 2);
}

/* The lock was handed to the stopped waiter and expired. The waiter has lost its place and queues
 * again at the end. */
TEST_THAT(stopped_waiter_loses_its_place_and_comes_back_at_the_end)
{
    struct holder stopped;
    struct asker patient;
    queue_up_holder(&stopped, CLAIM_MS);
    assert_int_equal(kill(stopped.pid, SIGSTOP), 0);
    queue_up(&patient, client, LONG_MS);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&patient), LK_OK);
    assert_int_equal(kill(stopped.pid, SIGCONT), 0);
    assert_true(world_becomes(1, LONG_MS, "LLEN " QUEUE));
    assert_int_equal(lk_release(&patient.hold), LK_OK);
    assert_true(holder_says(&stopped, "held"));
    holder_release(&stopped);
    assert_true(holder_says(&stopped, "released"));
    holder_kill(&stopped);
    nothing_is_left_but_the_fence();
}

/* So the keys vanish if all waiters die and no new one comes. */
TEST_THAT(queue_keys_carry_an_expiry)
{
    struct asker waiters[2];
    queue_up(&waiters[0], client, LONG_MS);
    queue_up(&waiters[1], client, LONG_MS);
    assert_true(world_ask("PTTL " QUEUE) > CLAIM_MS);
    assert_true(world_ask("PTTL " SEEN) > CLAIM_MS);
    assert_int_equal(lk_release(&first), LK_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(asker_join(&waiters[i]), LK_OK);
        assert_int_equal(lk_release(&waiters[i].hold), LK_OK);
    }
}

TEST_THAT(dead_holders_lock_goes_to_the_first_in_the_queue)
{
    struct asker waiters[3];
    for (int i = 0; i < 3; i++)
        queue_up(&waiters[i], client, LONG_MS);
    assert_int_equal(world_ask("PEXPIRE " KEY " 200"), 1);
    assert_int_equal(asker_join(&waiters[0]), LK_OK);
    assert_true(waiters[0].took_ms < LONG_MS / 2);
    assert_int_equal(lk_release(&waiters[0].hold), LK_OK);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(asker_join(&waiters[i]), LK_OK);
        assert_int_equal(lk_release(&waiters[i].hold), LK_OK);
    }
    assert_int_equal(lk_release(&first), LK_LOST);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    return tests_run();
}
