/* The inside of a client, shared by the files of this folder. Not for providers. */
#ifndef LOCKKIT_CLIENT_H
#define LOCKKIT_CLIENT_H

#include "janitor.h"
#include "local_queue.h"
#include "provider.h"
#include "watchdog.h"

#include <pthread.h>
#include <stdatomic.h>

#define CLIENT_STAT_MAP(X)                                                                         \
    X(attempts)                                                                                    \
    X(grants)                                                                                      \
    X(refusals)                                                                                    \
    X(timeouts)                                                                                    \
    X(releases) X(renewals) X(lost) X(cleanups) X(handovers) X(commands) X(pending) X(pending_done)

struct client_stats {
#define CLIENT_STAT_FIELD(name) _Atomic uint64_t name;
    CLIENT_STAT_MAP(CLIENT_STAT_FIELD)
#undef CLIENT_STAT_FIELD
};

struct lk_client {
    const lk_provider *provider;
    void *self; /* the provider's own */
    lk_context context;
    lk_options options; /* defaults filled in */
    lk_env env;
    char *endpoints;
    struct watchdog watchdog;
    struct janitor janitor;
    struct local_queue *queue; /* NULL: not wanted, or it does not suit the guard */
    struct client_stats stats;
    _Atomic int64_t n_holds; /* being asked for, or granted and not yet released */
    pthread_mutex_t note_lock;
    char note[LK_MESSAGE_MAX]; /* lk_note()'s */
};

enum hold_state {
    HOLD_NONE, /* not granted, or released: nothing to free */
    HOLD_HELD,
    HOLD_LAPSED, /* lost by time: the server may still have it */
    HOLD_GONE    /* lost: the server said that it is not ours */
};

/* Atomic, because lk_check() reads state and valid_until_us from any thread. */
static inline enum hold_state hold_state(const lk_hold *hold)
{
    return (enum hold_state)__atomic_load_n(&hold->private_.state, __ATOMIC_ACQUIRE);
}

static inline void hold_set_state(lk_hold *hold, enum hold_state state)
{
    __atomic_store_n(&hold->private_.state, (int32_t)state, __ATOMIC_RELEASE);
}

static inline int64_t hold_valid_until_us(const lk_hold *hold)
{
    return __atomic_load_n(&hold->private_.valid_until_us, __ATOMIC_ACQUIRE);
}

static inline void hold_set_valid_until(lk_hold *hold, int64_t until_us)
{
    __atomic_store_n(&hold->private_.valid_until_us, until_us, __ATOMIC_RELEASE);
}

/* No lease that the server was asked for ends later, up to the time that a request takes: none was
 * sent after now_us. An unanswered lk_extend() counts, and so does the lease of a holder of this
 * client that handed the hold over. INT64_MAX: no lease. */
static inline int64_t hold_asked_until_us(const lk_hold *hold, int64_t now_us)
{
    int64_t until_us = hold->lease_ms == 0 ? INT64_MAX : now_us + hold->lease_ms * 1000;
    int64_t asked_us = hold->private_.asked_until_us;
    return asked_us > until_us ? asked_us : until_us;
}

/* False: this process knows that the hold's session has ended. Any thread. */
static inline bool hold_alive(const lk_hold *hold)
{
    const lk_client *client = hold->client;
    return !client->provider->alive || client->provider->alive(client->self, hold);
}

static inline int64_t client_now_us(const lk_client *client)
{
    return client->env.now_us(client->env.ctx);
}

static inline int64_t client_valid_us(const lk_client *client, int64_t lease_ms)
{
    return 1000 * (client->provider->valid_ms ? client->provider->valid_ms(lease_ms) : lease_ms);
}

static inline void client_point(const lk_client *client, const char *point, const char *key)
{
    client->env.point(client->env.ctx, point, key);
}

static inline void client_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* After a release: nothing of the hold is left on the server. */
static inline bool client_is_freed(lk_status status)
{
    return status == LK_OK || status == LK_LOST;
}

/* 1 to LK_OWNER_MAX printable bytes. */
bool client_owner_valid(const char *owner);
/* "client_id:owner"; owner NULL: "client_id:random". */
void client_make_token(const lk_client *client, const char *owner, char *token);

/* One acquire call. */
struct acquire_call {
    lk_client *client;
    const lk_request *request;
    lk_attempt attempt;
    int64_t start_us;
    unsigned pauses; /* so far */
    struct local_waiter waiter;
    bool queued;          /* waiter is in a queue and must leave it */
    bool waited;          /* wait() was called, so wait_end() must be */
    bool outcome_unknown; /* the server may hold our token although we have no grant */
    bool was_unknown;     /* ... at some time during this call */
    bool may_free_late;   /* an undoing of our token got no answer and may still arrive */
};

/* The two halves of lk_acquire(). many.c checks all requests first, then gives all one deadline. */
lk_status core_check(const lk_client *client, const lk_request *request);
lk_status core_acquire(lk_client *client, const lk_request *request, int64_t deadline_us,
                       lk_hold *hold);
int64_t core_deadline_us(const lk_client *client, int64_t wait_ms);

/* core_acquire() with one attempt, in steps, for each.c: core_begin() (LK_NO_MEMORY: stop there),
 * core_try_begin(), the provider's attempt, core_try_end() with its status, core_end(). If
 * was_unknown is set and the lock was not granted, call core_undo_begin() and release it. */
lk_status core_begin(struct acquire_call *call, lk_client *client, const lk_request *request,
                     int64_t deadline_us, lk_hold *hold);
void core_try_begin(struct acquire_call *call);
lk_status core_try_end(struct acquire_call *call, lk_status status);
lk_status core_end(const struct acquire_call *call, lk_status status);
void core_undo_begin(lk_client *client, const lk_hold *hold);

/* Asks the server once to free each of n (0..LK_EACH_MAX) holds: in one go if the provider can. */
void client_release(lk_client *client, lk_hold *const *holds, size_t n, lk_status *statuses);

#endif
