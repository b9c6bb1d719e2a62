#include "lock_simulation.h"
#include "fiber.h"
#include "lk_fake.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CLIENTS = 3,
    ACTORS = 6, /* two threads per process */
    KEYS = 2,
    ROUNDS = 6,
    LEASE_MS = 60,
    HANDOVERS_MAX = 5,
    STALL_US_MAX = 5 * LEASE_MS * 1000
};

static const char *const keys[KEYS] = {"lock:account:1", "lock:account:2"};

struct resource {
    int64_t value, accepted;
    uint64_t last_fence, last_granted;
};

struct actor {
    struct world *world;
    lk_client *client;
    lk_hold holds[KEYS];
    bool inside[KEYS]; /* by key: between grant and release */
    lk_hold *of_key[KEYS];
};

struct world {
    struct fake fake;
    struct fibers fibers;
    struct actor actors[ACTORS];
    lk_client *clients[CLIENTS];
    struct resource resources[KEYS];
    int n_running, n_watching;
    bool at_once; /* some calls request both keys at once */
    bool no_late; /* no message arrives after the end of its call */
    unsigned faults_permille, stalls_permille;
    uint64_t trace; /* hash over all grants: equal seeds give equal runs */
    char broken[160];
};

static uint64_t below(struct world *world, uint64_t limit)
{
    return fake_random(&world->fake) % limit;
}

static void report(struct world *world, const char *what, int key)
{
    if (world->broken[0] == '\0')
        snprintf(world->broken, sizeof world->broken, "%s, %s at %" PRId64 " us", what, keys[key],
                 world->fake.now_us);
}

/* -- faults and stalls --------------------------------------------------------------------------
 */

static void sleep_roughly(struct fake *fake, int64_t us)
{
    struct world *world = fake->test;
    if (below(world, 1000) < world->stalls_permille)
        us += (int64_t)below(world, STALL_US_MAX);
    fibers_sleep_us(&world->fibers, us + (int64_t)below(world, 30));
}

static void stop_anywhere(void *ctx, const char *point, const char *key)
{
    (void)point;
    (void)key;
    struct fake *fake = ctx;
    if (below(fake->test, 4) == 0)
        sleep_roughly(fake, 1);
}

static enum fake_fault fail_sometimes(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)call;
    (void)n;
    struct world *world = fake->test;
    static const enum fake_fault kinds[] = {FAKE_AWAY, FAKE_REQUEST_LOST, FAKE_REPLY_LOST,
                                            FAKE_GARBAGE, FAKE_REQUEST_LATE};
    if (below(world, 1000) >= world->faults_permille)
        return FAKE_NONE;
    return kinds[below(world, sizeof kinds / sizeof kinds[0] - world->no_late)];
}

/* -- the actors ----------------------------------------------------------------------------------
 */

static bool all_ours(const lk_hold *holds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lk_check(&holds[i], NULL) != LK_OK)
            return false;
    return true;
}

static int index_of(const lk_hold *hold)
{
    return strcmp(hold->key, keys[0]) == 0 ? 0 : 1;
}

static void enter(struct actor *actor, lk_hold *hold)
{
    struct world *world = actor->world;
    int key = index_of(hold);
    struct resource *resource = &world->resources[key];
    actor->inside[key] = true;
    actor->of_key[key] = hold;
    if (lk_check(hold, NULL) != LK_OK)
        return;                                    /* stalled past its lease before the check */
    bool handed_on = hold->private_.handovers > 0; /* with its predecessor's fence */
    if (hold->fence < resource->last_granted + !handed_on)
        report(world, "a fence did not rise", key);
    resource->last_granted = hold->fence;
    world->trace = (world->trace ^ hold->fence ^ (uint64_t)world->fake.now_us) * 0x100000001b3;
}

