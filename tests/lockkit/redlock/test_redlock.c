/* redlock on five real nodes: majorities that grant, refuse and extend, and keys that remain. For
 * nodes that hang or lose answers see test_redlock_hang.c. */
#include "process.h"
#include "lateness.h"
#include "own_keys.h"
#include "redis.h"
#include "redlock_rig.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define COMPARE_AND_DELETE                                                                         \
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0"

/* -- dead nodes -------------------------------------------------------------------------------- */

GROUP_FIXTURE(redlock_open, world_close);
TEST_FIXTURE(redlock_set_up, redlock_tear_down);

TEST_THAT(two_of_five_dead_nodes_do_not_matter)
{
    redlock_warm_up(redlock_client);
    redlock_signal(0, 2, SIGKILL);
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
    assert_int_equal(world_standing(REDLOCK_KEY), 3);
    assert_int_equal(redlock_try(redlock_other, &redlock_second), LK_TIMEOUT);
    assert_int_equal(lk_extend(&redlock_hold, REDLOCK_LEASE_MS), LK_OK);
    assert_int_equal(lk_confirm(&redlock_hold), LK_OK);
    assert_int_equal(lk_ping(redlock_client), LK_OK);
    assert_int_equal(lk_release(&redlock_hold), LK_OK);
    assert_int_equal(world_standing(REDLOCK_KEY), 0);
}

/* The refusal comes at once and sets no key, also if the client was connected to the nodes. */
TEST_THAT(three_of_five_dead_nodes_refuse_and_leave_no_orphan)
{
    redlock_warm_up(redlock_client);
    redlock_signal(2, 5, SIGKILL);
    for (int i = 0; i < 3; i++) {
        int64_t start_ms = test_now_ms();
        lk_status known =
            world_acquire(redlock_client, REDLOCK_KEY, 0, REDLOCK_LONG_MS, &redlock_hold);
        lk_status fresh =
            world_acquire(redlock_other, REDLOCK_KEY, 0, REDLOCK_LONG_MS, &redlock_second);
        assert_int_equal(known, LK_UNAVAILABLE);
        assert_int_equal(fresh, LK_UNAVAILABLE);
        assert_true(ended_within(start_ms, REDLOCK_GRACE_MS));
        assert_int_equal(redis_do(world_nodes[0], "DBSIZE"), 0);
        assert_int_equal(redis_do(world_nodes[1], "DBSIZE"), 0);
    }
    lk_stats stats;
    lk_client_stats(redlock_other, &stats);
    assert_int_equal(stats.commands, 0);
    assert_int_equal(lk_ping(redlock_client), LK_UNAVAILABLE);
}

TEST_THAT(nodes_that_come_back_are_used_again)
{
    redlock_warm_up(redlock_client);
    redlock_signal(0, 5, SIGKILL);
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_UNAVAILABLE);
    redlock_restart(0, 3);
    assert_int_equal(redlock_try(redlock_client, &redlock_hold),
                     LK_OK); /* at once: without them there is no majority */
    assert_int_equal(lk_release(&redlock_hold), LK_OK);
    redlock_restart(3, 5);
    int64_t deadline_ms = test_now_ms() + REDLOCK_LONG_MS;
    for (int standing = 0; standing < WORLD_NODES;) { /* reconnects in the background */
        assert_true(test_now_ms() < deadline_ms);
        assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
        standing = world_standing(REDLOCK_KEY);
        assert_int_equal(lk_release(&redlock_hold), LK_OK);
    }
    redlock_signal(0, 2, SIGKILL); /* after a restart they are used again in every call */
    redlock_restart(0, 2);
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
    assert_int_equal(world_standing(REDLOCK_KEY), WORLD_NODES);
}

/* Three nodes die. The keys on the other two are no majority for anyone, so the holder cannot know
 * whether its lock is lost. */
TEST_THAT(release_without_a_majority_is_unknown)
{
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
    redlock_signal(0, 3, SIGKILL);
    assert_int_equal(lk_confirm(&redlock_hold), LK_UNKNOWN);
    assert_int_equal(lk_extend(&redlock_hold, REDLOCK_LEASE_MS), LK_UNKNOWN);
    assert_int_equal(lk_release(&redlock_hold), LK_UNKNOWN);
    assert_int_equal(world_standing(REDLOCK_KEY), 0);
}

/* -- validity ---------------------------------------------------------------------------------- */

static int64_t left_ms_of(const lk_hold *of)
{
    int64_t left_ms;
    assert_int_equal(lk_check(of, &left_ms), LK_OK);
    return left_ms;
}

