/*
 * A Lua script that runs in Redis as one atomic step: sent by its SHA-1 (EVALSHA), in full (EVAL)
 * when the server does not know it, as after a restart. The hash comes from SCRIPT LOAD, asked
 * once per client.
 * Threading: a script may be run by all threads at once.
 */
#ifndef LOCKKIT_REDIS_SCRIPT_H
#define LOCKKIT_REDIS_SCRIPT_H

#include "redis_command.h"

enum {
    LK_REDIS_SHA_LENGTH = 40,
    LK_REDIS_SCRIPT_HEAD = 3 /* words of the command before the keys and arguments */
};

typedef struct lk_redis_script {
    const char *body; /* static */
    _Atomic int state;
    char sha[LK_REDIS_SHA_LENGTH + 1];
} lk_redis_script;

void lk_redis_script_init(lk_redis_script *script, const char *body);

/*
 * Runs it with n words: n_keys keys, then the arguments; flags: of redis_mux.h. The reply must be
 * of type (REDIS_REPLY_*). Returns as lk_redis_expect().
 */
lk_status lk_redis_script_run(lk_redis *redis, int flags, lk_redis_script *script,
                              lk_redis_reply *reply, int type, int n_keys, int n,
                              const char *const *words);
/* The same for a script that may grant the lock: see lk_redis_run_try(). */
lk_status lk_redis_script_try(lk_redis *redis, lk_attempt *attempt, lk_redis_script *script,
                              lk_redis_reply *reply, int type, int n_keys, int n,
                              const char *const *words);
/* Several runs of it at once, each query with its attempt or none, at least one: see
 * lk_redis_run_each(). words[LK_REDIS_SCRIPT_HEAD] and those behind it are the keys and arguments;
 * those before it, and flags, are filled in here. Each status becomes what lk_redis_script_try()
 * would return. */
void lk_redis_script_each(lk_redis *redis, lk_redis_script *script, int type, int n_keys,
                          lk_redis_query *queries, size_t n);
#define lk_redis_eval_try(redis, attempt, script, reply, type, n_keys, ...)                        \
    lk_redis_script_try((redis), (attempt), (script), (reply), (type), (n_keys),                   \
                        LK_REDIS_WORDS(__VA_ARGS__))
#define lk_redis_eval(redis, script, reply, type, n_keys, ...)                                     \
    lk_redis_script_run((redis), 0, (script), (reply), (type), (n_keys),                           \
                        LK_REDIS_WORDS(__VA_ARGS__))
/* A renewal: by the one thread that renews every other hold, too. */
#define lk_redis_eval_renew(redis, script, reply, n_keys, ...)                                     \
    lk_redis_script_run((redis), LK_REDIS_SKIP_IF_HUNG, (script), (reply), REDIS_REPLY_INTEGER,    \
                        (n_keys), LK_REDIS_WORDS(__VA_ARGS__))

#endif
