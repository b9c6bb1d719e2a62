/*
 * Releases whose answer nobody waits for: lk_options.release_unconfirmed.
 *
 * The command is posted on the shared connection (redis_pipe.h) and its answer read by whoever
 * reads next. A thread reads it when nobody does for a while, and repeats, waiting for the answer,
 * what failed. More than can be owed at once are not taken on.
 *
 * Threading: every function but open and close may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_DEBT_H
#define LOCKKIT_REDIS_DEBT_H

#include "redis_script.h"

enum {
    LK_REDIS_OWED_MAX = 128, /* releases sent and not settled */
    LK_REDIS_COLLECT_MS = 10 /* so long, and once more, an answer may stand unread */
};

typedef struct lk_redis_debts lk_redis_debts;

/* Borrows both; can_post() is true of redis. NULL: no memory, or no thread. */
lk_redis_debts *lk_redis_debts_open(const lk_context *context, lk_redis *redis);
/* Settles what is owed; where that needs more than one command timeout, leaves the rest to the
 * leases. No release may be under way. NULL is allowed. */
void lk_redis_debts_close(lk_redis_debts *debts);

/* Posts the script, which answers 1 (freed) or 0 (was not ours), with n words: n_keys keys, then
 * the arguments. hold is copied. False: nothing was done. */
bool lk_redis_debts_post(lk_redis_debts *debts, const lk_hold *hold, lk_redis_script *script,
                         int n_keys, int n, const char *const *words);
#define lk_redis_post_eval(debts, hold, script, n_keys, ...)                                       \
    lk_redis_debts_post((debts), (hold), (script), (n_keys), LK_REDIS_WORDS(__VA_ARGS__))

#endif