TEST_THAT(hold_is_worth_its_lease_less_the_drift_of_clocks)
{
    enum { SHORT_MS = 3000 }; /* a node may use a tenth of it to answer */
    lk_client *renewing = world_client("redlock", &(lk_options){.lease_ms = SHORT_MS});
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
    assert_in_range(left_ms_of(&redlock_hold), REDLOCK_LEASE_MS / 2,
                    REDLOCK_LEASE_MS - REDLOCK_DRIFT_MS);
    assert_int_equal(lk_extend(&redlock_hold, 2 * REDLOCK_LEASE_MS), LK_OK);
    assert_in_range(left_ms_of(&redlock_hold), REDLOCK_LEASE_MS,
                    2 * REDLOCK_LEASE_MS - (2 * REDLOCK_DRIFT_MS - 2));
    assert_int_equal(lk_release(&redlock_hold), LK_OK);

    assert_int_equal(world_acquire(renewing, REDLOCK_KEY, 0, 0, &redlock_hold), LK_OK);
    lk_stats stats = {0};
    int64_t deadline_ms = test_now_ms() + REDLOCK_LONG_MS, most_ms = 0;
    while (stats.renewals < 2 && test_now_ms() < deadline_ms) {
        int64_t left_ms = left_ms_of(&redlock_hold);
        most_ms = left_ms > most_ms ? left_ms : most_ms;
        lk_client_stats(renewing, &stats);
    }
    assert_int_equal(lk_release(&redlock_hold), LK_OK);
    assert_true(stats.renewals >= 2);
    assert_in_range(most_ms, 1, SHORT_MS - SHORT_MS / 100 - 2);
    lk_close(renewing);
}

/* -- extension --------------------------------------------------------------------------------- */

TEST_THAT(extension_takes_a_majority_and_gives_no_lost_key_back)
{
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(redis_do(world_nodes[i], "DEL " REDLOCK_KEY), 1);
    assert_int_equal(lk_extend(&redlock_hold, 2 * REDLOCK_LEASE_MS), LK_OK);
    assert_true(world->left_ms(REDLOCK_KEY) > REDLOCK_LEASE_MS);
    assert_int_equal(world_standing(REDLOCK_KEY), 3);
    assert_int_equal(lk_confirm(&redlock_hold), LK_OK);
    assert_int_equal(redis_do(world_nodes[2], "DEL " REDLOCK_KEY), 1);
    assert_int_equal(lk_confirm(&redlock_hold), LK_LOST);
    assert_int_equal(lk_extend(&redlock_hold, 2 * REDLOCK_LEASE_MS), LK_LOST);
    assert_int_equal(world_standing(REDLOCK_KEY), 0); /* also removed from the minority */
    assert_int_equal(lk_release(&redlock_hold), LK_LOST);
}

/* -- the known weakness ------------------------------------------------------------------------ */

/* Needs the answers of three nodes, so it takes until the client has reconnected. */
static bool is_known_lost(void *of)
{
    return lk_confirm(of) == LK_LOST;
}

/* A holds on nodes 0, 1 and 2; node 2 restarts empty; B gets 2, 3 and 4. Both hold the lock. */
TEST_THAT(node_that_restarts_empty_votes_twice)
{
    redlock_signal(3, 5, SIGKILL);
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
    redlock_restart(3, 5);
    assert_int_equal(redlock_try(redlock_other, &redlock_second), LK_TIMEOUT);
    redlock_signal(2, 3, SIGKILL);
    redlock_restart(2, 3);
    assert_int_equal(redlock_try(redlock_other, &redlock_second), LK_OK);
    assert_int_equal(lk_check(&redlock_hold, NULL), LK_OK); /* A does not know it */
    assert_int_equal(lk_check(&redlock_second, NULL), LK_OK);
    assert_int_equal(redlock_hold.fence, 0);
    assert_int_equal(redlock_second.fence, 0);
    assert_true(
        wait_until(is_known_lost, &redlock_hold, REDLOCK_LONG_MS)); /* by asking the nodes */
    assert_int_equal(lk_release(&redlock_hold), LK_LOST);
    assert_int_equal(world_standing(REDLOCK_KEY), 3); /* B's keys remain */
    assert_int_equal(lk_release(&redlock_second), LK_OK);
}

/* -- other clients of the recipe --------------------------------------------------------------- */

static void set_nx_px_by_hand(int from, int to, const char *token)
{
    for (int i = from; i < to; i++)
        assert_int_equal(redis_do(world_nodes[i], "SET " REDLOCK_KEY " %s NX PX 60000", token), 1);
}

