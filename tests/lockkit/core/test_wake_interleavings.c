/*
 * No wake-up is lost: every interleaving of waiters, releases, messages, time-outs and broken
 * subscriptions, enumerated.
 *
 * The code under test is redis_wake.c and redis_waiters.c, unchanged. The rest is a model: a server
 * that counts permits and publishes each release to the listening clients, and fibers as threads.
 * A fiber stops at each point where a real thread could be overtaken. The explorer then tries every
 * next step, and does not explore a state twice.
 *
 * The claim: in each state without a next step, no permit is free while a waiter sleeps.
 */
#include "event.h"
#include "monotonic.h"
#include "redis_wake.h"
#include "table.h"
#include "fiber.h"
#include "process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum {
    WAITERS_MAX = 3,
    CLIENTS_MAX = 2,
    DEPTH_MAX = 120,
    ARENA_BYTES = 1 << 16,
    SEEN_MAX = 1 << 20, /* a power of two */
    FAR_US = 1000000000
};

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
        self->granted = model.free > 0;
        model.free -= self->granted;
        stop_at(AT_ANSWER);
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

/* -- next steps ----------------------------------------------------------------------------------
 */

enum what { RUN, LATE, RELEASE, DELIVER, BREAK, REMAKE };

struct choice {
    enum what what;
    int who;
};

enum { CHOICES_MAX = 2 * WAITERS_MAX + 1 + 3 * CLIENTS_MAX };

static int choices(struct choice *ret)
{
    int n = 0;
    for (int i = 0; i < model.is.waiters; i++) {
        const struct waiter *waiter = &model.waiters[i];
        bool sleeps = waiter->at == AT_BELL && !*waiter->woken && !waiter->late;
        if (waiter->at != AT_END && !sleeps)
            ret[n++] = (struct choice){RUN, i};
        if (sleeps && i == 0 && model.is.hasty)
            ret[n++] = (struct choice){LATE, i};
    }
    if (model.to_release > 0)
        ret[n++] = (struct choice){RELEASE, 0};
    for (int i = 0; i < model.is.clients; i++) {
        const struct client *client = &model.clients[i];
        if (client->messages > 0)
            ret[n++] = (struct choice){DELIVER, i};
        if (model.breaks > 0 && client->sub.subscribed && !client->sub.broken)
            ret[n++] = (struct choice){BREAK, i};
        if (client->sub.broken)
            ret[n++] = (struct choice){REMAKE, i};
    }
    return n;
}

static void run(int who)
{
    for (int i = 0; i < model.is.waiters; i++)
        fibers.all[i].due_us = i == who ? 1 : 2;
    fibers_step(&fibers);
}

static void take(struct choice choice)
{
    struct client *client = &model.clients[choice.who];
    switch (choice.what) {
    case LATE:
        model.waiters[choice.who].late = true;
        run(choice.who);
        break;
    case RUN:
        run(choice.who);
        break;
    case RELEASE:
        model.to_release--;
        release();
        break;
    case DELIVER:
        client->messages--;
        on_message(&client->wake, "permits:{k}", "0");
        break;
    case BREAK:
        model.breaks--;
        client->messages = 0;
        client->sub.broken = true;
        client->sub.subscribed = client->sub.listeners > 0;
        client->sub.live++;
        on_message(&client->wake, NULL, NULL);
        break;
    case REMAKE:
        client->sub.broken = false;
        break;
    }
}

/* -- the explorer --------------------------------------------------------------------------------
 */

static struct {
    struct choice path[DEPTH_MAX];
    uint64_t seen[SEEN_MAX]; /* hashes of states; 0: none */
    size_t states, ends;
    bool idle; /* in a state without a next step a permit was free while a waiter slept */
} explorer;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15 ^ hash >> 29;
}

