/* An environment for lockkit that counts refusals, can stop tries at a gate and can shift the wall
 * clock; and a thread that acquires a lock. */
#ifndef TEST_LOCK_HOOKS_H
#define TEST_LOCK_HOOKS_H

#include "lockkit.h"

#include <pthread.h>
#include <stdatomic.h>

struct hooked {
    lk_env env;
    _Atomic int refusals; /* LK_POINT_WAIT reached */
    atomic_bool trying;   /* past LK_POINT_TRY, not yet refused */
    atomic_bool shut;     /* the gate is closed: tries stop at it */
    atomic_bool at_gate;  /* a try stands at the gate */
    _Atomic int64_t ahead_us;
    const char *_Atomic point; /* where call(arg) is called; NULL: nowhere */
    void (*call)(void *arg);
    void *arg;
};

/* Initialises the struct and returns its environment. The struct must not move. */
const lk_env *hook(struct hooked *hooked);

/* Closes the gate: tries stop at it until shut is false. Waits until a try in flight has been
 * refused; another client must hold the lock. False: not within patience_ms. */
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
/* Waits for the end of its acquisition; returns the status. */
lk_status asker_join(struct asker *asker);
/* Waits for the end of its acquisition, releases the lock if granted, closes the client. Call it
 * before any assertion that could leave the stack frame of the struct. LK_OK: granted and
 * released. */
lk_status asker_end(struct asker *asker);
/* True when its acquisition has ended: its fields may be read. */
bool asker_ended(struct asker *asker);

/* For wait_until(): arg is an atomic_bool; a struct hooked. */
bool is_set(void *flag);
bool refused_twice(void *hooked);

#endif
