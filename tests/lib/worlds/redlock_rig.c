#include "redlock_rig.h"
#include "redis.h"
#include "tests.h"

#include <signal.h>

lk_client *redlock_client, *redlock_other;
lk_hold redlock_hold, redlock_second;

int redlock_open(void **state)
{
    world = &family_redlock;
    return world_open(state);
}

int redlock_set_up(void **state)
{
    (void)state;
    for (int i = 0; i < WORLD_NODES; i++)
        if (world_nodes[i]->pid == 0 && sandbox_restart(world_nodes[i]) != 0)
            return -1;
    world->wipe();
    redlock_hold = redlock_second = (lk_hold){0};
    redlock_client = world_client("redlock", NULL);
    redlock_other = world_client("redlock", NULL);
    return redlock_client == NULL || redlock_other == NULL ? -1 : 0;
}

int redlock_tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < WORLD_NODES; i++)
        if (world_nodes[i]->pid != 0)
            sandbox_signal(world_nodes[i], SIGCONT);
    lk_release(&redlock_hold);
    lk_release(&redlock_second);
    lk_close(redlock_client);
    lk_close(redlock_other);
    return 0;
}

void redlock_signal(int from, int to, int signal)
{
    for (int i = from; i < to; i++)
        assert_int_not_equal(sandbox_signal(world_nodes[i], signal), -1);
}

void redlock_restart(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(sandbox_restart(world_nodes[i]), 0);
}

lk_status redlock_try(lk_client *client, lk_hold *hold)
{
    return world_acquire(client, REDLOCK_KEY, REDLOCK_LEASE_MS, 0, hold);
}

void redlock_warm_up(lk_client *client)
{
    lk_hold hold;
    assert_int_equal(redlock_try(client, &hold), LK_OK);
    assert_int_equal(world_standing(REDLOCK_KEY), WORLD_NODES);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(world_standing(REDLOCK_KEY), 0);
}
