/* The commands on keys, after the sources and documents of Redis 7. */
#include "sim_redis_call.h"
#include "sim_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void fail(struct sim_redis_call *call, const char *text)
{
    call->failed = true;
    sim_resp_error(call->ret, text);
}

/* -- keys ------------------------------------------------------------------------------------- */

static struct sim_redis_key *find(const struct sim_redis_call *call, const char *name)
{
    return sim_redis_find(&call->redis->data, name, call->now_ms);
}

/* NULL: none, or of another type; then the call has failed. */
struct sim_redis_key *sim_redis_find_type(struct sim_redis_call *call, enum sim_redis_type type)
{
    struct sim_redis_key *key = find(call, call->words[1]);
    if (!key || key->type == type)
        return key;
    fail(call, "WRONGTYPE Operation against a key holding the wrong kind of value");
    return NULL;
}

/* NULL: the call has failed. */
struct sim_redis_key *sim_redis_find_or_make(struct sim_redis_call *call, enum sim_redis_type type)
{
    struct sim_redis_key *key = sim_redis_find_type(call, type);
    return key || call->failed ? key : sim_redis_make(&call->redis->data, call->words[1], type);
}

void sim_redis_remove_if_empty(struct sim_redis_call *call, const struct sim_redis_key *key)
{
    if (key->n == 0)
        sim_redis_remove(&call->redis->data, key);
}

static struct sim_redis_key *put_string(struct sim_redis_call *call, const char *name,
                                        const char *text)
{
    struct sim_redis_key *old = find(call, name);
    if (old)
        sim_redis_remove(&call->redis->data, old);
    struct sim_redis_key *key = sim_redis_make(&call->redis->data, name, SIM_REDIS_STRING);
    sim_redis_add(key, "", text);
    return key;
}

static void do_del(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = find(call, call->words[1]);
    sim_resp_integer(call->ret, key != NULL);
    if (key)
        sim_redis_remove(&call->redis->data, key);
}

static void do_exists(struct sim_redis_call *call)
{
    sim_resp_integer(call->ret, find(call, call->words[1]) != NULL);
}

static void do_type(struct sim_redis_call *call)
{
    static const char *const names[] = {"string", "list", "hash", "zset"};
    const struct sim_redis_key *key = find(call, call->words[1]);
    sim_resp_status(call->ret, key ? names[key->type] : "none");
}

static void do_pttl(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = find(call, call->words[1]);
    sim_resp_integer(call->ret, !key ? -2 : key->until_ms < 0 ? -1 : key->until_ms - call->now_ms);
}

static void end_at(struct sim_redis_call *call, int64_t until_ms)
{
    struct sim_redis_key *key = find(call, call->words[1]);
    sim_resp_integer(call->ret, key != NULL);
    if (key && until_ms <= call->now_ms)
        sim_redis_remove(&call->redis->data, key);
    else if (key)
        key->until_ms = until_ms;
}

static void do_pexpire(struct sim_redis_call *call)
{
    end_at(call, call->now_ms + strtoll(call->words[2], NULL, 10));
}

static void do_expire(struct sim_redis_call *call)
{
    end_at(call, call->now_ms + strtoll(call->words[2], NULL, 10) * 1000);
}

static void do_pexpireat(struct sim_redis_call *call)
{
    end_at(call, strtoll(call->words[2], NULL, 10));
}

/* -- strings ---------------------------------------------------------------------------------- */

/* A grant sets the counter of fences to the number after the last one, or to the clock. */
static void count_raised(const struct sim_redis_call *call)
{
    const struct sim_redis_key *key = find(call, call->words[1]);
    const int64_t fence = strtoll(call->words[2], NULL, 10);
    const int64_t last =
        key && key->type == SIM_REDIS_STRING ? strtoll(key->items[0].text, NULL, 10) : 0;
    if (strstr(call->words[1], "}:fence") && fence / 1000 > call->now_ms && fence > last + 1)
        sim_count(SIM_REDIS_RAISED);
}

/* SET key value [NX] [PX ms] */
static void do_set(struct sim_redis_call *call)
{
    bool if_new = false;
    int64_t px = 0;
    for (int i = 3; i < call->n; i++)
        if (strcasecmp(call->words[i], "NX") == 0)
            if_new = true;
        else if (strcasecmp(call->words[i], "PX") == 0 && i + 1 < call->n)
            px = strtoll(call->words[++i], NULL, 10);
        else
            abort();
    if (if_new && find(call, call->words[1])) {
        sim_resp_text(call->ret, NULL);
        return;
    }
    count_raised(call);
    struct sim_redis_key *key = put_string(call, call->words[1], call->words[2]);
    if (px > 0)
        key->until_ms = call->now_ms + px;
    sim_resp_status(call->ret, "OK");
}

