/*
 * The world of test_wake_interleavings.c: redis_wake.c and redis_waiters.c, unchanged, on a model
 * of a server that counts permits and publishes each release to the listening clients. Fibers stand
 * in for threads. A fiber stops at each point where a real thread could be overtaken.
 */
#ifndef WAKE_MODEL_H
#define WAKE_MODEL_H

#include "event.h"
#include "fiber.h"
#include "monotonic.h"
#include "redis_wake.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum { WAITERS_MAX = 3, CLIENTS_MAX = 2, ARENA_BYTES = 1 << 16, FAR_US = 1000000000 };

/* -- replacements for the environment of the code under test -------------------------------------
 */

static struct {
    _Alignas(16) char bytes[ARENA_BYTES];
    size_t used;
} arena; /* of one run; fibers that do not end never free their memory */

static void *arena_calloc(size_t n, size_t size)
{
    size_t bytes = (n * size + 15) & ~(size_t)15;
    void *memory = arena.bytes + arena.used;
    arena.used += bytes;
    if (arena.used > sizeof arena.bytes)
        abort();
    return memset(memory, 0, bytes);
}

static void arena_free(void *memory)
{
    (void)memory;
}

static void model_event_wait(void *event);
static int64_t model_now_us(void);

#define calloc(n, size) arena_calloc(n, size)
#define free(memory)    arena_free(memory)
#undef uthash_malloc
#undef uthash_free
#define uthash_malloc(size)              arena_calloc(1, size)
#define uthash_free(memory, size)        arena_free(memory)
#define lk_event_wait(event, gate, wait) model_event_wait(event)
#define lk_event_wake(event)             ((void)(event))
#define lk_monotonic_us()                model_now_us()
#include "redis_waiters.c"
#undef lk_event_wait
#undef lk_event_wake
#undef lk_monotonic_us

static lk_redis_waiter *model_enter(lk_redis_waiters *waiters, const char *name,
                                    bool *ret_is_first);
static void model_sleep(lk_redis_waiters *waiters, lk_redis_waiter *waiter, int64_t wait_us);
static void model_leave(lk_redis_waiters *waiters, lk_redis_waiter *waiter);
static lk_status model_join(lk_redis_sub *sub, const char *channel, int64_t wait_us, bool *ret);
static void model_unjoin(lk_redis_sub *sub, const char *channel);
static uint64_t model_live(const lk_redis_sub *sub);

#define lk_redis_waiters_enter(waiters, name, ret)  model_enter(waiters, name, ret)
#define lk_redis_waiters_sleep(waiters, waiter, us) model_sleep(waiters, waiter, us)
#define lk_redis_waiters_leave(waiters, waiter)     model_leave(waiters, waiter)
#define lk_redis_sub_join(sub, channel, wait, ret)  model_join(sub, channel, wait, ret)
#define lk_redis_sub_leave(sub, channel)            model_unjoin(sub, channel)
#define lk_redis_sub_live(sub, channel)             model_live(sub)
#include "redis_wake.c"
#undef lk_redis_waiters_enter
#undef lk_redis_waiters_sleep
#undef lk_redis_waiters_leave
#undef calloc
#undef free

/* -- the model -----------------------------------------------------------------------------------
 */

struct setting {
    int permits, waiters, clients;
    int releases;  /* by the first holders of the permits */
    bool again;    /* a waiter that was granted a permit releases it */
    bool hasty;    /* the first waiter may time out whenever it sleeps */
    bool unheard;  /* its last try then gets no answer, and takes nothing */
    int breaks;    /* of subscriptions */
    uint32_t said; /* number of permits in the waiters' requests */
};

enum at {
    AT_START,
    AT_TRY,
    AT_ANSWER,
    AT_WAIT,
    AT_JOIN,
    AT_SLEEP,
    AT_BELL,
    AT_LEAVE,
    AT_RELEASE,
    AT_END
};

struct lk_redis_sub {
    uint64_t live;
    int listeners;
    bool subscribed; /* false: the client gets no messages */
    bool broken;
};

struct waiter {
    lk_hold hold;
    lk_attempt attempt;
    struct client *client;
    enum at at;
    bool granted, last, late, is_first;
    const bool *woken; /* it sleeps until then */
};

struct client {
    lk_redis_wake wake;
    lk_redis_sub sub;
    int messages; /* sent, not delivered */
};

static struct model {
    struct setting is;
    int64_t clock_us; /* of the fibers */
    lk_context context;
    lk_env env;
    struct waiter waiters[WAITERS_MAX], *running;
    struct client clients[CLIENTS_MAX];
    int free, to_release, breaks;
} model;
static struct fibers fibers; /* one per waiter */

