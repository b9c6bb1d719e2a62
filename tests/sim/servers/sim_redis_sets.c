/* The commands on sorted sets, which are kept in order. */
#include "sim_redis_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_score(const void *a, const void *b)
{
    const struct sim_redis_item *left = a, *right = b;
    int order = (left->score > right->score) - (left->score < right->score);
    return order != 0 ? order : strcmp(left->name, right->name);
}

void sim_redis_do_zadd(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_or_make(call, SIM_REDIS_ZSET);
    if (!key)
        return;
    struct sim_redis_item *item = sim_redis_item(key, call->words[3]);
    sim_resp_integer(call->ret, item == NULL);
    if (!item)
        item = sim_redis_add(key, call->words[3], NULL);
    item->score = strtod(call->words[2], NULL);
    qsort(key->items, key->n, sizeof key->items[0], by_score);
}

void sim_redis_do_zrem(struct sim_redis_call *call)
{
    sim_redis_take_name(call, SIM_REDIS_ZSET);
}

void sim_redis_do_zcard(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_ZSET);
    if (!call->failed)
        sim_resp_integer(call->ret, key ? (long long)key->n : 0);
}

static void put_score(struct sim_redis_call *call, const struct sim_redis_item *item)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", item ? item->score : 0);
    sim_resp_text(call->ret, item ? text : NULL);
}

void sim_redis_do_zscore(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_ZSET);
    if (!call->failed)
        put_score(call, key ? sim_redis_item(key, call->words[2]) : NULL);
}

/* ZRANGE key i i WITHSCORES: one item, from either end. */
void sim_redis_do_zrange(struct sim_redis_call *call)
{
    const struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_ZSET);
    long i = strtol(call->words[2], NULL, 10);
    if (call->n != 5 || strcmp(call->words[2], call->words[3]) != 0)
        abort();
    if (call->failed)
        return;
    if (key && i < 0)
        i += (long)key->n;
    if (!key || i < 0 || (size_t)i >= key->n) {
        sim_resp_array(call->ret, 0);
        return;
    }
    sim_resp_array(call->ret, 2);
    sim_resp_text(call->ret, key->items[i].name);
    put_score(call, &key->items[i]);
}

/* ZREMRANGEBYSCORE key -inf (score */
void sim_redis_do_zremrangebyscore(struct sim_redis_call *call)
{
    struct sim_redis_key *key = sim_redis_find_type(call, SIM_REDIS_ZSET);
    int removed = 0;
    if (strcmp(call->words[2], "-inf") != 0 || call->words[3][0] != '(')
        abort();
    const double below = strtod(call->words[3] + 1, NULL);
    for (; key && key->n > 0 && key->items[0].score < below; removed++)
        sim_redis_take(key, 0);
    if (key)
        sim_redis_remove_if_empty(call, key);
    if (!call->failed)
        sim_resp_integer(call->ret, removed);
}