static void do_setnx(struct sim_redis_call *call)
{
    bool is_new = !find(call, call->words[1]);
    if (is_new)
        put_string(call, call->words[1], call->words[2]);
    sim_resp_integer(call->ret, is_new);
}

static void do_get(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_STRING);
    if (!call->failed)
        sim_resp_text(call->ret, key ? key->items[0].text : NULL);
}

static void do_getset(struct sim_redis_call *call)
{
    do_get(call);
    if (!call->failed)
        put_string(call, call->words[1], call->words[2]);
}

static long long add_to(struct sim_redis_item *item, long long n)
{
    char text[32];
    n += item->text ? strtoll(item->text, NULL, 10) : 0;
    snprintf(text, sizeof text, "%lld", n);
    sim_redis_set_text(item, text);
    return n;
}

static void do_incr(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_or_make(call, SIM_REDIS_STRING);
    if (key)
        sim_resp_integer(call->ret,
                         add_to(key->n > 0 ? &key->items[0] : sim_redis_add(key, "", NULL), 1));
}

/* -- hashes ----------------------------------------------------------------------------------- */

static void do_hset(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_or_make(call, SIM_REDIS_HASH);
    int added = 0;
    for (int i = 2; key && i + 1 < call->n; i += 2) {
        struct sim_redis_item *item = sim_redis_item(key, call->words[i]);
        if (item)
            sim_redis_set_text(item, call->words[i + 1]);
        else
            sim_redis_add(key, call->words[i], call->words[i + 1]);
        added += !item;
    }
    if (key)
        sim_resp_integer(call->ret, added);
}

static const struct sim_redis_item *field(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_HASH);
    return key ? sim_redis_item(key, call->words[2]) : NULL;
}

static void do_hget(struct sim_redis_call *call)
{
    const struct sim_redis_item *item = field(call);
    if (!call->failed)
        sim_resp_text(call->ret, item ? item->text : NULL);
}

static void do_hexists(struct sim_redis_call *call)
{
    const struct sim_redis_item *item = field(call);
    if (!call->failed)
        sim_resp_integer(call->ret, item != NULL);
}

static void do_hincrby(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_or_make(call, SIM_REDIS_HASH);
    if (!key)
        return;
    struct sim_redis_item *item = sim_redis_item(key, call->words[2]);
    sim_resp_integer(call->ret, add_to(item ? item : sim_redis_add(key, call->words[2], NULL),
                                       strtoll(call->words[3], NULL, 10)));
}

static void do_hgetall(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_HASH);
    if (call->failed)
        return;
    sim_resp_array(call->ret, key ? 2 * key->n : 0);
    for (size_t i = 0; key && i < key->n; i++) {
        sim_resp_text(call->ret, key->items[i].name);
        sim_resp_text(call->ret, key->items[i].text);
    }
}

/* HDEL, ZREM: key name */
void sim_redis_take_name(struct sim_redis_call *call, enum sim_redis_type type)
{
    struct sim_redis_key *key = sim_redis_find_type(call, type);
    if (call->failed)
        return;
    const struct sim_redis_item *item = key ? sim_redis_item(key, call->words[2]) : NULL;
    sim_resp_integer(call->ret, item != NULL);
    if (!item)
        return;
    sim_redis_take(key, (size_t)(item - key->items));
    sim_redis_remove_if_empty(call, key);
}

static void do_hdel(struct sim_redis_call *call)
{
    sim_redis_take_name(call, SIM_REDIS_HASH);
}

/* -- lists ------------------------------------------------------------------------------------ */

static void do_rpush(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_or_make(call, SIM_REDIS_LIST);
    if (!key)
        return;
    sim_redis_add(key, call->words[2], NULL);
    sim_resp_integer(call->ret, (long long)key->n);
}

static void do_lpop(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_LIST);
    if (call->failed)
        return;
    sim_resp_text(call->ret, key ? key->items[0].name : NULL);
    if (!key)
        return;
    sim_redis_take(key, 0);
    sim_redis_remove_if_empty(call, key);
}

