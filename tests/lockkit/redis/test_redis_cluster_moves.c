/* redis+cluster:// while slots move from node to node. */
#include "redis_cluster.h"
#include "cluster_rig.h"
#include "redis.h"
#include "redis_set.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

#define KEY "lock:item:1"

static int master_of(int slot)
{
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        if (slot < (i + 1) * LK_REDIS_SLOTS / SANDBOX_CLUSTER_MASTERS)
            return i;
    return -1;
}

static void id_of(int node, char ret[64])
{
    redisContext *context = redis_connect(cluster.master[node]->port);
    redisReply *reply = redisCommand(context, "CLUSTER MYID");
    snprintf(ret, 64, "%s", reply->str);
    freeReplyObject(reply);
    redisFree(context);
}

/* CLUSTER SETSLOT on one node. */
static void set_slot(int on, int slot, const char *what, int node)
{
    char id[64];
    id_of(node, id);
    assert_int_equal(redis_do(cluster.master[on], "CLUSTER SETSLOT %d %s %s", slot, what, id), 1);
}

static void migrate(int from, int to, const char *key)
{
    assert_int_equal(redis_do(cluster.master[from], "MIGRATE 127.0.0.1 %d %s 0 1000 AUTH %s",
                              cluster.master[to]->port, key, sandbox_password()),
                     1);
}

/* Like the end of redis-cli --cluster reshard: the new owner is told first. */
static void settle_slot(int from, int to, int slot)
{
    set_slot(to, slot, "NODE", to);
    set_slot(from, slot, "NODE", to);
    set_slot(3 - from - to, slot, "NODE", to);
}

TEST_FIXTURE(open_cluster, close_cluster);

TEST_THAT(lock_is_found_again_after_its_slot_has_moved)
{
    int slot = lk_redis_slot(KEY), from = master_of(slot), to = (from + 1) % 3;
    lk_client *client = set_patient_client("redis-token", cluster.url, NULL);
    lk_hold hold, other;
    lk_stats before, after;
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
    set_slot(to, slot, "IMPORTING", from);
    set_slot(from, slot, "MIGRATING", to);
    migrate(from, to, KEY);
    migrate(from, to, "{" KEY "}:fence");
    settle_slot(from, to, slot);
    lk_client_stats(client, &before);
    assert_int_equal(set_acquire(client, KEY, 0, &other), LK_TIMEOUT);
    lk_client_stats(client, &after);
    assert_true(after.commands - before.commands >= 2); /* MOVED, then the new node */
    lk_client_stats(client, &before);
    assert_int_equal(set_acquire(client, KEY, 0, &other), LK_TIMEOUT);
    lk_client_stats(client, &after);
    assert_int_equal(after.commands - before.commands, 1); /* the new node is known */
    assert_int_equal(lk_release(&hold), LK_OK);
    uint64_t fence = hold.fence;
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
    assert_true(hold.fence > fence); /* the counter has moved, too */
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

/* The lock has moved to the new node, but the slot has not. */
TEST_THAT(lock_is_found_by_ask_while_its_slot_moves)
{
    int slot = lk_redis_slot(KEY), from = master_of(slot), to = (from + 1) % 3;
    lk_client *client = set_patient_client("redis-token", cluster.url, NULL);
    lk_hold hold, other;
    assert_int_equal(set_acquire(client, KEY, 0, &hold), LK_OK);
    set_slot(to, slot, "IMPORTING", from);
    set_slot(from, slot, "MIGRATING", to);
    assert_int_equal(lk_extend(&hold, 20000), LK_OK); /* on the old node */
    migrate(from, to, KEY);
    migrate(from, to, "{" KEY "}:fence");
    assert_int_equal(lk_extend(&hold, 30000), LK_OK); /* on the new node */
    lk_stats before, after;
    lk_client_stats(client, &before);
    assert_int_equal(lk_extend(&hold, 30000), LK_OK);
    lk_client_stats(client, &after);
    /* old node, ASKING, new node: ASK does not change the map */
    assert_int_equal(after.commands - before.commands, 3);
    assert_int_equal(set_acquire(client, KEY, 0, &other), LK_TIMEOUT);
    assert_int_equal(redis_do(cluster.master[from], "CLUSTER COUNTKEYSINSLOT %d", slot), 0);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(redis_do(cluster.master[to], "CLUSTER COUNTKEYSINSLOT %d", slot), 1);
    lk_close(client);
    settle_slot(from, to, slot);
}

/* Neither node can create a lock of several keys (TRYAGAIN). A lock of one key can be created. */
TEST_THAT(new_lock_in_a_moving_slot_is_unavailable_or_there)
{
    int slot = lk_redis_slot(KEY), from = master_of(slot), to = (from + 1) % 3;
    lk_client *fenced = set_patient_client("redis-token", cluster.url, NULL);
    lk_client *plain = set_patient_client("redis-set", cluster.url, NULL);
    lk_hold hold;
    set_slot(to, slot, "IMPORTING", from);
    set_slot(from, slot, "MIGRATING", to);
    assert_int_equal(set_acquire(fenced, KEY, 0, &hold), LK_UNAVAILABLE);
    assert_int_equal(set_acquire(plain, KEY, 0, &hold), LK_OK);
    assert_int_equal(redis_do(cluster.master[to], "CLUSTER COUNTKEYSINSLOT %d", slot), 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    settle_slot(from, to, slot);
    assert_int_equal(set_acquire(fenced, KEY, 0, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(plain);
    lk_close(fenced);
}

/* A new cluster for each test: after the moves, nodes may still disagree about slots. */
