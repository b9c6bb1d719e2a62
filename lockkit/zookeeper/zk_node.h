/*
 * The names of lock nodes, and what a hold stores about its node.
 *
 *     /lockkit/GUARD/KEY                           persistent roots; KEY: ephemeral, or a container
 *     /lockkit/GUARD/KEY/_c_TOKEN-lock-0000000042  a contender; its data is the token too
 *
 * '/' and '%' of keys and tokens are written %2F and %25, the keys "." and ".." %2E and %2E%2E.
 * Only the sequence numbers decide the order. So our contenders wait for those of Curator
 * ("_c_GUID-lock-0000000042") and kazoo ("GUID__lock__0000000042") under the same parent. Curator
 * waits for ours in turn. kazoo does so only if it is given our names (extra_lock_patterns): it
 * counts numbers that follow "__lock__", Curator compares what follows "lock-", and no name has its
 * number right behind both.
 *
 * Each node that is created has a new token. After a create without an answer the client finds its
 * node by the token, and a late removal removes that node only.
 */
#ifndef LOCKKIT_ZK_NODE_H
#define LOCKKIT_ZK_NODE_H

#include "zk_session.h"

/* hold->private_.slot: the epoch of the session, and the sequence number of the node. 0: no node.
 */
enum { LK_ZK_NO_SEQUENCE = -1 }; /* perhaps created: the answer was lost */

static inline uint32_t lk_zk_epoch_of(const lk_hold *hold)
{
    return (uint32_t)(__atomic_load_n(&hold->private_.slot, __ATOMIC_ACQUIRE) >> 32);
}

static inline int32_t lk_zk_sequence_of(const lk_hold *hold)
{
    return (int32_t)(uint32_t)__atomic_load_n(&hold->private_.slot, __ATOMIC_ACQUIRE);
}

static inline void lk_zk_set_node(lk_hold *hold, uint32_t epoch, int32_t sequence)
{
    __atomic_store_n(&hold->private_.slot, (uint64_t)epoch << 32 | (uint32_t)sequence,
                     __ATOMIC_RELEASE);
}

static inline void lk_zk_forget_node(lk_hold *hold)
{
    lk_zk_set_node(hold, 0, 0);
}

/* Gives hold->token a new suffix, "#" and 16 hex digits. */
void lk_zk_make_token_unique(lk_zk *zk, lk_hold *hold);

/* "ROOT/KEY", escaped. */
void lk_zk_key_path(char path[LK_ZK_PATH_MAX], const char *root, const char *key);
/* "PARENT/NAME". False: another client's name is too long. */
bool lk_zk_child_path(char path[LK_ZK_PATH_MAX], const char *parent, const char *name);
/* The key of a node's name. False: the name is no key of lockkit. */
bool lk_zk_key_of(const char *name, char key[LK_KEY_MAX + 1]);
/* "_c_TOKEN-", escaped: how the name of this hold's node begins. */
void lk_zk_name_prefix(char prefix[LK_ZK_PATH_MAX], const lk_hold *hold);

/*
 * ZooKeeper appends the parent's 32-bit count of changes in at least ten places, and goes on below
 * zero after 2147483647: a '-' before ten digits is a sign only if the first of them is not 0 and
 * another separator stands before that.
 * False: the name ends otherwise.
 */
bool lk_zk_parse_sequence(const char *name, int32_t *ret);
/* a was counted before b, also over the end of the range. */
static inline bool lk_zk_is_before(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b) < 0;
}

/* lk_zk_create(), which makes the parents if there are none: persistent ones, the last a container,
 * which ZooKeeper removes some time after its last child has gone (from version 3.5.3 on). */
lk_status lk_zk_create_in(const lk_zk_turn *turn, const char *path, const char *data, int mode,
                          lk_zk_answer *ret);

/* For a refused attempt: makes attempt->waiter, a lk_zk_waiter for the node at path, without a
 * watch. False: no memory. */
bool lk_zk_wait_for(lk_zk *zk, lk_attempt *attempt, const char *path);
/* Sets the watch; the try after it finds out if the node went just before. */
lk_status lk_zk_watch(const lk_zk_turn *turn, lk_attempt *attempt);
/* Then blocks until it fires, at most until until_us. */
void lk_zk_await(lk_zk *zk, lk_attempt *attempt, int64_t until_us);
/* Ends the wait, if there is one. */
void lk_zk_forget_wait(lk_zk *zk, lk_attempt *attempt);

/* For calls without a hold: their session ended, so nothing was done. */
static inline lk_status lk_zk_outside_status(lk_status status)
{
    return status == LK_LOST ? LK_UNAVAILABLE : status;
}

/* lk_provider.list() of the keys below root. */
lk_status lk_zk_list(lk_zk *zk, const char *root,
                     lk_status (*inspect)(void *self, const char *key, lk_lock_info *ret),
                     const char *prefix, int (*each)(void *arg, const lk_lock_info *info),
                     void *arg);

/* Members of all ZooKeeper guards; self is a lk_zk. */
void lk_zk_provider_close(void *self);
bool lk_zk_provider_alive(void *self, const lk_hold *hold);
lk_status lk_zk_provider_ping(void *self);

#endif
