/* A master of a Redis Cluster is killed during a running sale: the one that has the item's lock. */
#include "failover.h"
#include "redis.h"
#include "redis_set.h"
#include "tests.h"

#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

static struct sandbox_cluster set;

static bool start(struct sandbox *sandbox, const char **ret_url)
{
    *ret_url = set.url;
    return sandbox_cluster(sandbox, true, &set) == 0;
}

enum { SLOTS = 16384 };

static int killed;

/* Each master has a third of the slots. */
static void kill_master(void)
{
    int64_t slot = redis_do(set.master[0], "CLUSTER KEYSLOT lock:item:redis-token");
    assert_in_range(slot, 0, SLOTS - 1);
    killed = (int)(slot * SANDBOX_CLUSTER_MASTERS / SLOTS);
    assert_true(WIFSIGNALED(sandbox_signal(set.master[killed], SIGKILL)));
}

static bool is_replaced(void *unused)
{
    (void)unused;
    return set_is_taken_over(&(struct set_takeover){.set = &set, .master = killed});
}

int main(void)
{
    static const char *const guards[] = {"redis-set",  "redis-token",     "redis-reentrant",
                                         "redis-fair", "redis-readwrite", NULL};
    return failover_main(&(struct failover){.flag = "--redis",
                                            .guards = guards,
                                            .lease_ms = 2000,
                                            .is_felt = true,
                                            .start = start,
                                            .kill = kill_master,
                                            .is_replaced = is_replaced});
}
