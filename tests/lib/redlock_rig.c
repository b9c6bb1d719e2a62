#include "redlock_rig.h"
#include "redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>

lk_client *rig_client, *rig_other;
lk_hold rig_hold, rig_second;

int rig_open_nodes(void **state)
{
    world = &family_redlock;
    return world_open(state);
}

int rig_set_up(void **state)
{
    (void)state;
    for (int i = 0; i < WORLD_NODES; i++)
        if (world_nodes[i]->pid == 0 && sandbox_restart(world_nodes[i]) != 0)
            return -1;
    world->wipe();
    rig_hold = rig_second = (lk_hold){0};
    rig_client = world_client("redlock", NULL);
    rig_other = world_client("redlock", NULL);
    return rig_client == NULL || rig_other == NULL ? -1 : 0;
}

int rig_tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < WORLD_NODES; i++)
        if (world_nodes[i]->pid != 0)
            sandbox_signal(world_nodes[i], SIGCONT);
    lk_release(&rig_hold);
    lk_release(&rig_second);
    lk_close(rig_client);
    lk_close(rig_other);
    return 0;
}

void rig_signal(int from, int to, int signal)
{
    for (int i = from; i < to; i++)
        assert_int_not_equal(sandbox_signal(world_nodes[i], signal), -1);
}

void rig_restart(int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(sandbox_restart(world_nodes[i]), 0);
}

lk_status rig_try(lk_client *client, lk_hold *hold)
{
    return world_acquire(client, RIG_KEY, RIG_LEASE_MS, 0, hold);
}

void rig_warm_up(lk_client *client)
{
    lk_hold hold;
    assert_int_equal(rig_try(client, &hold), LK_OK);
    assert_int_equal(world_standing(RIG_KEY), WORLD_NODES);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(world_standing(RIG_KEY), 0);
}
