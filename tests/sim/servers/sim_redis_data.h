/* The keys of one simulated Redis server: strings, lists, hashes and sorted sets, each with its
 * end. */
#ifndef SIM_REDIS_DATA_H
#define SIM_REDIS_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_redis_type { SIM_REDIS_STRING, SIM_REDIS_LIST, SIM_REDIS_HASH, SIM_REDIS_ZSET };

/* A string has one item; a list has names only; a hash has names and texts; a sorted set scores. */
struct sim_redis_item {
    char *name, *text;
    double score;
};

struct sim_redis_key {
    char *name;
    enum sim_redis_type type;
    int64_t until_ms; /* -1: for ever */
    struct sim_redis_item *items;
    size_t n;
};

struct sim_redis_data {
    struct sim_redis_key *keys;
    size_t n;
};

/* NULL: there is none, or it has ended at now_ms. */
struct sim_redis_key *sim_redis_find(struct sim_redis_data *data, const char *name, int64_t now_ms);
/* A new one, empty and without an end. */
struct sim_redis_key *sim_redis_make(struct sim_redis_data *data, const char *name,
                                     enum sim_redis_type type);
void sim_redis_remove(struct sim_redis_data *data, const struct sim_redis_key *key);
void sim_redis_clear(struct sim_redis_data *data);
void sim_redis_copy(struct sim_redis_data *to, const struct sim_redis_data *from);

/* NULL: no such name. */
struct sim_redis_item *sim_redis_item(const struct sim_redis_key *key, const char *name);
/* At the end. text may be NULL. */
struct sim_redis_item *sim_redis_add(struct sim_redis_key *key, const char *name, const char *text);
void sim_redis_set_text(struct sim_redis_item *item, const char *text);
void sim_redis_take(struct sim_redis_key *key, size_t i);

#endif