/* LREM key 1 name */
static void do_lrem(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_LIST);
    if (call->failed)
        return;
    const struct sim_redis_item *item = key ? sim_redis_item(key, call->words[3]) : NULL;
    sim_resp_integer(call->ret, item != NULL);
    if (!item)
        return;
    sim_redis_take(key, (size_t)(item - key->items));
    sim_redis_remove_if_empty(call, key);
}

/* -- all -------------------------------------------------------------------------------------- */

static void do_time(struct sim_redis_call *call)
{
    const int64_t us = sim_redis_now_us(call->redis);
    char text[32];
    sim_resp_array(call->ret, 2);
    snprintf(text, sizeof text, "%lld", (long long)us / 1000000);
    sim_resp_text(call->ret, text);
    snprintf(text, sizeof text, "%lld", (long long)us % 1000000);
    sim_resp_text(call->ret, text);
}

static void do_publish(struct sim_redis_call *call)
{
    int heard = sim_redis_publish(call->redis, call->words[1], call->words[2]);
    if (heard > 0)
        sim_count(SIM_REDIS_HEARD);
    sim_resp_integer(call->ret, heard);
}

static void do_ping(struct sim_redis_call *call)
{
    sim_resp_status(call->ret, "PONG");
}

static void do_role(struct sim_redis_call *call)
{
    sim_resp_array(call->ret, 3); /* shorter than Redis's: only the first is asked for */
    sim_resp_text(call->ret, call->redis->is_replica ? "slave" : "master");
    sim_resp_integer(call->ret, 0);
    sim_resp_array(call->ret, 0);
}

void sim_redis_run(struct sim_redis *redis, int n, char **words, struct sim_bytes *ret)
{
    static const struct {
        const char *name;
        int n_min;
        bool writes;
        void (*run)(struct sim_redis_call *call);
    } commands[] = {{"DEL", 2, true, do_del},
                    {"EXISTS", 2, false, do_exists},
                    {"EXPIRE", 3, true, do_expire},
                    {"GET", 2, false, do_get},
                    {"GETSET", 3, true, do_getset},
                    {"HDEL", 3, true, do_hdel},
                    {"HEXISTS", 3, false, do_hexists},
                    {"HGET", 3, false, do_hget},
                    {"HGETALL", 2, false, do_hgetall},
                    {"HINCRBY", 4, true, do_hincrby},
                    {"HSET", 4, true, do_hset},
                    {"INCR", 2, true, do_incr},
                    {"LPOP", 2, true, do_lpop},
                    {"LREM", 4, true, do_lrem},
                    {"PEXPIRE", 3, true, do_pexpire},
                    {"PEXPIREAT", 3, true, do_pexpireat},
                    {"PING", 1, false, do_ping},
                    {"PTTL", 2, false, do_pttl},
                    {"PUBLISH", 3, false, do_publish},
                    {"ROLE", 1, false, do_role},
                    {"RPUSH", 3, true, do_rpush},
                    {"SET", 3, true, do_set},
                    {"SETNX", 3, true, do_setnx},
                    {"TIME", 1, false, do_time},
                    {"TYPE", 2, false, do_type},
                    {"ZADD", 4, true, sim_redis_do_zadd},
                    {"ZCARD", 2, false, sim_redis_do_zcard},
                    {"ZRANGE", 4, false, sim_redis_do_zrange},
                    {"ZREM", 3, true, sim_redis_do_zrem},
                    {"ZREMRANGEBYSCORE", 4, true, sim_redis_do_zremrangebyscore},
                    {"ZSCORE", 3, false, sim_redis_do_zscore}};
    struct sim_redis_call call = {.redis = redis,
                                  .n = n,
                                  .words = words,
                                  .ret = ret,
                                  .now_ms = sim_redis_now_us(redis) / 1000};
    size_t i = 0;
    while (strcasecmp(commands[i].name, words[0]) != 0)
        if (++i == sizeof commands / sizeof commands[0]) {
            fprintf(stderr, "Redis is asked for %s, which it does not know here\n", words[0]);
            abort();
        }
    if (n < commands[i].n_min)
        abort();
    if (commands[i].writes && redis->is_replica) {
        sim_count(SIM_REDIS_READONLY);
        sim_resp_error(ret, "READONLY You can't write against a read only replica.");
        return;
    }
    commands[i].run(&call);
    if (commands[i].writes)
        sim_redis_wrote(redis);
}
