/* Many grants of a guard on real servers: by contenders, by two clients in turn, by one client. */
#ifndef TEST_LOCK_SERIES_H
#define TEST_LOCK_SERIES_H

#include "lockkit.h"

#include <pthread.h>

enum { CONTENDERS = 32 };

/* Threads contend for one key on two clients, like two instances of a service. Each holder adds one
 * to a number that only the lock protects. The struct must not move. */
struct contest {
    const lk_provider_info *guard;
    const char *key;
    lk_client *clients[2];
    pthread_t threads[CONTENDERS];
    _Atomic int turn;       /* gives each contender its client */
    _Atomic int refused;    /* unexpected results of lk_acquire() or lk_release() */
    _Atomic int64_t sum;    /* of all contenders' grants */
    int64_t until_ms;       /* when they end */
    volatile int64_t value; /* only the holder accesses value and fence */
    uint64_t fence;
    bool fence_fell;
};

void contest_start(struct contest *contest, const lk_provider_info *guard, const char *key,
                   int64_t for_ms);
/* The same with lk_options.local_queue: the contenders of one client queue locally and sometimes
 * hand the lock over to each other. */
void contest_start_in_line(struct contest *contest, const lk_provider_info *guard, const char *key,
                           int64_t for_ms);
/* True: no two contenders were inside at once. Fails the test if a contender was refused or a
 * claimed fence did not rise. A timeout is no refusal for a guard that does not claim fairness. */
bool contest_join(struct contest *contest);

/* Two clients acquire some keys in turn. True: each grant had a higher fence than the one before.
 * grants: the total over all keys. */
bool series_fences_rise(const lk_provider_info *guard, int64_t grants);

/* Acquires and releases `pairs` times. Fails the test if the second half leaks memory or file
 * descriptors in this process, or if anything remains on the server. */
void series_leaves_nothing(const lk_provider_info *guard, int64_t pairs);

#endif
