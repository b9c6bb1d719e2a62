/* Many grants of a guard on the world's real servers: together, in turns, one after the other. */
#ifndef TEST_LOCK_SERIES_H
#define TEST_LOCK_SERIES_H

#include "lockkit.h"

#include <pthread.h>

enum { CONTENDERS = 32 };

/* Contenders for one key on two clients, as two instances would have, who add one at a time to a
 * number that nothing but the lock protects. The struct must not move. */
struct contest {
    const lk_provider_info *guard;
    const char *key;
    lk_client *clients[2];
    pthread_t threads[CONTENDERS];
    _Atomic int turn;       /* gives each contender its client */
    _Atomic int refused;    /* lk_acquire() or lk_release() said something else than it should */
    _Atomic int64_t sum;    /* of all contenders' grants */
    int64_t until_ms;       /* when they end */
    volatile int64_t value; /* this and the fence: only whoever holds the lock */
    uint64_t fence;
    bool fence_fell;
};

void contest_start(struct contest *contest, const lk_provider_info *guard, const char *key,
                   int64_t for_ms);
/* The same; the contenders of one client stand in line (lk_options.local_queue), and hand the lock
 * on among each other now and then. */
void contest_start_in_line(struct contest *contest, const lk_provider_info *guard, const char *key,
                           int64_t for_ms);
/* True: nobody was inside with another. Fails the test when a contender was refused, or a claimed
 * fence did not rise. Not to be served for long is no refusal by a guard without order. */
bool contest_join(struct contest *contest);

/* Two clients take turns on each of some keys; true: each grant had a higher fence than the one
 * before. grants: of all keys together. */
bool series_fences_rise(const lk_provider_info *guard, int64_t grants);

/* Acquires and releases; fails the test when the second half of the pairs leaves memory or open
 * files in this process, or all of them something on the server. */
void series_leaves_nothing(const lk_provider_info *guard, int64_t pairs);

#endif