static int64_t model_now_us(void)
{
    return model.running->late ? 2 * (int64_t)FAR_US : 0;
}

static int64_t env_now_us(void *ctx)
{
    (void)ctx;
    return model_now_us();
}

static void env_point(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    (void)point;
    (void)key;
}

/* Others may run first. */
static void stop_at(enum at at)
{
    struct waiter *self = model.running;
    self->at = at;
    fibers_sleep_us(&fibers, 1);
    model.running = self;
}

static void model_event_wait(void *event)
{
    const char *waiter = (const char *)event - offsetof(lk_redis_waiter, event);
    model.running->woken = &((const lk_redis_waiter *)waiter)->woken;
    stop_at(AT_BELL);
    model.running->woken = NULL;
}

static lk_redis_waiter *model_enter(lk_redis_waiters *waiters, const char *name, bool *ret_is_first)
{
    lk_redis_waiter *waiter = lk_redis_waiters_enter(waiters, name, ret_is_first);
    model.running->is_first = *ret_is_first;
    return waiter;
}

static void model_sleep(lk_redis_waiters *waiters, lk_redis_waiter *waiter, int64_t wait_us)
{
    stop_at(AT_SLEEP);
    lk_redis_waiters_sleep(waiters, waiter, wait_us);
}

static void model_leave(lk_redis_waiters *waiters, lk_redis_waiter *waiter)
{
    stop_at(AT_LEAVE);
    lk_redis_waiters_leave(waiters, waiter);
}

static lk_status model_join(lk_redis_sub *sub, const char *channel, int64_t wait_us,
                            bool *ret_was_live)
{
    (void)channel;
    (void)wait_us;
    stop_at(AT_JOIN);
    if (sub->broken)
        return LK_UNAVAILABLE;
    *ret_was_live = sub->subscribed;
    sub->subscribed = true;
    sub->listeners++;
    return LK_OK;
}

/* A channel without listeners stays subscribed; after a break it is not subscribed again. */
static void model_unjoin(lk_redis_sub *sub, const char *channel)
{
    (void)channel;
    sub->listeners--;
    sub->subscribed = sub->subscribed && (sub->listeners > 0 || !sub->broken);
}

static uint64_t model_live(const lk_redis_sub *sub)
{
    return sub->subscribed && !sub->broken ? sub->live : 0;
}

static void release(void)
{
    model.free++;
    for (int i = 0; i < model.is.clients; i++)
        model.clients[i].messages += model_live(&model.clients[i].sub) != 0;
}

/* Like the core's lk_acquire(): try, wait, try again; one last try after a timeout. */
static void acquire(void *arg)
{
    struct waiter *self = arg;
    lk_redis_wake *wake = &self->client->wake;
    model.running = self;
    for (;;) {
        self->last = self->late;
        stop_at(AT_TRY);
        bool is_heard = !(self->last && model.is.unheard);
        self->granted = is_heard && model.free > 0;
        model.free -= self->granted;
        stop_at(AT_ANSWER);
        if (is_heard)
            lk_redis_wake_tried(wake, &self->attempt);
        if (self->granted || self->last)
            break;
        stop_at(AT_WAIT);
        lk_redis_wake_wait(wake, &self->attempt, FAR_US);
    }
    lk_redis_wake_wait_end(wake, &self->attempt);
    self->attempt.waiter = NULL;
    if (self->granted && model.is.again) {
        stop_at(AT_RELEASE);
        release();
    }
    self->at = AT_END;
}

static void start(const struct setting *is)
{
    arena.used = 0;
    model = (struct model){.is = *is,
                           .env = {.now_us = env_now_us, .point = env_point},
                           .to_release = is->releases,
                           .breaks = is->breaks};
    model.context.env = &model.env;
    fibers_begin(&fibers, &model.clock_us);
    for (int i = 0; i < is->clients; i++) {
        struct client *client = &model.clients[i];
        client->sub.live = 1;
        client->wake = (lk_redis_wake){.guard = {.context = &model.context},
                                       .prefix = "permits",
                                       .waiters = lk_redis_waiters_open(),
                                       .sub = &client->sub};
    }
    for (int i = 0; i < is->waiters; i++) {
        struct waiter *waiter = &model.waiters[i];
        waiter->client = &model.clients[i % is->clients];
        waiter->hold = (lk_hold){.key = "k", .permits = is->said};
        waiter->attempt.hold = &waiter->hold;
        fibers_spawn(&fibers, 1, acquire, waiter);
    }
}

#endif
