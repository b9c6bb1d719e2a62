/* One command that a simulated Redis server runs. */
#ifndef SIM_REDIS_CALL_H
#define SIM_REDIS_CALL_H

#include "sim_redis.h"

struct sim_redis_call {
    struct sim_redis *redis;
    int n;
    char **words;
    struct sim_bytes *ret;
    int64_t now_ms;
    bool failed;
};

/* Of the key that the command names first. NULL: none, or of another type; then the call has
 * failed. */
struct sim_redis_key *sim_redis_find_type(struct sim_redis_call *call, enum sim_redis_type type);
/* NULL: the call has failed. */
struct sim_redis_key *sim_redis_find_or_make(struct sim_redis_call *call, enum sim_redis_type type);
void sim_redis_remove_if_empty(struct sim_redis_call *call, const struct sim_redis_key *key);
/* HDEL, ZREM: key name */
void sim_redis_take_name(struct sim_redis_call *call, enum sim_redis_type type);

/* sim_redis_sets.c */
void sim_redis_do_zadd(struct sim_redis_call *call);
void sim_redis_do_zrem(struct sim_redis_call *call);
void sim_redis_do_zcard(struct sim_redis_call *call);
void sim_redis_do_zscore(struct sim_redis_call *call);
void sim_redis_do_zrange(struct sim_redis_call *call);
void sim_redis_do_zremrangebyscore(struct sim_redis_call *call);

#endif
