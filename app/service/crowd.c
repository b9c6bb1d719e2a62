#include "crowd.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

enum { PLACES = 1 << 14 };

struct crowd {
    uint64_t seed;
    atomic_uint first[PLACES], second[PLACES];
};

struct crowd *crowd_open(void)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    if (crowd && getrandom(&crowd->seed, sizeof crowd->seed, 0) != (ssize_t)sizeof crowd->seed) {
        free(crowd);
        return NULL;
    }
    return crowd;
}

void crowd_close(struct crowd *crowd)
{
    free(crowd);
}

/* FNV-1a from a secret start: http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash(uint64_t start, const char *text)
{
    for (; *text; text++)
        start = (start ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return start;
}

/* The final mix of splitmix64, Sebastiano Vigna: every bit of the place depends on all of the hash.
 */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static atomic_uint *first_of(struct crowd *crowd, uint64_t place)
{
    return &crowd->first[place % PLACES];
}

static atomic_uint *second_of(struct crowd *crowd, uint64_t place)
{
    return &crowd->second[(place >> 32) % PLACES];
}

bool crowd_enter(struct crowd *crowd, const char *kind, const char *name, uint32_t max,
                 uint64_t *ret_place)
{
    const uint64_t place = mix(hash(hash(crowd->seed, kind), name));
    const unsigned first = atomic_fetch_add(first_of(crowd, place), 1);
    const unsigned second = atomic_fetch_add(second_of(crowd, place), 1);
    if (first >= max && second >= max) {
        crowd_leave(crowd, place);
        return false;
    }
    *ret_place = place;
    return true;
}

void crowd_leave(struct crowd *crowd, uint64_t place)
{
    const unsigned first = atomic_fetch_sub(first_of(crowd, place), 1);
    const unsigned second = atomic_fetch_sub(second_of(crowd, place), 1);
    assert(first > 0 && second > 0);
}
