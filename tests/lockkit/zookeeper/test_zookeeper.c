/* The ZooKeeper guards on one server: sessions, orphans, waiting. */
#include "holder.h"
#include "lock_claims.h"
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#define QUEUE "/lockkit/sequential/" CLAIM_KEY

enum {
    WAITERS = 50,
    SESSION_MS = 3000, /* a busy machine does not keep a client from its server for as long */
    COMMAND_MS = 2000,
    PATH_BYTES = 512
};

static int set_up(void **state)
{
    (void)state;
    world->wipe();
    return 0;
}

/* A session of 200 ms may end on a busy machine before it has granted a lock: then there is a new
 * one. */
static void acquire_in_some_session(lk_client *client, lk_hold *hold)
{
    int64_t until_ms = test_now_ms() + CLAIM_LONG_MS;
    lk_status status;
    do
        status = world_acquire(client, CLAIM_KEY, 0, CLAIM_LONG_MS, hold);
    while (status != LK_OK && test_now_ms() < until_ms);
    assert_int_equal(status, LK_OK);
}

static uint64_t attempts_of(lk_client *client)
{
    lk_stats stats;
    lk_client_stats(client, &stats);
    return stats.attempts;
}

/* -- sessions -----------------------------------------------------------------------------------
 */

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(set_up, NULL);

TEST_THAT(a_paused_holder_is_succeeded_with_a_higher_fence_and_told_when_it_wakes)
{
    for (const char *const *guard = world->guards; *guard != NULL; guard++) {
        char endpoints[WORLD_ENDPOINTS_MAX];
        world->endpoints(endpoints, sizeof endpoints, 0);
        struct holder_plan plan = {.guard = *guard,
                                   .endpoints = endpoints,
                                   .key = CLAIM_KEY,
                                   .default_lease_ms = SESSION_MS,
                                   .tells_loss = true};
        struct holder holder;
        lk_lock_info info;
        lk_hold hold;
        lk_client *client = world_client(*guard, &world_patient);
        assert_true(holder_start(&holder, &plan));
        assert_true(holder_says(&holder, "held"));
        assert_int_equal(lk_inspect(client, CLAIM_KEY, &info), LK_OK);
        assert_int_equal(kill(holder.pid, SIGSTOP), 0);
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, CLAIM_LONG_MS, &hold), LK_OK);
        assert_true(info.fence > 0 && hold.fence > info.fence);
        assert_int_equal(kill(holder.pid, SIGCONT), 0);
        assert_true(holder_says(&holder, lk_loss_text(LK_LOSS_SESSION)));
        holder_release(&holder);
        /* Lost, or unknown if the connection has just broken; it has freed no other lock. */
        (void)holder_says(&holder, lk_status_text(LK_LOST));
        assert_int_equal(lk_confirm(&hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
        holder_kill(&holder);
        lk_close(client);
    }
}

TEST_THAT(the_session_s_timeout_is_what_was_asked_for_within_the_server_s_bounds)
{
    static const int64_t asked_ms[] = {10, 5000, 600000};
    static const int64_t agreed_ms[] = {2 * SANDBOX_ZOOKEEPER_TICK_MS, 5000, 60000};
    for (int i = 0; i < 3; i++) {
        lk_hold hold;
        int64_t left_ms;
        lk_client *client = world_client("zk-sequential", &(lk_options){.lease_ms = asked_ms[i]});
        acquire_in_some_session(client, &hold);
        assert_int_equal(hold.lease_ms, agreed_ms[i]);
        if (lk_check(&hold, &left_ms) == LK_OK) /* on a busy machine 200 ms may have passed */
            assert_in_range(left_ms, 1, agreed_ms[i]);
        lk_release(&hold);
        lk_close(client);
    }
}

static bool answers(void *client)
{
    return lk_ping(client) == LK_OK;
}