TEST_THAT(other_clients_of_the_recipe_exclude_and_are_excluded)
{
    char token[LK_TOKEN_MAX + 1];
    set_nx_px_by_hand(0, 3, "theirs");
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_TIMEOUT);
    assert_int_equal(world_standing(REDLOCK_KEY), 3); /* our two votes were removed */
    assert_int_equal(
        redis_do(world_nodes[0], "EVAL %s 1 " REDLOCK_KEY " theirs", COMPARE_AND_DELETE), 1);
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK); /* three against two */
    for (int i = 0; i < WORLD_NODES; i++)
        assert_int_equal(redis_do(world_nodes[i], "SET " REDLOCK_KEY " again NX PX 60000"), 0);
    lk_lock_info info;
    assert_int_equal(lk_inspect(redlock_other, REDLOCK_KEY, &info), LK_OK);
    assert_string_equal(info.token, redlock_hold.token);
    assert_in_range(info.left_ms, REDLOCK_LEASE_MS / 2, REDLOCK_LEASE_MS);
    snprintf(token, sizeof token, "%s", redlock_hold.token);
    assert_int_equal(
        redis_do(world_nodes[0], "EVAL %s 1 " REDLOCK_KEY " %s", COMPARE_AND_DELETE, token), 1);
    assert_int_equal(lk_release(&redlock_hold), LK_LOST); /* one of our three votes was removed */
    assert_int_equal(world_standing(REDLOCK_KEY), 2);     /* the other client's */
}

/* The tokens of the tries that this node has seen. Returns how many. */
static int read_tries(const struct sandbox_server *node, char tokens[][LK_TOKEN_MAX + 1], int max)
{
    int n = 0;
    redisContext *redis = redis_connect(node->port);
    assert_non_null(redis);
    redisReply *reply = redisCommand(redis, "SLOWLOG GET 1000");
    assert_non_null(reply);
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *words = reply->element[i]->element[3];
        if (words->elements == 6 && strcmp(words->element[0]->str, "SET") == 0 &&
            strcmp(words->element[1]->str, REDLOCK_KEY) == 0 && n < max)
            snprintf(tokens[n++], LK_TOKEN_MAX + 1, "%s", words->element[2]->str);
    }
    freeReplyObject(reply);
    redisFree(redis);
    return n;
}

/* A node that was slow may carry out the undoing of a refused try after it has granted a later one.
 */
TEST_THAT(late_undoing_of_an_earlier_try_frees_nothing)
{
    enum { TRIES_MAX = 200 };
    static char tokens[TRIES_MAX][LK_TOKEN_MAX + 1];
    assert_int_equal(redis_do(world_nodes[4], "CONFIG SET slowlog-log-slower-than 0"), 1);
    assert_int_equal(redis_do(world_nodes[4], "CONFIG SET slowlog-max-len 1000"), 1);
    do {
        lk_release(&redlock_hold);
        assert_int_equal(redis_do(world_nodes[4], "SLOWLOG RESET"), 1);
        for (int i = 0; i < 3; i++)
            redis_do(world_nodes[i], "SET " REDLOCK_KEY " theirs PX 300");
        assert_int_equal(world_acquire(redlock_client, REDLOCK_KEY, REDLOCK_LEASE_MS,
                                       REDLOCK_LONG_MS, &redlock_hold),
                         LK_OK);
    } while (redlock_hold.attempts < 2);
    const int n = read_tries(world_nodes[4], tokens, TRIES_MAX);
    assert_int_equal(n, redlock_hold.attempts);
    assert_string_equal(tokens[0], redlock_hold.token); /* the newest first */
    for (int i = 1; i < n; i++)
        for (int node = 0; node < WORLD_NODES; node++)
            assert_int_equal(redis_do(world_nodes[node], "EVAL %s 1 " REDLOCK_KEY " %s",
                                      COMPARE_AND_DELETE, tokens[i]),
                             0);
    assert_int_equal(world_standing(REDLOCK_KEY), WORLD_NODES);
    assert_int_equal(lk_confirm(&redlock_hold), LK_OK);
    assert_int_equal(lk_release(&redlock_hold), LK_OK);
}

/* One client's leftover vote refuses no other client. Votes of several dead clients can together
 * block the lock. */
