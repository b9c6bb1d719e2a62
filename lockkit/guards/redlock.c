/*
 * redlock: a majority of N independent Redis nodes.
 *
 * Algorithm: SET key token NX PX lease on all nodes. The lock is held when N/2+1 of the configured
 *            nodes have said yes, and the lease is not over: counted from before the first node
 *            was asked, less the drift of the nodes' clocks (1/100 of it and 2 ms). Otherwise, and
 *            on release: compare-and-delete on all nodes, whatever they answered. Each try has a
 *            token of its own: a delete of an earlier try that arrives late frees nothing. A
 * renewal extends the lease where the token still stands, by majority. A node that lost the key
 *            does not get it back before the next grant: it may have served another holder in
 *            between.
 * Guarantee: one holder at a time while no majority of nodes loses its keys or its time; works
 *            while a majority answers. An even N needs one node more: 4 nodes survive 1 loss, as 3
 *            do.
 * Weakness:  no fence: a late holder writes unseen. A node that restarts empty, or whose clock
 *            leaps, may vote for a second holder while the first one holds. A vote that could not
 *            be taken back (its client died, its node could not be reached) stands for a lease;
 *            such votes of several clients, each of a minority, add up and refuse everybody. A
 *            slow node slows every grant, up to the node timeout (redlock_nodes.h).
 * Source:    https://redis.io/docs/latest/develop/use/patterns/distributed-locks/; M. Kleppmann,
 *            "How to do distributed locking", 2016; S. Sanfilippo, "Is Redlock safe?", 2016
 */
#include "providers.h"
#include "redis_guard.h"
#include "redlock_ballot.h"

#include <stdlib.h>
#include <string.h>

enum { DRIFT_PARTS = 100, DRIFT_MS = 2 };

/* In hold->private_.slot: the try before has left its token on a node that did not answer. */
enum { LEFT_BEHIND = 1 };

struct redlock {
    const lk_context *context;
    lk_redlock_nodes *nodes;
    _Atomic uint64_t n_tokens;
};

static const char look_body[] = "return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}";

/* LK_OK: a majority holds it. LK_LOST: no majority can. Else it is not known. */
static lk_status held(const lk_redlock_ballot *ballot)
{
    if (ballot->yes >= ballot->quorum)
        return LK_OK;
    return lk_redlock_surely_lost(ballot) ? LK_LOST : lk_redlock_undecided(ballot);
}

/* LK_OK: a majority has answered, so it is free. LK_LOST: it was not there. Else too few answered.
 */
static lk_status freed(const lk_redlock_ballot *ballot)
{
    if (lk_redlock_surely_lost(ballot))
        return LK_LOST;
    return ballot->yes + ballot->no >= ballot->quorum ? LK_OK : lk_redlock_undecided(ballot);
}

/* -- one attempt ------------------------------------------------------------------------------ */

static bool may_stand(enum lk_redlock_vote vote)
{
    return vote == LK_REDLOCK_YES || vote == LK_REDLOCK_NO_ANSWER;
}

static lk_status ask_release(const struct redlock *self, lk_redlock_ballot *ballot, const char *key,
                             const char *token)
{
    return lk_redlock_ask(self->nodes, ballot, token,
                          LK_REDIS_WORDS("EVAL", lk_redis_delete_if_mine, "1", key, token));
}

/* Undoes a try without a majority. Returns the number of nodes on which its token may still stand.
 */
static int take_back(const struct redlock *self, const lk_redlock_ballot *tried,
                     const lk_hold *hold)
{
    lk_redlock_ballot ballot = {.n = 0};
    int left = tried->yes + tried->no_answer;
    if (left == 0 || ask_release(self, &ballot, hold->key, hold->token) != LK_OK)
        return left;
    for (int i = 0; i < ballot.n; i++)
        left -= may_stand(tried->vote[i]) &&
                (ballot.vote[i] == LK_REDLOCK_YES || ballot.vote[i] == LK_REDLOCK_NO);
    return left;
}