/* The orphan would stay as long as the client's session, which is alive. */
TEST_THAT(an_orphan_that_could_not_be_removed_goes_when_the_server_is_back)
{
    for (const char *const *guard = world->guards; *guard != NULL; guard++) {
        struct proxy *proxy = proxy_open(world->port());
        lk_client *client = world_client_at(*guard, proxy_port(proxy),
                                            &(lk_options){.command_timeout_ms = COMMAND_MS});
        lk_hold first, hold, next;
        assert_true(wait_until(answers, client, CLAIM_LONG_MS)); /* a busy machine is slow */
        char parent[PATH_BYTES];
        assert_int_equal(world_acquire(client, "lock:other", 0, 0, &first), LK_OK);
        /* With an existing parent, the first request is the one that creates the lock. */
        snprintf(parent, sizeof parent, "/lockkit/%s/" CLAIM_KEY, *guard + strlen("zk-"));
        if (strcmp(*guard, "zk-ephemeral") != 0)
            assert_true(world_zk_create(parent, ZOO_PERSISTENT, NULL, 0));
        proxy_drop(proxy, PROXY_TO_CLIENT, true);
        assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_UNKNOWN);
        assert_true(world->exists(CLAIM_KEY));
        proxy_drop(proxy, PROXY_TO_CLIENT, false);
        proxy_cut(proxy);
        assert_true(world_frees(CLAIM_KEY, CLAIM_LONG_MS));
        assert_int_equal(lk_confirm(&first), LK_OK); /* still the same session */
        lk_client *other = world_client(*guard, &world_patient);
        assert_int_equal(world_acquire(other, CLAIM_KEY, 0, 0, &next), LK_OK);
        assert_int_equal(lk_release(&next), LK_OK);
        assert_int_equal(lk_release(&first), LK_OK);
        lk_close(other);
        lk_close(client);
        proxy_close(proxy);
        world->wipe();
    }
}

/* -- waiting ------------------------------------------------------------------------------------
 */

struct crowd {
    lk_client *client;
    struct asker askers[WAITERS];
    bool released[WAITERS];
};

static bool all_wait(void *arg)
{
    struct crowd *crowd = arg;
    lk_stats stats;
    lk_client_stats(crowd->client, &stats);
    return stats.refusals == 2 * WAITERS; /* each waiter really waits */
}

static int find_winner(struct crowd *crowd)
{
    for (int i = 0; i < WAITERS; i++)
        if (!crowd->released[i] && asker_ended(&crowd->askers[i]))
            return i;
    return -1;
}

static bool has_winner(void *crowd)
{
    return find_winner(crowd) >= 0;
}

static bool all_others_refused(void *arg)
{
    struct crowd *crowd = arg;
    return attempts_of(crowd->client) >= 2 * WAITERS + 1 + 2 * (WAITERS - 1);
}

/* Tries that one release causes among 50 waiters. */
static uint64_t tries_per_release(const char *guard, bool herd)
{
    static struct crowd crowd;
    lk_hold hold;
    lk_client *holder = world_client(guard, &world_patient);
    crowd = (struct crowd){.client = world_client(guard, &world_patient)};
    assert_int_equal(world_acquire(holder, CLAIM_KEY, 0, 0, &hold), LK_OK);
    for (int i = 0; i < WAITERS; i++) {
        crowd.askers[i] =
            (struct asker){.client = crowd.client, .key = CLAIM_KEY, .wait_ms = 10 * CLAIM_LONG_MS};
        asker_start(&crowd.askers[i]);
    }
    assert_true(wait_until(all_wait, &crowd, CLAIM_LONG_MS));
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_true(wait_until(has_winner, &crowd, CLAIM_LONG_MS));
    if (herd)
        assert_true(wait_until(all_others_refused, &crowd, CLAIM_LONG_MS));
    uint64_t tries = attempts_of(crowd.client) - 2 * WAITERS;
    for (int i = 0; i < WAITERS; i++) { /* one after the other */
        assert_true(wait_until(has_winner, &crowd, CLAIM_LONG_MS));
        int winner = find_winner(&crowd);
        crowd.released[winner] = true;
        assert_int_equal(asker_join(&crowd.askers[winner]), LK_OK);
        assert_int_equal(lk_release(&crowd.askers[winner].hold), LK_OK);
    }
    if (!herd) /* no waiter woke without a grant */
        assert_int_equal(attempts_of(crowd.client), 3 * WAITERS);
    lk_close(crowd.client);
    lk_close(holder);
    return tries;
}

TEST_THAT(a_release_wakes_all_waiters_of_one_node_and_one_of_a_queue)
{
    /* The winner tries once. Each other waiter is refused, sets a watch and tries again, in case
     * the lock came free meanwhile. */
    assert_int_equal(tries_per_release("zk-ephemeral", true), 1 + 2 * (WAITERS - 1));
    assert_int_equal(tries_per_release("zk-sequential", false), 1);
}