/* A hash of everything that later steps depend on. */
static uint64_t state(void)
{
    uint64_t hash = mix(mix(mix(1, model.free), model.to_release), model.breaks);
    for (int i = 0; i < model.is.clients; i++) {
        const struct client *client = &model.clients[i];
        const struct line *line = client->wake.waiters->by_name;
        hash = mix(mix(hash, client->messages), client->sub.live);
        hash =
            mix(hash, client->sub.listeners * 4 + client->sub.subscribed * 2 + client->sub.broken);
        hash = mix(mix(hash, line ? line->n_kept + 1 : 0), line ? line->n_waiters : 0);
        for (const lk_redis_waiter *w = line ? line->asleep : NULL; w != NULL; w = w->next)
            for (int k = 0; k < model.is.waiters; k++) {
                const struct waiting *waiting = model.waiters[k].attempt.waiter;
                if (waiting != NULL && waiting->waiter == w)
                    hash = mix(hash, 100 + k);
            }
    }
    for (int i = 0; i < model.is.waiters; i++) {
        const struct waiter *waiter = &model.waiters[i];
        const struct waiting *waiting = waiter->attempt.waiter;
        hash = mix(hash, waiter->at * 16 + waiter->granted * 8 + waiter->last * 4 +
                             waiter->late * 2 + waiter->is_first);
        hash = mix(hash, waiting == NULL ? 0
                                         : 1 + waiting->live * 8 + waiting->joined * 4 +
                                               waiting->waiter->woken * 2);
    }
    return hash != 0 ? hash : 1;
}

static bool is_new(uint64_t hash)
{
    size_t at = hash & (SEEN_MAX - 1);
    for (; explorer.seen[at] != 0; at = (at + 1) & (SEEN_MAX - 1))
        if (explorer.seen[at] == hash)
            return false;
    explorer.seen[at] = hash;
    return ++explorer.states < SEEN_MAX / 2;
}

static void explore(const struct setting *is, int depth)
{
    struct choice next[CHOICES_MAX];
    start(is);
    for (int i = 0; i < depth; i++)
        take(explorer.path[i]);
    if (explorer.idle || !is_new(state()))
        return;
    int n = choices(next);
    if (n == 0) {
        bool sleeps = false;
        for (int i = 0; i < is->waiters; i++)
            sleeps = sleeps || model.waiters[i].at == AT_BELL;
        explorer.ends++;
        explorer.idle = sleeps && model.free > 0;
    }
    assert_true(depth < DEPTH_MAX);
    for (int i = 0; i < n && !explorer.idle; i++) {
        explorer.path[depth] = next[i];
        explore(is, depth + 1);
    }
}

/* True: in some interleaving a permit stays idle. */
static bool idles(const struct setting *is)
{
    memset(&explorer, 0, sizeof explorer);
    explore(is, 0);
    printf(
        "permits %d, waiters %d, clients %d, releases %d%s%s, breaks %d: %zu states, %zu ends%s\n",
        is->permits, is->waiters, is->clients, is->releases, is->again ? " and again" : "",
        is->hasty ? ", hasty" : "", is->breaks, explorer.states, explorer.ends,
        explorer.idle ? ": a permit idles" : "");
    assert_true(explorer.states < SEEN_MAX / 2);
    assert_true(explorer.ends > 0);
    return explorer.idle;
}

static void no_permit_idles(int permits, int waiters, int clients, int breaks, bool again,
                            bool hasty)
{
    struct setting is = {.permits = permits,
                         .waiters = waiters,
                         .clients = clients,
                         .releases = permits,
                         .again = again,
                         .hasty = hasty,
                         .breaks = breaks,
                         .said = (uint32_t)permits};
    assert_false(idles(&is));
}

/* TEST_FULL=1: all settings, 2 million states. */
static void no_permit_idles_while_a_waiter_sleeps(void **state_)
{
    (void)state_;
    bool full = test_size(0, 1);
    for (int permits = 1; permits <= 3; permits++)
        for (int waiters = 1; waiters <= (full ? WAITERS_MAX : 2); waiters++)
            for (int clients = 1; clients <= CLIENTS_MAX && clients <= waiters; clients++)
                for (int more = full ? 0 : 2; more < (full ? 4 : 3); more++)
                    no_permit_idles(permits, waiters, clients,
                                    full ? waiters < WAITERS_MAX : permits < 3 && clients == 1,
                                    more & 1, more & 2);
    if (!full)
        no_permit_idles(2, WAITERS_MAX, 1, 0, false, false);
}

/* The explorer finds the error if the rule for one permit is used for two: other waiters in the
 * queue do not prove that no release was missed. */
static void rule_of_a_lock_lets_a_permit_idle(void **state_)
{
    (void)state_;
    struct setting is = {.permits = 2, .waiters = 2, .clients = 1, .releases = 2, .said = 1};
    assert_true(idles(&is));
}

static int free_stacks(void **state_)
{
    (void)state_;
    fibers_free(&fibers);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_permit_idles_while_a_waiter_sleeps),
        cmocka_unit_test(rule_of_a_lock_lets_a_permit_idle),
    };
    return cmocka_run_group_tests(tests, NULL, free_stacks);
}
