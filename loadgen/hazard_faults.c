#include "hazard_faults.h"
#include "sandbox_process.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { PATIENCE_S = 2 };

/* -- asking the lock server -------------------------------------------------------------------- */

static int fail(struct hazard_run *run, const char *what)
{
    snprintf(run->message, LAB_MESSAGE_MAX, "%s: %s", run->lock, what);
    return -1;
}

static bool is_gone(void *arg)
{
    struct hazard_run *run = arg;
    return world_is_held(run->world, run->one->guard, run->lock) == 0;
}

static bool is_there(void *arg)
{
    struct hazard_run *run = arg;
    return world_is_held(run->world, run->one->guard, run->lock) == 1;
}

/* The lease that was running when the lock was seen to be held is over. */
static bool is_outlived(void *arg)
{
    const struct hazard_run *run = arg;
    return is_gone(arg) || run_now_us() - run->lease_from_us > run->with.lease_ms * 1500;
}

int fault_outlive(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    if (run_until(run, is_outlived, run) != 0)
        return fail(run, "its lease does not end");
    if (is_gone(run)) {
        run_note(run, "locks", "key gone");
        return 0;
    }
    /* Nobody else was let in meanwhile: it is the same holder's, whose lease was renewed. */
    run_note(run, "locks", "key still there");
    return is_there(run) ? 0 : fail(run, "neither there nor gone");
}

int fault_gone(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    if (run_until(run, is_gone, run) != 0)
        return fail(run, "the key does not go");
    run_note(run, "locks", "key gone");
    return 0;
}

int fault_still_there(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    run_note(run, "locks", "key still there");
    return is_there(run) ? 0 : fail(run, "the key is gone");
}

/* One command to the run's Redis; *ret (may be NULL) is its integer. False: no such answer. */
static bool tell(const struct hazard_run *run, long long *ret, const char *command, const char *key)
{
    redisContext *context = redisConnectWithTimeout("127.0.0.1", run->world->locks->port,
                                                    (struct timeval){.tv_sec = PATIENCE_S});
    bool good = context != NULL && context->err == 0;
    redisReply *reply = good ? redisCommand(context, command, key) : NULL;
    good = reply != NULL && (ret == NULL || reply->type == REDIS_REPLY_INTEGER);
    if (good && ret != NULL)
        *ret = reply->integer;
    freeReplyObject(reply);
    if (context != NULL)
        redisFree(context);
    return good;
}

int fault_delete(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    long long n;
    run_note(run, "locks", "key deleted by somebody");
    return tell(run, &n, "DEL %s", run->lock) && n == 1 ? 0 : fail(run, "nothing to delete");
}

/* The limit is lower than what is in use, so the server evicts what its policy allows at once. */
int fault_evict(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    bool told = tell(run, NULL, "CONFIG SET maxmemory 1", "") &&
                tell(run, NULL, "SET pressure 1", "") &&
                tell(run, NULL, "CONFIG SET maxmemory 0", "");
    run_note(run, "locks", is_gone(run) ? "key evicted" : "key still there");
    return told ? 0 : fail(run, "its server cannot be configured");
}

static int kill_and_start(struct sandbox_server *server)
{
    return sandbox_signal(server, SIGKILL) != -1 && sandbox_restart(server) == 0 ? 0 : -1;
}

int fault_reboot(struct hazard_run *run, const struct hazard_step *step)
{
    struct sandbox_server *server =
        step->what != NULL ? run->world->nodes[step->what[0] - '1'] : run->world->locks;
    run_note(run, "locks", "%s%s killed and started again", step->what != NULL ? "node " : "server",
             step->what != NULL ? step->what : "");
    if (kill_and_start(server) != 0)
        return fail(run, "its server could not be restarted");
    run_note(run, "locks", is_gone(run) ? "key gone" : "key still there");
    return 0;
}

int fault_down(struct hazard_run *run, const struct hazard_step *step)
{
    run_note(run, "locks", "nodes %s killed", step->what);
    for (const char *node = step->what; *node != '\0'; node++)
        if (sandbox_signal(run->world->nodes[*node - '1'], SIGKILL) == -1)
            return fail(run, "a node could not be killed");
    return 0;
}

