/* Draws the plan of a round. */
#include "splitmix.h"
#include "torture_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TWO_MINUTES_MS = 120000, STRIKE_AFTER_MS = 100, LONG_LEASE_MS = 30000 };

const struct torture_fault_info torture_faults[TORTURE_FAULTS] = {
#define TORTURE_FAULT_ROW(name, text, at, times, short_ms, long_ms, harms)                         \
    {text, at, times, short_ms, long_ms, harms},
    TORTURE_FAULT_MAP(TORTURE_FAULT_ROW)
#undef TORTURE_FAULT_ROW
};

uint32_t torture_below(uint64_t *state, uint32_t n)
{
    *state = splitmix(*state);
    return (uint32_t)(*state % n);
}

static bool one_in(uint64_t *state, uint32_t n)
{
    return torture_below(state, n) == 0;
}

static uint32_t one_of(uint64_t *state, const uint32_t *list, size_t n)
{
    return list[torture_below(state, (uint32_t)n)];
}
#define ONE_OF(state, ...)                                                                         \
    one_of(state, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

/* -- settings ---------------------------------------------------------------------------------- */

static bool may_draw(const struct torture_guard *guard, const struct torture_limits *limits)
{
    if (limits->guard != NULL)
        return strcmp(guard->name, limits->guard) == 0;
    return !limits->small || guard->servers == SERVERS_NONE || guard->servers == SERVERS_REDIS ||
           guard->servers == SERVERS_DATABASE;
}

static void draw_guard(struct torture_settings *is, uint64_t *state,
                       const struct torture_limits *limits)
{
    uint32_t all = 0;
    for (int i = 0; i < n_torture_guards; i++)
        all += may_draw(&torture_guards[i], limits) ? torture_guards[i].weight : 0;
    uint32_t chosen = torture_below(state, all);
    for (int i = 0; i < n_torture_guards; i++) {
        uint32_t weight = may_draw(&torture_guards[i], limits) ? torture_guards[i].weight : 0;
        if (chosen < weight) {
            is->guard = &torture_guards[i];
            return;
        }
        chosen -= weight;
    }
}

static enum torture_topology draw_topology(const struct torture_guard *guard, uint64_t *state,
                                           const struct torture_limits *limits)
{
    uint32_t chance = torture_below(state, 6);
    if (guard->servers == SERVERS_REDLOCK)
        return FIVE;
    if (guard->servers == SERVERS_ZOOKEEPER)
        return chance < 3 ? THREE : SINGLE;
    if (guard->servers != SERVERS_REDIS || limits->small)
        return SINGLE;
    return chance == 0 ? CLUSTER : chance < 3 ? SENTINEL : SINGLE;
}

static void draw_service(struct torture_settings *is, uint64_t *state,
                         const struct torture_limits *limits)
{
    draw_guard(is, state, limits);
    is->topology = draw_topology(is->guard, state, limits);
    is->postgres = one_in(state, 2) || is->guard->servers == SERVERS_POSTGRES;
    if (limits->store != NULL && is->guard->servers != SERVERS_POSTGRES)
        is->postgres = strcmp(limits->store, "postgres") == 0;
    is->instances = 1 + torture_below(state, 2);
    if (is->guard->one_process && !one_in(state, 4))
        is->instances = 1;
    if (limits->instances != 0)
        is->instances = limits->instances;
    is->workers = ONE_OF(state, 1, 2, 4, 8);
    is->lanes = one_in(state, 2);
    is->batch = ONE_OF(state, 1, 2, 16, 128);
    is->turns = ONE_OF(state, 1, 2, 8);
    is->lock_queue = one_in(state, 2);
    is->watchdog = one_in(state, 2);
    is->fence = !one_in(state, 6);
    is->fence_database = one_in(state, 3);
    is->lease_ms = ONE_OF(state, 300, 300, 1000, 1000, 5000, 30000);
    is->wait_ms = ONE_OF(state, 500, 1000, 3000);
}

static void draw_clients(struct torture_settings *is, uint64_t *state)
{
    is->clients = ONE_OF(state, 4, 8, 12);
    is->items = 1 + torture_below(state, 2);
    is->stock = ONE_OF(state, 50, 1000, 1000000);
    is->limit = ONE_OF(state, 0, 0, 3);
    is->accounts = 2 + torture_below(state, 3);
    is->balance = ONE_OF(state, 500, 100000);
    is->think_ms = ONE_OF(state, 0, 1, 10);
}

/* -- faults ------------------------------------------------------------------------------------ */

/* Is there something that the fault can strike? */
static bool can_strike(const struct torture_settings *is, enum torture_target at)
{
    enum torture_servers servers = is->guard->servers;
    bool redis = servers == SERVERS_REDIS || servers == SERVERS_REDLOCK;
    switch (at) {
    case AT_INSTANCE:
        return true;
    case AT_LOCKS: /* where locks are in the store, its own faults strike them */
        return redis || servers == SERVERS_ZOOKEEPER || servers == SERVERS_MEMCACHED ||
               (servers == SERVERS_POSTGRES && !is->postgres);
    case AT_REDIS:
        return redis && is->topology != SENTINEL && is->topology != CLUSTER;
    case AT_CACHE:
        return (redis && is->topology != SENTINEL && is->topology != CLUSTER) ||
               servers == SERVERS_MEMCACHED;
    case AT_LOCK_WIRES: /* Sentinels and clusters tell clients addresses of their own */
        return can_strike(is, AT_LOCKS) && is->topology != SENTINEL && is->topology != CLUSTER;
    case AT_LEADER:
        return is->topology == SENTINEL || is->topology == CLUSTER || is->topology == THREE;
    case AT_POSTGRES:
        return is->postgres;
    case AT_SQLITE:
        return !is->postgres;
    }
    return false;
}

/* A lock can be deleted under every lock guard; where it lies is no matter. */
static bool fits(const struct torture_settings *is, enum torture_fault fault)
{
    enum torture_servers servers = is->guard->servers;
    if (fault == TORTURE_DELETE)
        return servers != SERVERS_NONE;
    if (fault == TORTURE_LOCKS_KILL && (is->topology == SENTINEL || is->topology == CLUSTER))
        return false; /* a failover is another fault */
    if (fault == TORTURE_LOCKS_PAUSE && (is->topology == SENTINEL || is->topology == CLUSTER))
        return false;
    return can_strike(is, torture_faults[fault].at);
}

/* Each kind that fits exists in one round of two; in one round of ten none does. */
static void draw_faults(struct torture_settings *is, uint64_t *state,
                        const struct torture_limits *limits)
{
    bool none = one_in(state, 10);
    for (int i = 0; i < TORTURE_FAULTS; i++)
        is->faults[i] = one_in(state, 2) && !none && fits(is, (enum torture_fault)i);
    for (int i = 0; i < TORTURE_FAULTS && limits->fault != NULL; i++)
        if (strncmp(torture_faults[i].name, limits->fault, strlen(limits->fault)) == 0)
            is->faults[i] = fits(is, (enum torture_fault)i);
    is->faults[TORTURE_FAILOVER] = !none && fits(is, TORTURE_FAILOVER); /* what they are made for */
    is->faults_ms = ONE_OF(state, 3000, 6000, 12000);
    is->leave_broken = one_in(state, 2) && !none && (is->topology == FIVE || is->topology == THREE);
}

/* A round that trusts the lock alone: no fence, and no fault that could let two holders in. */
static void trust_the_lock(struct torture_settings *is)
{
    is->fence = false;
    is->lease_ms = LONG_LEASE_MS;
    if (is->guard->one_process)
        is->instances = 1;
    for (int i = 0; i < TORTURE_FAULTS; i++)
        if (torture_breaks(is, (enum torture_fault)i) != 0)
            is->faults[i] = false;
}

static int by_time(const void *a, const void *b)
{
    const struct torture_strike *x = a, *y = b;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return (x->fault > y->fault) - (x->fault < y->fault);
}

/* The next one comes after a random time, as if each moment were as likely as any other. */
static void draw_strikes(struct torture_plan *plan, enum torture_fault fault, uint64_t *state)
{
    const struct torture_fault_info *info = &torture_faults[fault];
    double mean_ms = TWO_MINUTES_MS / (double)info->per_two_minutes, at_ms = STRIKE_AFTER_MS;
    for (;;) {
        double chance = (torture_below(state, 1000000) + 1) / 1000000.0;
        at_ms += -log(chance) * mean_ms;
        if (at_ms >= plan->is.faults_ms || plan->n_strikes == TORTURE_STRIKES_MAX)
            return;
        plan->strikes[plan->n_strikes++] = (struct torture_strike){
            .at_ms = (uint32_t)at_ms,
            .for_ms = info->short_ms + torture_below(state, info->long_ms - info->short_ms + 1),
            .fault = fault,
            .who = torture_below(state, 1000),
            .chance = torture_below(state, 1000)};
    }
}

void torture_plan_draw(struct torture_plan *ret, uint64_t seed, const struct torture_limits *limits)
{
    uint64_t state = splitmix(seed);
    memset(ret, 0, sizeof *ret);
    ret->seed = seed;
    draw_service(&ret->is, &state, limits);
    draw_clients(&ret->is, &state);
    draw_faults(&ret->is, &state, limits);
    if (one_in(&state, 3) && ret->is.guard->a_lock && limits->instances == 0)
        trust_the_lock(&ret->is);
    for (int i = 0; i < TORTURE_FAULTS; i++)
        if (ret->is.faults[i])
            draw_strikes(ret, (enum torture_fault)i, &state);
    qsort(ret->strikes, (size_t)ret->n_strikes, sizeof *ret->strikes, by_time);
    torture_claim(&ret->is);
}

/* -- for people -------------------------------------------------------------------------------- */

static const char *topology_text(enum torture_topology topology)
{
    static const char *const texts[] = {[SINGLE] = "single",
                                        [SENTINEL] = "sentinel",
                                        [CLUSTER] = "cluster",
                                        [FIVE] = "five",
                                        [THREE] = "three"};
    return texts[topology];
}

void torture_settings_print(const struct torture_settings *is, FILE *out)
{
    fprintf(out, "%-18s %-8s %u on %-8s lease %5u  fence %-5s lanes %-3s batch %3u turns %u",
            is->guard->name, is->guard->servers == SERVERS_NONE ? "-" : topology_text(is->topology),
            is->instances, is->postgres ? "postgres" : "sqlite", is->lease_ms,
            !torture_is_fenced(is) ? "-"
            : is->fence_database   ? "store"
                                   : "lock",
            is->lanes ? "on" : "off", is->batch, is->turns);
}

void torture_plan_print(const struct torture_plan *plan, FILE *out)
{
    const struct torture_settings *is = &plan->is;
    fprintf(out, "seed %llu\n", (unsigned long long)plan->seed);
    torture_settings_print(is, out);
    fprintf(out,
            "\nworkers %u wait %u lock queue %s watchdog %s, %u clients, %u items of %u, limit %u, "
            "%u accounts of %u, think %u ms%s\n",
            is->workers, is->wait_ms, is->lock_queue ? "on" : "off", is->watchdog ? "on" : "off",
            is->clients, is->items, is->stock, is->limit, is->accounts, is->balance, is->think_ms,
            is->leave_broken ? ", a minority stays dead" : "");
    fprintf(out, "claims: %s, %s\n", is->claims_safe ? "no lost update" : "nothing",
            is->claims_progress ? "progress" : "no progress");
    for (int i = 0; i < plan->n_strikes; i++) {
        const struct torture_strike *strike = &plan->strikes[i];
        fprintf(out, "%6u ms  %-16s for %4u ms, who %u, chance %u\n", strike->at_ms,
                torture_faults[strike->fault].name, strike->for_ms, strike->who, strike->chance);
    }
}
