/* A master, its replica and the Sentinels: cut off, killed, split. */
#include "hazard_faults.h"
#include "sandbox_process.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 2000 };

static int fail(struct hazard_run *run, const char *what)
{
    snprintf(run->message, LAB_MESSAGE_MAX, "%s: %s", run->lock, what);
    return -1;
}

/* Does the server's answer to the command contain this text? */
static bool says(struct sandbox_server *server, const char *question, const char *text)
{
    redisReply *reply = sandbox_redis_ask(server, question);
    const char *said = reply == NULL         ? NULL
                       : reply->elements > 0 ? reply->element[0]->str
                                             : reply->str;
    bool found = said != NULL && strstr(said, text) != NULL;
    freeReplyObject(reply);
    return found;
}

static bool has_no_replica(void *arg)
{
    const struct hazard_run *run = arg;
    return says(run->world->failover.master, "INFO replication", "connected_slaves:0");
}

/* Gives the replica a wrong user, so that the master refuses it from then on. */
int fault_cut_replica(struct hazard_run *run, const struct hazard_step *step)
{
    struct sandbox_sentinel *set = &run->world->failover;
    (void)step;
    run_note(run, "locks", "replica cut off");
    if (!says(set->replica, "CONFIG SET masteruser nobody", "OK") ||
        !says(set->replica, "CONFIG SET masterauth x", "OK"))
        return fail(run, "the replica cannot be configured");
    freeReplyObject(sandbox_redis_ask(set->master, "CLIENT KILL TYPE replica"));
    return run_until(run, has_no_replica, run) == 0 ? 0 : fail(run, "the replica is still there");
}

int fault_need_copy(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    run_note(run, "locks", "min-replicas-to-write 1");
    if (!says(run->world->failover.master, "CONFIG SET min-replicas-to-write 1", "OK"))
        return fail(run, "the master cannot be configured");
    return 0;
}

static bool is_promoted(void *arg)
{
    const struct hazard_run *run = arg;
    return says(run->world->failover.replica, "ROLE", "master");
}

int fault_fail_over(struct hazard_run *run, const struct hazard_step *step)
{
    (void)step;
    run_note(run, "locks", "master killed");
    if (sandbox_signal(run->world->failover.master, SIGKILL) == -1 ||
        run_until(run, is_promoted, run) != 0)
        return fail(run, "the replica was not promoted");
    run_note(run, "locks", "replica promoted");
    return 0;
}

/* -- a partition ------------------------------------------------------------------------------ */

/*
 * A partition of a master from its Sentinels and its replica, without cutting a network. The master
 * requires another password of new connections, and the connections of Sentinels and replica are
 * ended. They connect again and are refused. To a Sentinel, a server that does not answer PING with
 * PONG is down.
 */

static bool tell(redisContext *master, const char *command)
{
    redisReply *reply = redisCommand(master, command);
    bool good = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return good;
}

/* Sentinels name the connection on which they ask; the one on which they listen is of another
 * type. */
static bool end_sentinels(redisContext *master)
{
    redisReply *list = redisCommand(master, "CLIENT LIST TYPE normal");
    bool good = list != NULL && list->type == REDIS_REPLY_STRING;
    char *rest = good ? list->str : NULL;
    for (char *line; good && (line = strsep(&rest, "\n")) != NULL;) {
        redisReply *reply = NULL;
        if (strncmp(line, "id=", 3) != 0 || strstr(line, " name=sentinel-") == NULL)
            continue;
        reply = redisCommand(master, "CLIENT KILL ID %lld", atoll(line + 3));
        good = reply != NULL && reply->type == REDIS_REPLY_INTEGER;
        freeReplyObject(reply);
    }
    freeReplyObject(list);
    return good && tell(master, "CLIENT KILL TYPE pubsub");
}

int fault_split(struct hazard_run *run, const struct hazard_step *step)
{
    redisContext *master = sandbox_redis_connect(run->world->failover.master, ANSWER_MS);
    (void)step;
    run_note(run, "locks", "master split from Sentinels and replica");
    bool split = master != NULL && tell(master, "CONFIG SET requirepass nobody-knows-it") &&
                 tell(master, "CLIENT KILL TYPE replica") && end_sentinels(master);
    if (master != NULL)
        redisFree(master);
    if (!split || run_until(run, is_promoted, run) != 0)
        return fail(run, split ? "the replica was not promoted" : "its master cannot be split off");
    run_note(run, "locks", "replica promoted");
    return 0;
}