/* Reads, decides, writes the absolute value. The resource rejects a fence older than its last. */
static void change(struct actor *actor, lk_hold *holds, size_t n)
{
    struct world *world = actor->world;
    int64_t seen[KEYS] = {0};
    for (size_t i = 0; i < n; i++) {
        struct resource *resource = &world->resources[index_of(&holds[i])];
        if (holds[i].fence < resource->last_fence)
            return;
        resource->last_fence = holds[i].fence;
        seen[i] = resource->value;
    }
    fake_sleep_us(&world->fake, 1 + (int64_t)below(world, LEASE_MS * 1000 / 2));
    if (below(world, 10) == 0)
        lk_extend(&holds[0], LEASE_MS);
    if (!all_ours(holds, n))
        return;
    if (below(world, 3) == 0) /* a stall after the check: only the fence protects now */
        fake_sleep_us(&world->fake, 1 + (int64_t)below(world, 3 * LEASE_MS * 1000));
    for (size_t i = 0; i < n; i++) {
        struct resource *resource = &world->resources[index_of(&holds[i])];
        if (holds[i].fence < resource->last_fence)
            continue;
        resource->value = seen[i] + 1;
        resource->accepted++;
    }
}

/* Tries both keys in one call. Returns how many were granted; *ret_first is the first of them. */
static size_t try_each(struct actor *actor, const lk_request *requests, lk_hold **ret_first)
{
    lk_hold *holds[KEYS] = {&actor->holds[0], &actor->holds[1]};
    lk_status statuses[KEYS];
    lk_try_each(actor->client, requests, KEYS, holds, statuses);
    *ret_first = holds[statuses[0] == LK_OK ? 0 : 1];
    return (statuses[0] == LK_OK) + (statuses[1] == LK_OK);
}

/* Releases the holds, first with lk_release_each() if at_once. */
static void release(struct actor *actor, lk_hold *first, size_t n, bool at_once)
{
    lk_hold *holds[KEYS] = {first, first + n - 1};
    if (at_once)
        lk_release_each(holds, n, NULL);
    for (size_t i = n; i-- > 0;) {
        lk_release(holds[i]); /* after the other: does nothing */
        actor->inside[index_of(holds[i])] = false;
    }
}

static void act(void *arg)
{
    struct actor *actor = arg;
    struct world *world = actor->world;
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = below(world, 5) == 0 ? 2 : 1;
        size_t first = below(world, KEYS);
        lk_request requests[KEYS] = {0};
        for (size_t i = 0; i < n; i++) {
            requests[i].key = keys[(first + i) % KEYS];
            requests[i].wait_ms = (int64_t)below(world, 4 * LEASE_MS);
            requests[i].lease_ms = below(world, 3) == 0 ? 20 + (int64_t)below(world, 80) : 0;
        }
        lk_hold *first_hold = actor->holds;
        bool at_once = world->at_once && below(world, 3) == 0;
        if (at_once) {
            requests[1].key = keys[(first + 1) % KEYS];
            requests[0].wait_ms = requests[1].wait_ms = 0;
            n = try_each(actor, requests, &first_hold);
        } else if ((n == 1 ? lk_acquire(actor->client, requests, actor->holds)
                           : lk_acquire_many(actor->client, requests, n, actor->holds)) != LK_OK) {
            n = 0;
        }
        if (n > 0) {
            for (size_t i = 0; i < n; i++)
                enter(actor, &first_hold[i]);
            change(actor, first_hold, n);
            release(actor, first_hold, n, at_once);
        }
        fake_sleep_us(&world->fake, 1 + (int64_t)below(world, 20000));
    }
    world->n_running--;
}

static void watch(void *arg)
{
    enum { LOOK_US = LEASE_MS * 1000 / 12 }; /* a quarter of the time between renewals */
    lk_client *client = arg;
    struct fake *fake = client->env.ctx;
    struct world *world = fake->test;
    while (world->n_running > 0) {
        watchdog_step(client);
        janitor_step(client);
        fake_sleep_us(fake, LOOK_US);
    }
    world->n_watching--;
}

/* Ends the faults and lets the janitors finish. A lock that is still held then has no holder. This
 * takes much less time than a lease. */
static void clean_up(void *arg)
{
    struct world *world = arg;
    while (world->n_watching > 0)
        fibers_sleep_us(&world->fibers, 100);
    world->faults_permille = world->stalls_permille = 0;
    for (int i = 0; i < CLIENTS; i++)
        while (janitor_step(world->clients[i]) != INT64_MAX)
            fibers_sleep_us(&world->fibers, 100);
    for (int key = 0; key < KEYS && world->no_late; key++)
        if (fake_held(&world->fake, keys[key], NULL))
            report(world, "a lock that stands for nobody", key);
}

