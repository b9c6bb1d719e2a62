/* The Redis master that Sentinels name is killed during a running sale. */
#include "failover.h"
#include "redis_set.h"
#include "tests.h"

#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

static struct sandbox_sentinel set;

static bool start(struct sandbox *sandbox, const char **ret_url)
{
    *ret_url = set.url;
    return sandbox_sentinel(sandbox, &set) == 0;
}

static void kill_master(void)
{
    assert_true(WIFSIGNALED(sandbox_signal(set.master, SIGKILL)));
}

static bool is_replaced(void *unused)
{
    (void)unused;
    return set_is_switched(&set) && set_is_master(set.replica);
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
