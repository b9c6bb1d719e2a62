#include "redis_script.h"

#include <assert.h>
#include <string.h>

enum { UNKNOWN, LOADING, KNOWN };
enum { HEAD = LK_REDIS_SCRIPT_HEAD, WORDS_MAX = LK_REDIS_WORDS_MAX - HEAD };

void lk_redis_script_init(lk_redis_script *script, const char *body)
{
    *script = (lk_redis_script){.body = body, .state = UNKNOWN};
}

/* Whoever comes first asks for the hash; the others send the text meanwhile. Asking changes no
 * lock, so its failure leaves nothing in doubt. */
static lk_status learn_sha(lk_redis *redis, lk_redis_script *script, lk_redis_reply *reply)
{
    int expected = UNKNOWN;
    if (!atomic_compare_exchange_strong(&script->state, &expected, LOADING))
        return LK_OK;
    lk_status status = lk_redis_command(redis, reply, "SCRIPT", "LOAD", script->body);
    status = lk_redis_expect(redis, reply, REDIS_REPLY_STRING, status);
    if (status == LK_OK && reply->root.length != LK_REDIS_SHA_LENGTH)
        status = LK_PROTOCOL;
    if (status == LK_OK)
        memcpy(script->sha, reply->root.text, sizeof script->sha);
    atomic_store(&script->state, status == LK_OK ? KNOWN : UNKNOWN);
    return status == LK_UNKNOWN ? LK_UNAVAILABLE : status;
}

/* attempt NULL: no try, but a command with these flags. */
static lk_status send_with(lk_redis *redis, lk_attempt *attempt, int flags, lk_redis_reply *reply,
                           int n, const char **words)
{
    return attempt != NULL ? lk_redis_run_try(redis, attempt, reply, n, words)
                           : lk_redis_run_with(redis, flags, reply, n, words);
}

/* The server does not know the script, and has done nothing. */
static bool forgotten(lk_status status, const lk_redis_reply *reply)
{
    return status == LK_OK && reply->root.type == REDIS_REPLY_ERROR &&
           strncmp(reply->root.text, "NOSCRIPT", 8) == 0;
}

/* A call of the script by its hash: the words that are sent. */
static void by_sha(const lk_redis_script *script, const char *all[HEAD + WORDS_MAX], char count[2],
                   int n_keys, int n, const char *const *words)
{
    assert(n_keys <= n && n_keys <= 9 && n <= WORDS_MAX);
    count[0] = (char)('0' + n_keys);
    count[1] = '\0';
    all[0] = "EVALSHA";
    all[1] = script->sha;
    all[2] = count;
    for (int i = 0; i < n; i++)
        all[HEAD + i] = words[i];
}

static lk_status run(lk_redis *redis, lk_attempt *attempt, int flags, lk_redis_script *script,
                     lk_redis_reply *reply, int type, int n_keys, int n, const char *const *words)
{
    if (atomic_load(&script->state) == UNKNOWN) {
        lk_status status = learn_sha(redis, script, reply);
        if (status != LK_OK)
            return status;
    }
    const char *all[HEAD + WORDS_MAX];
    char count[2];
    by_sha(script, all, count, n_keys, n, words);
    if (atomic_load(&script->state) == KNOWN) {
        lk_status status = send_with(redis, attempt, flags, reply, HEAD + n, all);
        if (!forgotten(status, reply))
            return lk_redis_expect(redis, reply, type, status);
    }
    all[0] = "EVAL";
    all[1] = script->body;
    lk_status status = send_with(redis, attempt, flags, reply, HEAD + n, all);
    return lk_redis_expect(redis, reply, type, status);
}

lk_status lk_redis_script_run(lk_redis *redis, int flags, lk_redis_script *script,
                              lk_redis_reply *reply, int type, int n_keys, int n,
                              const char *const *words)
{
    return run(redis, NULL, flags, script, reply, type, n_keys, n, words);
}

lk_status lk_redis_script_try(lk_redis *redis, lk_attempt *attempt, lk_redis_script *script,
                              lk_redis_reply *reply, int type, int n_keys, int n,
                              const char *const *words)
{
    return run(redis, attempt, 0, script, reply, type, n_keys, n, words);
}

static void run_each(lk_redis *redis, lk_redis_query *const *queries, size_t n, const char *verb,
                     const char *script)
{
    for (size_t i = 0; i < n; i++) {
        queries[i]->words[0] = verb;
        queries[i]->words[1] = script;
    }
    lk_redis_run_each(redis, queries, n);
}

void lk_redis_script_each(lk_redis *redis, lk_redis_script *script, int type, int n_keys,
                          lk_redis_query *queries, size_t n)
{
    lk_redis_query *due[LK_EACH_MAX];
    const char count[2] = {(char)('0' + n_keys), '\0'};
    size_t n_due = 0;
    lk_status status = LK_OK;
    assert(n <= LK_EACH_MAX && n_keys <= 9);
    if (atomic_load(&script->state) == UNKNOWN)
        status = learn_sha(redis, script, queries[0].reply);
    for (size_t i = 0; i < n; i++) {
        queries[i].status = status;
        queries[i].words[2] = count;
        due[i] = &queries[i];
    }
    if (status != LK_OK)
        return;
    if (atomic_load(&script->state) == KNOWN) {
        run_each(redis, due, n, "EVALSHA", script->sha);
        for (size_t i = 0; i < n; i++)
            if (forgotten(queries[i].status, queries[i].reply))
                due[n_due++] = &queries[i];
    } else {
        n_due = n;
    }
    if (n_due > 0)
        run_each(redis, due, n_due, "EVAL", script->body);
    for (size_t i = 0; i < n; i++)
        queries[i].status = lk_redis_expect(redis, queries[i].reply, type, queries[i].status);
}