TEST_THAT(votes_that_nobody_took_back_add_up)
{
    set_nx_px_by_hand(0, 1, "dead-1");
    set_nx_px_by_hand(1, 2, "dead-2");
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_OK);
    assert_int_equal(lk_release(&redlock_hold), LK_OK);
    set_nx_px_by_hand(2, 3, "dead-3");
    lk_lock_info info;
    assert_int_equal(lk_inspect(redlock_other, REDLOCK_KEY, &info), LK_OK);
    assert_int_equal(info.holders, 0); /* no holder, but still refused: */
    assert_int_equal(redlock_try(redlock_client, &redlock_hold), LK_TIMEOUT);
    assert_int_equal(redis_do(world_nodes[2], "PEXPIRE " REDLOCK_KEY " 1"), 1);
    assert_int_equal(world_acquire(redlock_client, REDLOCK_KEY, 0, REDLOCK_LONG_MS, &redlock_hold),
                     LK_OK);
}

/* -- endpoints --------------------------------------------------------------------------------- */

TEST_THAT(endpoints_that_are_not_independent_nodes_are_refused)
{
    static const char ten_nodes[] = "unix:///1,unix:///2,unix:///3,unix:///4,unix:///5,"
                                    "unix:///6,unix:///7,unix:///8,unix:///9,unix:///a";
    static const char *const lists[] = {
        "",
        "redis://a,redis://a",
        "redis://a:6379,redis://A/3",
        "redis://a,unix:///s,redis://b,unix:///s?db=2",
        "redis://a,b",
        "redis://a,",
        ten_nodes,
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        lk_client *client = NULL;
        lk_error error = {.message = ""};
        assert_int_equal(lk_open("redlock", lists[i], NULL, &client, &error), LK_INVALID);
        assert_null(client);
        assert_true(strlen(error.message) > 0);
    }
}

/* Endpoints of three nodes, with a user and database 3. */
static lk_client *log_in(const char *user_and_password)
{
    char list[WORLD_ENDPOINTS_MAX];
    int length = 0;
    lk_client *client;
    for (int i = 0; i < 3; i++)
        length +=
            snprintf(list + length, sizeof list - (size_t)length, "%sredis://%s@127.0.0.1:%d/3",
                     i > 0 ? "," : "", user_and_password, world_nodes[i]->port);
    assert_int_equal(lk_open("redlock", list, NULL, &client, NULL), LK_OK);
    return client;
}

TEST_THAT(login_and_database_of_the_endpoint_are_used)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(redis_do(world_nodes[i], "ACL SETUSER worker on >pa:ss ~* +@all"), 1);
    lk_client *wrong = log_in("worker:past"), *right = log_in("worker:pa%3Ass");
    lk_status refused = redlock_try(wrong, &redlock_hold);
    lk_close(wrong);
    lk_status granted = redlock_try(right, &redlock_hold);
    int standing = 0;
    for (int i = 0; i < 3; i++)
        standing += redis_do(world_nodes[i], "EVAL %s 1 " REDLOCK_KEY,
                             "redis.call('select', 3) return redis.call('exists', KEYS[1])") == 1;
    lk_release(&redlock_hold);
    lk_close(right);
    assert_int_equal(refused, LK_UNAVAILABLE);
    assert_int_equal(granted, LK_OK);
    assert_int_equal(standing, 3);
    assert_int_equal(world_standing(REDLOCK_KEY), 0);
}

/* With n nodes, (n - 1) / 2 dead ones are tolerated. */
TEST_THAT(a_majority_is_of_the_nodes_configured)
{
    for (int n = 1, borne = 0; n <= 4; n++, borne = (n - 1) / 2) {
        char list[WORLD_ENDPOINTS_MAX];
        int length = 0;
        lk_client *client;
        for (int i = 0; i < n; i++)
            length += snprintf(list + length, sizeof list - (size_t)length, "%sunix://%s",
                               i > 0 ? "," : "", world_nodes[i]->socket);
        assert_int_equal(lk_open("redlock", list, NULL, &client, NULL), LK_OK);
        redlock_signal(0, borne, SIGKILL);
        assert_int_equal(redlock_try(client, &redlock_hold), LK_OK);
        assert_int_equal(world_standing(REDLOCK_KEY), n - borne);
        assert_int_equal(lk_release(&redlock_hold), LK_OK);
        redlock_signal(borne, borne + 1, SIGKILL);
        assert_int_equal(redlock_try(client, &redlock_hold), LK_UNAVAILABLE);
        assert_int_equal(world_standing(REDLOCK_KEY), 0);
        redlock_restart(0, borne + 1);
        lk_close(client);
    }
}

/* -- many threads ------------------------------------------------------------------------------ */

TEST_THAT(answers_reach_their_askers_among_64_threads)
{
    lk_client *client = world_client("redlock", &world_patient);
    own_keys_test(client, REDLOCK_LEASE_MS, REDLOCK_LONG_MS);
    lk_close(client);
    assert_int_equal(world->leftovers(), 0);
}