int fault_up(struct hazard_run *run, const struct hazard_step *step)
{
    run_note(run, "locks", "nodes %s start empty", step->what);
    for (const char *node = step->what; *node != '\0'; node++)
        if (sandbox_restart(run->world->nodes[*node - '1']) != 0)
            return fail(run, "a node could not be started");
    return 0;
}

struct leap {
    const struct hazard_run *run;
    struct sandbox_server *node;
};

static bool has_expired(void *arg)
{
    const struct leap *leap = arg;
    char question[LAB_KEY_MAX + 16];
    snprintf(question, sizeof question, "EXISTS %s", leap->run->lock);
    redisReply *reply = sandbox_redis_ask(leap->node, question);
    bool gone = reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
    freeReplyObject(reply);
    return gone;
}

int fault_leap(struct hazard_run *run, const struct hazard_step *step)
{
    struct leap leap = {run, run->world->nodes[step->what[0] - '1']};
    if (has_expired(&leap))
        return fail(run, "the node does not have it");
    if (sandbox_set_clock(leap.node, 2000 * run->with.lease_ms) != 0 ||
        run_until(run, has_expired, &leap) != 0)
        return fail(run, "the node's clock did not leap");
    run_note(run, "locks", "clock of node %s leaps", step->what);
    return 0;
}

static bool has_another_leader(void *arg)
{
    const struct sandbox_zookeeper *set = arg;
    return sandbox_zookeeper_leader(set) >= 0; /* the dead one is not asked */
}

int fault_depose(struct hazard_run *run, const struct hazard_step *step)
{
    struct sandbox_zookeeper *set = &run->world->ensemble;
    int leader = sandbox_zookeeper_leader(set);
    (void)step;
    if (leader < 0 || sandbox_signal(set->server[leader], SIGKILL) == -1)
        return fail(run, "there is no leader to kill");
    run_note(run, "locks", "leader killed");
    if (run_until(run, has_another_leader, set) != 0)
        return fail(run, "no other leader was elected");
    run_note(run, "locks", "another one elected");
    return 0;
}

/* -- on the way ---------------------------------------------------------------------------------
 */

/* The nth of the ways from this actor's instance to the servers that a step names ("45": redlock's
 * nodes 4 and 5; NULL: the one server). NULL: past the last. */
static struct proxy *nth_proxy(struct hazard_run *run, const struct hazard_step *step, size_t n)
{
    const char *which = step->what != NULL ? step->what : "1";
    struct world_instance *instance = world_instance_of(run->world, &run->with, step->who);
    return n < strlen(which) ? instance->links[which[n] - '1'].proxy : NULL;
}

static int count_lost(struct hazard_run *run, const struct hazard_step *step)
{
    struct proxy *proxy;
    int lost = 0;
    for (size_t i = 0; (proxy = nth_proxy(run, step, i)) != NULL; i++)
        lost += proxy_lost(proxy);
    return lost;
}

int fault_lose(struct hazard_run *run, const struct hazard_step *step)
{
    struct proxy *proxy;
    run->lost_wanted = count_lost(run, step);
    for (size_t i = 0; (proxy = nth_proxy(run, step, i)) != NULL; i++) {
        proxy_lose_answer(proxy, run->lock, 1, PROXY_CUT);
        run->lost_wanted++;
    }
    return 0;
}

struct loss {
    struct hazard_run *run;
    const struct hazard_step *step;
};

static bool was_lost(void *arg)
{
    const struct loss *loss = arg;
    return count_lost(loss->run, loss->step) >= loss->run->lost_wanted;
}

int fault_lost(struct hazard_run *run, const struct hazard_step *step)
{
    struct loss loss = {run, step};
    if (run_until(run, was_lost, &loss) != 0)
        return fail(run, "no answer was lost");
    run_note(run, "locks", "its answer is lost%s%s", step->what != NULL ? ", nodes " : "",
             step->what != NULL ? step->what : "");
    return 0;
}

int fault_cut(struct hazard_run *run, const struct hazard_step *step)
{
    proxy_cut(nth_proxy(run, step, 0));
    return 0;
}