static lk_status try_acquire(void *opaque, lk_attempt *attempt)
{
    struct redlock *self = opaque;
    lk_hold *hold = attempt->hold;
    lk_redlock_ballot ballot = {.call.needs_quorum = true};
    char lease[LK_REDIS_NUMBER_MAX];
    lk_redis_encoded undo;
    if (hold->private_.slot & LEFT_BEHIND) {
        lk_redlock_ballot late = {.n = 0};
        ask_release(self, &late, hold->key, hold->token);
        hold->private_.slot &= ~(uint64_t)LEFT_BEHIND;
    }
    lk_make_token_anew(&self->n_tokens, hold);
    lk_redis_number(lease, hold->lease_ms);
    if (!lk_redis_encode(
            &undo, LK_REDIS_WORDS("EVAL", lk_redis_delete_if_mine, "1", hold->key, hold->token)))
        return LK_NO_MEMORY;
    ballot.call.undo = &undo;
    lk_status status =
        lk_redlock_ask(self->nodes, &ballot, hold->token,
                       LK_REDIS_WORDS("SET", hold->key, hold->token, "NX", "PX", lease));
    lk_redis_encoded_free(&undo);
    self->context->env->point(self->context->env->ctx, LK_POINT_VOTED, hold->key);
    if (status != LK_OK || ballot.yes >= ballot.quorum)
        return status;
    int left = take_back(self, &ballot, hold);
    hold->private_.slot |= left > 0 ? LEFT_BEHIND : 0;
    /* A token on a minority refuses nobody. */
    if (ballot.yes + ballot.no >= ballot.quorum && left <= ballot.n - ballot.quorum)
        return LK_BUSY;
    if (ballot.nonsense)
        return LK_PROTOCOL;
    return left == 0 ? LK_UNAVAILABLE : LK_UNKNOWN;
}

static int64_t valid_ms(int64_t lease_ms)
{
    return lease_ms - lease_ms / DRIFT_PARTS - DRIFT_MS;
}

/* -- a hold ----------------------------------------------------------------------------------- */

static lk_status release(void *opaque, lk_hold *hold)
{
    const struct redlock *self = opaque;
    lk_redlock_ballot ballot = {.n = 0};
    lk_status status = ask_release(self, &ballot, hold->key, hold->token);
    return status == LK_OK ? freed(&ballot) : status;
}

static lk_status renew(void *opaque, lk_hold *hold, int64_t lease_ms)
{
    const struct redlock *self = opaque;
    lk_redlock_ballot ballot = {.n = 0};
    char lease[LK_REDIS_NUMBER_MAX];
    lk_redis_number(lease, lease_ms);
    lk_status status = lk_redlock_ask(
        self->nodes, &ballot, hold->token,
        LK_REDIS_WORDS("EVAL", lk_redis_expire_if_mine, "1", hold->key, hold->token, lease));
    if (status == LK_OK)
        status = held(&ballot);
    if (status == LK_LOST)
        release(opaque, hold); /* remove what stands on a minority */
    return status;
}

static lk_status confirm(void *opaque, const lk_hold *hold)
{
    const struct redlock *self = opaque;
    lk_redlock_ballot ballot = {.n = 0};
    lk_status status =
        lk_redlock_ask(self->nodes, &ballot, hold->token, LK_REDIS_WORDS("GET", hold->key));
    return status == LK_OK ? held(&ballot) : status;
}

/* -- from outside ----------------------------------------------------------------------------- */

static int by_length(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left < right) - (left > right);
}

