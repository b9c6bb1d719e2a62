/* Hash of a key, for the buckets of a table: FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
#ifndef LOCKKIT_KEY_HASH_H
#define LOCKKIT_KEY_HASH_H

#include <stdint.h>

static inline uint32_t lk_key_hash(const char *key)
{
    uint32_t hash = 2166136261u;
    for (; *key; key++)
        hash = (hash ^ (uint8_t)*key) * 16777619u;
    return hash;
}

#endif
