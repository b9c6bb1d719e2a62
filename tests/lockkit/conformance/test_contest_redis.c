/* redis-token and redlock contend with redis-py and with both kinds of Node's redlock. */
#include "contest.h"
#include "lock_world.h"
#include "tests.h"

static int open_nodes(void **state)
{
    world = &family_redlock;
    return world_open(state);
}

int main(void)
{
    const struct CMUnitTest token[] = {
        CONTEST("redis_pys_lock_and_redis_token_exclude_each_other", "redis-token",
                .peer = CONTEST_PYTHON " redis-py"),
        CONTEST("redlock_4_on_one_node_and_redis_token_exclude_each_other", "redis-token",
                .peer = CONTEST_NODE " redlock4"),
        CONTEST("redlock_5_on_one_node_and_redis_token_exclude_each_other", "redis-token",
                .peer = CONTEST_NODE " redlock5"),
        CONTEST("peer_that_takes_no_lock_is_found", "redis-token", .peer = CONTEST_PYTHON " none",
                .planted = true),
    };
    const struct CMUnitTest redlock[] = {
        CONTEST("redlock_4_and_ours_exclude_each_other", "redlock",
                .peer = CONTEST_NODE " redlock4"),
        CONTEST("redlock_5_and_ours_exclude_each_other", "redlock",
                .peer = CONTEST_NODE " redlock5"),
    };
    return cmocka_run_group_tests(token, world_open, world_close) +
           cmocka_run_group_tests(redlock, open_nodes, world_close);
}