TEST_THAT(a_waiter_that_gives_up_leaves_the_queue_to_those_behind_it)
{
    lk_hold hold, second;
    struct hooked hooked;
    lk_client *client = world_client("zk-sequential", &world_patient);
    struct asker last = {.client = world_client(
                             "zk-sequential", &(lk_options){.command_timeout_ms = WORLD_COMMAND_MS,
                                                            .env = hook(&hooked)}),
                         .key = CLAIM_KEY,
                         .wait_ms = CLAIM_LONG_MS};
    struct asker middle = {.client = client, .key = CLAIM_KEY, .wait_ms = 1000};
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &hold), LK_OK);
    asker_start(&middle);
    while (world_zk_children(QUEUE) < 2)
        lk_env_system()->sleep_us(NULL, 1000);
    asker_start(&last);
    assert_true(wait_until(refused_twice, &hooked, CLAIM_LONG_MS));
    assert_int_equal(asker_join(&middle), LK_TIMEOUT);
    assert_int_equal(world_zk_children(QUEUE), 2);
    assert_int_equal(world_acquire(client, CLAIM_KEY, 0, 0, &second), LK_TIMEOUT);
    assert_int_equal(world_zk_children(QUEUE), 2);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(asker_join(&last), LK_OK);
    assert_int_equal(lk_release(&last.hold), LK_OK);
    lk_close(last.client);
    lk_close(client);
}

TEST_THAT(a_writer_waits_for_earlier_readers_and_later_readers_for_it)
{
    lk_hold first, second, late;
    struct hooked hooked;
    lk_client *client = world_client("zk-readwrite", &world_patient);
    lk_request read = {.key = CLAIM_KEY, .mode = LK_SHARED};
    struct asker writer = {
        .client = world_client("zk-readwrite", &(lk_options){.command_timeout_ms = WORLD_COMMAND_MS,
                                                             .env = hook(&hooked)}),
        .key = CLAIM_KEY,
        .wait_ms = CLAIM_LONG_MS};
    assert_int_equal(lk_acquire(client, &read, &first), LK_OK);
    assert_int_equal(lk_acquire(client, &read, &second), LK_OK);
    asker_start(&writer);
    assert_true(wait_until(refused_twice, &hooked, CLAIM_LONG_MS));
    assert_int_equal(lk_acquire(client, &read, &late), LK_TIMEOUT);
    assert_int_equal(lk_release(&second), LK_OK);
    assert_false(asker_ended(&writer));
    assert_int_equal(lk_release(&first), LK_OK);
    assert_int_equal(asker_join(&writer), LK_OK);
    assert_int_equal(lk_acquire(client, &read, &late), LK_TIMEOUT);
    assert_true(writer.hold.fence > first.fence && writer.hold.fence > second.fence);
    assert_int_equal(lk_release(&writer.hold), LK_OK);
    assert_int_equal(lk_acquire(client, &read, &late), LK_OK);
    assert_int_equal(lk_release(&late), LK_OK);
    lk_close(writer.client);
    lk_close(client);
}

TEST_THAT_WITH(an_operator_is_told_which_ensemble_and_what_it_lacks, NULL, NULL)
{
    static const lk_options brief = {.command_timeout_ms = COMMAND_MS};
    char url[WORLD_ENDPOINTS_MAX], message[LK_MESSAGE_MAX];
    lk_client *client;
    lk_hold hold;
    for (const char *const *guard = world->guards; *guard != NULL; guard++) {
        snprintf(url, sizeof url, "%s/missing", world_zookeeper.url);
        assert_int_equal(lk_open(*guard, url, &world_patient, &client, NULL), LK_OK);
        assert_int_equal(lk_try_acquire(client, CLAIM_KEY, &hold), LK_UNAVAILABLE);
        lk_last_error(client, message, sizeof message);
        assert_non_null(strstr(message, url));
        assert_non_null(strstr(message, "folder does not exist"));
        lk_close(client);
        snprintf(url, sizeof url, "127.0.0.1:%d", sandbox_free_port());
        assert_int_equal(lk_open(*guard, url, &brief, &client, NULL), LK_OK);
        assert_int_equal(lk_try_acquire(client, CLAIM_KEY, &hold), LK_UNAVAILABLE);
        lk_last_error(client, message, sizeof message);
        assert_non_null(strstr(message, url));
        lk_close(client);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return holder_main(argc, argv);
    world = &family_zookeeper;
    return tests_run();
}
