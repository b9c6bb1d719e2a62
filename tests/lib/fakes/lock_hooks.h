/* An environment that counts refusals, keeps its caller from trying, and tells another time; and a
 * thread that acquires under it. */
#ifndef TEST_LOCK_HOOKS_H
#define TEST_LOCK_HOOKS_H

#include "lockkit.h"

#include <pthread.h>
#include <stdatomic.h>

struct hooked {
    lk_env env;
    _Atomic int refusals; /* LK_POINT_WAIT reached */
    atomic_bool trying;   /* past LK_POINT_TRY, not yet refused */
    atomic_bool shut;     /* tries stop here */
    atomic_bool at_gate;  /* one does */
    _Atomic int64_t ahead_us;
    const char *_Atomic point; /* where call(arg) is called; NULL: nowhere */
    void (*call)(void *arg);
    void *arg;
};

/* Returns its environment; the struct must not move. */
const lk_env *hook(struct hooked *hooked);

/* From now on tries stop, until shut is false; the lock is held, and one that is under way has been
 * refused. False: it takes longer than that. */
bool shut_gate(struct hooked *hooked, int64_t patience_ms);

struct asker {
    pthread_t thread;
    lk_client *client;
    const char *key;
    int64_t lease_ms, wait_ms;
    lk_mode mode;
    uint32_t permits;
    lk_hold hold;
    lk_status status;
    int64_t took_ms;
    atomic_bool ended;
};

void asker_start(struct asker *asker);
/* Waits until its acquisition has ended; returns its status. */
lk_status asker_join(struct asker *asker);
/* Waits until its acquisition has ended, releases what it was granted, closes its client: before
 * an assertion may leave the function on whose stack they stand. LK_OK: granted and released. */
lk_status asker_end(struct asker *asker);
/* It has: its fields may be read. */
bool asker_ended(struct asker *asker);

/* For wait_until(): arg is an atomic_bool; a struct hooked. */
bool is_set(void *flag);
bool refused_twice(void *hooked);

#endif
