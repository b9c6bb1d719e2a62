/* redis-fair over a bad wire: messages, subscriptions and answers that are lost. */
#include "fair_rig.h"
#include "lateness.h"
#include "process.h"
#include "sandbox_proxy.h"

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(hold_it, let_go);

TEST_THAT(lost_message_costs_at_most_a_refresh)
{
    struct asker waiter;
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    proxy_mute(proxy, "SUBSCRIBE", false); /* marks the connection */
    lk_client *deaf = world_client_at(GUARD, proxy_port(proxy), NULL);
    queue_up(&waiter, deaf, LONG_MS);
    proxy_mute(proxy, "SUBSCRIBE", true);
    int64_t start_ms = test_now_ms();
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&waiter), LK_OK);
    assert_true(ended_within(start_ms, SOON_MS));
    assert_true(proxy_muted(proxy) > 0);
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
    lk_close(deaf);
    proxy_close(proxy);
}

TEST_THAT(broken_subscription_is_remade_and_the_place_kept)
{
    struct asker waiters[2];
    lk_client *other = world_client(GUARD, NULL);
    queue_up(&waiters[0], client, LONG_MS);
    queue_up(&waiters[1], other, LONG_MS);
    assert_int_equal(world_ask("CLIENT KILL TYPE pubsub"), 2);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&waiters[0]), LK_OK);
    assert_false(asker_ended(&waiters[1]));
    assert_int_equal(lk_release(&waiters[0].hold), LK_OK);
    assert_int_equal(asker_join(&waiters[1]), LK_OK);
    assert_int_equal(lk_release(&waiters[1].hold), LK_OK);
    nothing_is_left_but_the_fence();
    lk_close(other);
}

/* A waiter without a subscription tries at intervals, not continuously. */
TEST_THAT(without_a_subscription_the_server_is_not_stormed)
{
    enum { A_WHILE_MS = 500, TRIES_MAX = 200 };
    struct asker waiter = {.client = client, .key = KEY, .wait_ms = 100};
    asker_start(&waiter); /* the client listens from now on */
    assert_int_equal(asker_join(&waiter), LK_TIMEOUT);
    world_ask("ACL SETUSER default -subscribe");
    int64_t killed = world_ask("CLIENT KILL TYPE pubsub");
    lk_hold hold;
    lk_status status = world_acquire(client, KEY, LONG_MS, A_WHILE_MS, &hold);
    world_ask("ACL SETUSER default +subscribe");
    assert_int_equal(killed, 1);
    assert_int_equal(status, LK_TIMEOUT);
    assert_in_range(hold.attempts, 2, TRIES_MAX);
    queue_up(&waiter, client, LONG_MS);
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&waiter), LK_OK);
    assert_int_equal(lk_release(&waiter.hold), LK_OK);
}

/* A try has queued the waiter, but its answer is lost. Undoing the try must remove it from the
 * queue. */
TEST_THAT(undone_attempt_leaves_no_ghost_in_the_queue)
{
    struct asker waiter;
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    lk_client *cut = world_client_at(GUARD, proxy_port(proxy), NULL);
    proxy_lose_answer(proxy, QUEUE, 2, PROXY_CUT); /* the first try does not queue yet */
    waiter = (struct asker){.client = cut, .key = KEY, .wait_ms = 800};
    asker_start(&waiter);
    assert_int_not_equal(asker_join(&waiter), LK_OK);
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(world_ask("EXISTS " QUEUE " " SEEN), 0);
    assert_int_equal(lk_release(&first), LK_OK);
    nothing_is_left_but_the_fence();
    lk_close(cut);
    proxy_close(proxy);
}

static bool is_held(void *proxy)
{
    return proxy_held(proxy) == 1;
}

/* A release must not be delayed: the next holder waits for it. */
TEST_THAT(release_does_not_wait_for_the_answer_to_a_try)
{
    lk_hold hold;
    struct proxy *proxy = proxy_open(world_redis->port);
    assert_non_null(proxy);
    lk_client *both = world_client_at(GUARD, proxy_port(proxy), NULL);
    struct asker busy = {.client = both, .key = "lock:busy", .wait_ms = LONG_MS};
    assert_int_equal(world_acquire(both, "lock:item:2", LONG_MS, 0, &hold), LK_OK);
    proxy_hold(proxy, busy.key, 1);
    asker_start(&busy);
    bool held = wait_until(is_held, proxy, LONG_MS);
    lk_status released = lk_release(&hold);
    proxy_let_go(proxy);
    lk_status ended = asker_join(&busy);
    if (ended == LK_OK)
        lk_release(&busy.hold);
    assert_true(held);
    assert_int_equal(released, LK_OK);
    assert_int_equal(lk_release(&first), LK_OK);
    lk_close(both);
    proxy_close(proxy);
}