/* -- one run -------------------------------------------------------------------------------------
 */

static void check_invariants(struct world *world)
{
    for (int key = 0; key < KEYS; key++) {
        int holders = 0;
        for (int i = 0; i < ACTORS; i++) {
            struct actor *actor = &world->actors[i];
            if (!actor->inside[key] || lk_check(actor->of_key[key], NULL) != LK_OK)
                continue;
            holders++;
            if (!fake_held(&world->fake, keys[key], actor->of_key[key]->token))
                report(world, "a holder that the server does not know", key);
        }
        if (holders > 1)
            report(world, "two holders", key);
    }
}

static void check_end(struct world *world)
{
    world->fake.now_us += STALL_US_MAX + 1000000; /* all leases and late messages are over */
    for (int key = 0; key < KEYS; key++) {
        if (world->resources[key].value != world->resources[key].accepted)
            report(world, "a lost update", key);
        fake_held(&world->fake, keys[key], NULL); /* delivers late messages */
    }
    world->fake.now_us += 1000000;
    for (int key = 0; key < KEYS; key++)
        if (fake_held(&world->fake, keys[key], NULL))
            report(world, "a lock that outlived its lease", key);
}

static void add_stats(lk_stats *sum, const lk_client *client)
{
    lk_stats stats;
    lk_client_stats(client, &stats);
    sum->grants += stats.grants;
    sum->renewals += stats.renewals;
    sum->lost += stats.lost;
    sum->timeouts += stats.timeouts;
    sum->cleanups += stats.cleanups;
    sum->handovers += stats.handovers;
    sum->pending += stats.pending;
    sum->pending_done += stats.pending_done;
}

static struct world world; /* of the last run; the fibers' stacks are reused by the next */

uint64_t simulate(uint64_t seed, const lk_provider *provider, lk_stats *sum)
{
    struct fibers fibers = world.fibers;
    world = (struct world){.fibers = fibers};
    fake_init(&world.fake, seed);
    world.fake.test = &world;
    world.fake.sleep_us = sleep_roughly;
    world.fake.fault = fail_sometimes;
    world.fake.env.point = stop_anywhere;
    world.fake.latency_us = 200 + (int64_t)below(&world, 3000);
    world.fake.timeout_us = 10000;
    world.fake.late_us = (int64_t)below(&world, 3 * LEASE_MS * 1000);
    world.fake.look_us = 3000;
    world.fake.tell_expiry = below(&world, 2);
    world.faults_permille = (unsigned)below(&world, 4) * 15;
    world.stalls_permille = (unsigned)below(&world, 4) * 3;
    world.n_running = ACTORS;
    world.n_watching = CLIENTS;
    world.no_late = below(&world, 2);
    world.at_once = provider->try_each != NULL;
    bool lines = seed % 4 >= 2; /* local queues, three actors per client */
    fibers_begin(&world.fibers, &world.fake.now_us);
    for (int i = 0; i < CLIENTS; i++) {
        lk_options options = {.lease_ms = LEASE_MS,
                              .local_queue = lines,
                              .local_handovers = lines ? (int32_t)(seed % HANDOVERS_MAX) : 0};
        world.clients[i] = fake_open(&world.fake, provider, &options);
        fibers_spawn(&world.fibers, 0, watch, world.clients[i]);
    }
    for (int i = 0; i < ACTORS; i++) {
        world.actors[i].world = &world;
        world.actors[i].client = world.clients[i % (lines ? CLIENTS - 1 : CLIENTS)];
        fibers_spawn(&world.fibers, (int64_t)below(&world, 5000), act, &world.actors[i]);
    }
    fibers_spawn(&world.fibers, 0, clean_up, &world);
    while (fibers_step(&world.fibers))
        check_invariants(&world);
    check_end(&world);
    for (int i = 0; i < CLIENTS; i++) {
        add_stats(sum, world.clients[i]);
        lk_close(world.clients[i]);
    }
    return world.trace;
}

const char *simulation_broken(void)
{
    return world.broken;
}

void simulation_end(void)
{
    fibers_free(&world.fibers);
}
