#include "hazard_faults.h"
#include "sandbox_process.h"
#include "steady.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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

/* The lease that ran when the lock was seen to be held is over. Without a watchdog the key must be
 * gone. With one, the time since then is one and a half leases: the holder was renewed. */
static bool is_outlived(void *arg)
{
    const struct hazard_run *run = arg;
    return is_gone(arg) || (run->with.watchdog == ON &&
                            steady_us() - run->lease_from_us > run->with.lease_ms * 1500);
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
    /* No other request has asked meanwhile, so the same holder has it: its lease was renewed. */
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

/* The server answers, whatever it says. One that has just started may not answer yet. */
static bool is_told(void *arg)
{
    return is_there(arg) || is_gone(arg);
}

/* Tests once whether the key is as the step says, "gone" or "stays". Later its lease would end. */
static int expect_key(struct hazard_run *run, const struct hazard_step *step)
{
    bool stays = strcmp(step->what, "stays") == 0;
    if (run_until(run, is_told, run) != 0)
        return fail(run, "neither there nor gone");
    bool there = is_there(run);
    run_note(run, "locks", there ? "key still there" : "key gone");
    return there == stays ? 0 : fail(run, there ? "the key is still there" : "the key is gone");
}

/* Does the run's Redis answer so? */
static bool says(const struct hazard_run *run, const char *command, const char *wanted)
{
    redisReply *reply = sandbox_redis_ask(run->world->locks, command);
    bool said = reply != NULL && reply->str != NULL && /* integers have no text */
                strncmp(reply->str, wanted, strlen(wanted)) == 0;
    freeReplyObject(reply);
    return said;
}

int fault_delete(struct hazard_run *run, const struct hazard_step *step)
{
    char command[LAB_KEY_MAX + 8];
    (void)step;
    run_note(run, "locks", "key deleted by somebody");
    snprintf(command, sizeof command, "DEL %s", run->lock);
    redisReply *reply = sandbox_redis_ask(run->world->locks, command);
    bool deleted = reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    freeReplyObject(reply);
    return deleted ? 0 : fail(run, "nothing to delete");
}

/* The memory limit is set below what is in use. The server evicts what its policy allows. That is
 * not enough, so it answers a write with OOM. */
int fault_evict(struct hazard_run *run, const struct hazard_step *step)
{
    bool short_of_memory =
        says(run, "CONFIG SET maxmemory 1", "OK") && says(run, "SET pressure 1", "OOM");
    run_note(run, "locks", "out of memory");
    if (!says(run, "CONFIG SET maxmemory 0", "OK") || !short_of_memory)
        return fail(run, "its server does not run out of memory");
    return expect_key(run, step);
}

int fault_reboot(struct hazard_run *run, const struct hazard_step *step)
{
    struct sandbox_server *server = run->world->locks;
    run_note(run, "locks", "server killed and started again");
    if (sandbox_signal(server, SIGKILL) == -1 || sandbox_restart(server) != 0)
        return fail(run, "its server could not be restarted");
    return expect_key(run, step);
}

int fault_down(struct hazard_run *run, const struct hazard_step *step)
{
    char list[RUN_NODES_MAX];
    run_node_list(step->what, list);
    run_note(run, "locks", "nodes %s killed", list);
    for (const char *node = step->what; *node != '\0'; node++)
        if (sandbox_signal(run->world->nodes[*node - '1'], SIGKILL) == -1)
            return fail(run, "a node could not be killed");
    return 0;
}

struct node {
    const struct hazard_run *run;
    struct sandbox_server *server;
};

static bool node_lacks_it(void *arg)
{
    const struct node *node = arg;
    char question[LAB_KEY_MAX + 16];
    snprintf(question, sizeof question, "EXISTS %s", node->run->lock);
    redisReply *reply = sandbox_redis_ask(node->server, question);
    bool gone = reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
    freeReplyObject(reply);
    return gone;
}

int fault_up(struct hazard_run *run, const struct hazard_step *step)
{
    char list[RUN_NODES_MAX];
    run_node_list(step->what, list);
    run_note(run, "locks", "nodes %s start empty", list);
    for (const char *which = step->what; *which != '\0'; which++) {
        struct node node = {run, run->world->nodes[*which - '1']};
        if (sandbox_restart(node.server) != 0 || run_until(run, node_lacks_it, &node) != 0)
            return fail(run, "a node could not be started empty");
    }
    return 0;
}

int fault_leap(struct hazard_run *run, const struct hazard_step *step)
{
    struct node node = {run, run->world->nodes[step->what[0] - '1']};
    if (node_lacks_it(&node))
        return fail(run, "the node does not have it");
    if (sandbox_set_clock(node.server, 2000 * run->with.lease_ms) != 0 ||
        run_until(run, node_lacks_it, &node) != 0)
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

/* -- on the way ------------------------------------------------------------------------------- */

/* The proxy between this actor's instance and the nth of the lock servers that the step names
 * ("45": redlock's nodes 4 and 5; NULL: the one server). NULL: past the last. */
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

int fault_lose_asking(struct hazard_run *run, const struct hazard_step *step)
{
    run->lost_wanted = count_lost(run, step) + 1;
    proxy_lose_request(nth_proxy(run, step, 0), run->lock, 1);
    return 0;
}

/* The text is the last argument of redis-fair's release, "1": the hold was never granted, so its
 * token leaves the queue. */
int fault_lose_leave(struct hazard_run *run, const struct hazard_step *step)
{
    run->lost_wanted = count_lost(run, step) + 1;
    proxy_lose_request(nth_proxy(run, step, 0), "\r\n$1\r\n1\r\n", 1);
    return 0;
}

/* A client has subscribed a channel of the lock. */
static bool is_heard(void *arg)
{
    const struct hazard_run *run = arg;
    char question[LAB_KEY_MAX + 32];
    snprintf(question, sizeof question, "PUBSUB CHANNELS *{%s}", run->lock);
    redisReply *reply = sandbox_redis_ask(run->world->locks, question);
    bool heard = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;
    freeReplyObject(reply);
    return heard;
}

int fault_silence(struct hazard_run *run, const struct hazard_step *step)
{
    if (run_until(run, is_heard, run) != 0)
        return fail(run, "nobody listens for it");
    struct proxy *proxy = nth_proxy(run, step, 0);
    run->lost_wanted = proxy_muted(proxy) + 1;
    /* Only connections that are marked since their SUBSCRIBE (hazard_world.c): no client sends this
     * text, so no other is marked. */
    proxy_mute(proxy, "no such command", true);
    run_note(run, "locks", "%s's subscription goes silent", who_name(step->who));
    return 0;
}

static bool was_muted(void *arg)
{
    const struct hazard_run *run = arg;
    int muted = 0;
    for (int i = 0; i < run->with.instances; i++)
        if (run->world->instances[i].links[0].proxy != NULL)
            muted += proxy_muted(run->world->instances[i].links[0].proxy);
    return muted >= run->lost_wanted;
}

int fault_unheard(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    if (run_until(run, was_muted, run) != 0)
        return fail(run, "no message was lost");
    run_note(run, "locks", "the message does not arrive");
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

int fault_asking_lost(struct hazard_run *run, const struct hazard_step *step)
{
    struct loss loss = {run, step};
    if (run_until(run, was_lost, &loss) != 0)
        return fail(run, "no command was lost");
    run_note(run, "locks", "%s's command is lost", who_name(step->who));
    return 0;
}

int fault_lost(struct hazard_run *run, const struct hazard_step *step)
{
    char list[RUN_NODES_MAX] = "";
    struct loss loss = {run, step};
    if (run_until(run, was_lost, &loss) != 0)
        return fail(run, "no answer was lost");
    if (step->what != NULL)
        run_node_list(step->what, list);
    run_note(run, "locks", "%s's answer is lost%s%s", who_name(step->who),
             list[0] != '\0' ? ", nodes " : "", list);
    return 0;
}

int fault_cut(struct hazard_run *run, const struct hazard_step *step)
{
    proxy_cut(nth_proxy(run, step, 0));
    return 0;
}
