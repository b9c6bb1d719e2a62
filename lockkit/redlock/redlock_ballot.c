#include "redlock_ballot.h"

#include <string.h>

static enum lk_redlock_vote vote_of(const lk_redis_reply *reply, lk_status status,
                                    const char *token)
{
    if (status == LK_OK)
        status = lk_redis_reply_status(reply);
    if (status == LK_BUSY)
        return LK_REDLOCK_NO;
    if (status != LK_OK)
        return status == LK_UNAVAILABLE ? LK_REDLOCK_NOT_ASKED : LK_REDLOCK_NO_ANSWER;
    bool yes;
    switch (reply->root.type) {
    case REDIS_REPLY_INTEGER:
        yes = reply->root.integer != 0;
        break;
    case REDIS_REPLY_STRING:
        yes = strcmp(reply->root.text, token) == 0;
        break;
    default:
        yes = reply->root.type != REDIS_REPLY_NIL;
    }
    return yes ? LK_REDLOCK_YES : LK_REDLOCK_NO;
}

lk_status lk_redlock_ask(lk_redlock_nodes *nodes, lk_redlock_ballot *ballot, const char *token,
                         int n, const char **words)
{
    lk_redlock_call *call = &ballot->call;
    if (!lk_redis_encode(&call->command, n, words))
        return LK_NO_MEMORY;
    lk_redlock_run(nodes, call);
    lk_redis_encoded_free(&call->command);
    ballot->n = lk_redlock_n(nodes);
    ballot->quorum = lk_redlock_quorum(nodes);
    const char *why[LK_REDLOCK_NODES_MAX] = {NULL};
    bool refused = false;
    for (int i = 0; i < ballot->n; i++) {
        enum lk_redlock_vote vote = vote_of(&call->reply[i], call->status[i], token);
        ballot->vote[i] = vote;
        ballot->yes += vote == LK_REDLOCK_YES;
        ballot->no += vote == LK_REDLOCK_NO;
        if (vote == LK_REDLOCK_NO_ANSWER) {
            ballot->no_answer++;
            ballot->nonsense = ballot->nonsense || call->status[i] != LK_UNKNOWN;
        }
        if (call->status[i] == LK_OK && vote != LK_REDLOCK_YES && vote != LK_REDLOCK_NO) {
            why[i] = call->reply[i].root.text; /* an error reply */
            refused = true;
        }
    }
    if (refused && ballot->yes + ballot->no < ballot->quorum)
        lk_redlock_note(nodes, why);
    return LK_OK;
}

bool lk_redlock_surely_lost(const lk_redlock_ballot *ballot)
{
    return ballot->no > ballot->n - ballot->quorum;
}

lk_status lk_redlock_undecided(const lk_redlock_ballot *ballot)
{
    if (ballot->nonsense)
        return LK_PROTOCOL;
    return ballot->yes + ballot->no + ballot->no_answer == 0 ? LK_UNAVAILABLE : LK_UNKNOWN;
}