/* The number of nodes that have this token. *ret_left_ms: how long a majority will have it. */
static int standing(const lk_redlock_ballot *ballot, const char *token, int64_t *ret_left_ms)
{
    int64_t left_ms[LK_REDLOCK_NODES_MAX];
    int n = 0;
    for (int i = 0; i < ballot->n; i++) {
        const lk_redis_reply *reply = &ballot->call.reply[i];
        if (ballot->vote[i] == LK_REDLOCK_YES && reply->item[0].type == REDIS_REPLY_STRING &&
            strcmp(reply->item[0].text, token) == 0)
            left_ms[n++] = reply->item[1].integer < 0 ? INT64_MAX : reply->item[1].integer;
    }
    if (n >= ballot->quorum) {
        qsort(left_ms, (size_t)n, sizeof *left_ms, by_length);
        *ret_left_ms = left_ms[ballot->quorum - 1];
    }
    return n;
}

/* The token that stands on a majority holds the key. Without such a token the key is free. */
static lk_status inspect(void *opaque, const char *key, lk_lock_info *ret)
{
    const struct redlock *self = opaque;
    lk_redlock_ballot ballot = {.n = 0};
    lk_status status =
        lk_redlock_ask(self->nodes, &ballot, "", LK_REDIS_WORDS("EVAL", look_body, "1", key));
    if (status != LK_OK)
        return status;
    int most = 0, silent = ballot.n - ballot.yes - ballot.no;
    for (int i = 0; i < ballot.n; i++) {
        const lk_redis_item *item = ballot.call.reply[i].item;
        if (ballot.vote[i] != LK_REDLOCK_YES || item->type != REDIS_REPLY_STRING ||
            item->length >= sizeof ret->token)
            continue;
        int n = standing(&ballot, item->text, &ret->left_ms);
        if (n >= ballot.quorum) {
            memcpy(ret->token, item->text, item->length + 1);
            ret->holders = 1;
            return LK_OK;
        }
        most = n > most ? n : most;
    }
    return most + silent >= ballot.quorum ? lk_redlock_undecided(&ballot) : LK_OK;
}

static lk_status force_release(void *opaque, const char *key)
{
    const struct redlock *self = opaque;
    lk_redlock_ballot ballot = {.n = 0};
    lk_status status = lk_redlock_ask(self->nodes, &ballot, "", LK_REDIS_WORDS("DEL", key));
    return status == LK_OK ? freed(&ballot) : status;
}

static lk_status ping(void *opaque)
{
    const struct redlock *self = opaque;
    lk_redlock_ballot ballot = {.n = 0};
    lk_status status = lk_redlock_ask(self->nodes, &ballot, "", LK_REDIS_WORDS("PING"));
    return status != LK_OK || ballot.yes >= ballot.quorum ? status : LK_UNAVAILABLE;
}

/* -- opening and closing ---------------------------------------------------------------------- */

static lk_status open_redlock(const lk_context *context, void **ret_self, lk_error *error)
{
    struct redlock *self = calloc(1, sizeof *self);
    if (self == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for redlock");
    self->context = context;
    lk_status status = lk_redlock_open(context, &self->nodes, error);
    if (status != LK_OK) {
        free(self);
        return status;
    }
    *ret_self = self;
    return LK_OK;
}

static void close_redlock(void *opaque)
{
    struct redlock *self = opaque;
    lk_redlock_close(self->nodes);
    free(self);
}

const lk_provider lk_redlock = {
    .info = {.name = "redlock",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_SERVER_CLOCK,
             .algorithm =
                 "SET key token NX PX lease on N independent nodes, held by a majority for "
                 "the lease less the time taken and the drift of clocks",
             .guarantee = "one holder at a time while no majority of nodes loses keys or time; "
                          "works while a majority answers",
             .weakness =
                 "no fence; a node that restarts empty or leaps in time may vote for a "
                 "second holder; votes of failed attempts add up and can block all for a lease; "
                 "waiters poll, in no order",
             .source = "https://redis.io/docs/latest/develop/use/patterns/distributed-locks/"},
    .open = open_redlock,
    .close = close_redlock,
    .try_acquire = try_acquire,
    .renew = renew,
    .valid_ms = valid_ms,
    .release = release,
    .ping = ping,
    .confirm = confirm,
    .inspect = inspect,
    .force_release = force_release,
};
