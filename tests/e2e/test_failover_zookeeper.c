/* The leader of three ZooKeepers is killed during a running sale: sessions and locks survive. */
#include "failover.h"
#include "tests.h"

#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

static struct sandbox_zookeeper set;

static bool start(struct sandbox *sandbox, const char **ret_url)
{
    *ret_url = set.url;
    return sandbox_zookeeper(sandbox, SANDBOX_ZOOKEEPERS_MAX, &set) == 0;
}

static void kill_leader(void)
{
    int leader = sandbox_zookeeper_leader(&set);
    assert_in_range(leader, 0, SANDBOX_ZOOKEEPERS_MAX - 1);
    assert_true(WIFSIGNALED(sandbox_signal(set.server[leader], SIGKILL)));
}

static bool is_replaced(void *unused)
{
    (void)unused;
    return sandbox_zookeeper_leader(&set) >= 0;
}

/* A server that gets a new leader may accept a connection and never answer it. The client library
 * gives it up after two thirds of the session: long before a guard has to sell again. */
enum { SESSION_MS = 4000 };

int main(void)
{
    static const char *const guards[] = {"zk-sequential", "zk-ephemeral", "zk-readwrite", NULL};
    return failover_main(&(struct failover){.flag = "--zookeeper",
                                            .guards = guards,
                                            .lease_ms = SESSION_MS,
                                            .start = start,
                                            .kill = kill_leader,
                                            .is_replaced = is_replaced});
}
