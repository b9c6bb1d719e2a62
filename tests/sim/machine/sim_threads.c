#include "sim_threads.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* lk_try_each() takes 100 KB of its caller's stack. */
enum { STACK_BYTES = 512 * 1024, NAME_MAX_BYTES = 16, HELD_MAX = 8, GUARD_BYTES = 4096 };

struct sim_fiber {
    ucontext_t context;
    char *stack;
    void *(*run)(void *arg);
    void *arg, *result;
    char name[NAME_MAX_BYTES];
    int group;
    uint32_t number; /* in order of creation */
    bool ready, ended, woken;
    const void *on;   /* it waits for this; NULL: only for the clock */
    int64_t until_us; /* if it is not ready */
    void *held[HELD_MAX];
    void *own;
    int saved_errno;
};

static struct {
    uint64_t random, hash;
    int64_t now_us;
    uint32_t steps_per_switch;
    ucontext_t outside;
    struct sim_fiber *all[SIM_FIBERS_MAX];
    size_t n;
    uint32_t n_ever;
    struct sim_fiber *current, *script;
    void (*script_run)(void *arg);
    int64_t paused_until_us[SIM_GROUPS_MAX];
    char *stacks[SIM_FIBERS_MAX]; /* of fibers that have ended */
    size_t n_stacks;
} sim;

void (*sim_at_step)(int group);
int64_t sim_wall_ahead_us[SIM_GROUPS_MAX];
const int64_t sim_wall_begin_us = INT64_C(1800000000000000);

/* -- chance ----------------------------------------------------------------------------------- */

/* SplitMix64 (Steele and others 2014). */
uint64_t sim_random(void)
{
    uint64_t z = sim.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t sim_below(uint32_t n)
{
    assert(n > 0);
    return (uint32_t)(sim_random() >> 33) % n;
}

bool sim_one_in(uint32_t n)
{
    return n > 0 && sim_below(n) == 0;
}

void sim_note(uint64_t what)
{
    sim.hash = (sim.hash ^ what) * 0x100000001b3u; /* FNV-1a, by words */
    sim.hash ^= sim.hash >> 29;
}

uint64_t sim_hash(void)
{
    return sim.hash;
}

int64_t sim_now_us(void)
{
    return sim.now_us;
}

/* -- which fiber runs next -------------------------------------------------------------------- */

static int64_t due_us(const struct sim_fiber *fiber)
{
    int64_t paused_us = sim.paused_until_us[fiber->group];
    int64_t until_us = fiber->ready ? sim.now_us : fiber->until_us;
    return until_us > paused_us ? until_us : paused_us;
}

/* NULL: none ever. */
static struct sim_fiber *choose(void)
{
    struct sim_fiber *chosen = NULL;
    int64_t first_us = SIM_FOREVER;
    uint32_t n = 0;
    for (size_t i = 0; i < sim.n; i++) {
        struct sim_fiber *fiber = sim.all[i];
        int64_t at_us = due_us(fiber);
        if (at_us == SIM_FOREVER)
            continue;
        if (at_us < sim.now_us)
            at_us = sim.now_us;
        if (at_us < first_us) {
            first_us = at_us;
            n = 0;
        }
        if (at_us == first_us && sim_below(++n) == 0)
            chosen = fiber;
    }
    if (chosen && first_us > sim.now_us)
        sim.now_us = first_us;
    return chosen;
}

static void go_to(ucontext_t *from, struct sim_fiber *next)
{
    struct sim_fiber *self = sim.current;
    if (next == self)
        return;
    if (self)
        self->saved_errno = errno;
    sim.current = next;
    swapcontext(from, next ? &next->context : &sim.outside);
    if (self)
        errno = self->saved_errno;
}

static void switch_away(void)
{
    struct sim_fiber *self = sim.current, *next = choose();
    if (next) {
        sim.now_us += 1 + sim_below(4); /* nothing is for free */
        next->woken = next->ready;
        next->ready = true;
        next->on = NULL;
        sim_note((uint64_t)next->number << 48 ^ (uint64_t)sim.now_us);
    }
    go_to(&self->context, next);
}

/* Its memory stays: others may ask whether it has ended. */
static void end(struct sim_fiber *fiber)
{
    size_t i = 0;
    while (sim.all[i] != fiber)
        i++;
    memmove(&sim.all[i], &sim.all[i + 1], (sim.n - i - 1) * sizeof sim.all[0]);
    sim.n--;
    fiber->ended = true;
    if (sim.n_stacks < SIM_FIBERS_MAX)
        sim.stacks[sim.n_stacks++] = fiber->stack;
}

static void start(void)
{
    struct sim_fiber *self = sim.current;
    self->result = self->run(self->arg);
    end(self);
    sim_wake(self, INT32_MAX);
    if (self == sim.script)
        go_to(&self->context, NULL);
    switch_away();
    abort();
}

/* -- fibers ----------------------------------------------------------------------------------- */

static char *new_stack(void)
{
    if (sim.n_stacks > 0)
        return sim.stacks[--sim.n_stacks];
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0)
        abort();
    return stack;
}

static void make_context(ucontext_t *context, char *stack)
{
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_BYTES;
    context->uc_link = NULL;
    makecontext(context, start, 0);
}

struct sim_fiber *sim_spawn(int group, const char *name, void *(*run)(void *arg), void *arg)
{
    if (sim.n == SIM_FIBERS_MAX)
        return NULL;
    struct sim_fiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber)
        abort();
    fiber->stack = new_stack();
    fiber->run = run;
    fiber->arg = arg;
    fiber->group = group;
    fiber->ready = true;
    fiber->number = ++sim.n_ever;
    sim_name(fiber, name);
    make_context(&fiber->context, fiber->stack);
    return sim.all[sim.n++] = fiber;
}

struct sim_fiber *sim_self(void)
{
    return sim.current;
}

int sim_group(void)
{
    return sim.current ? sim.current->group : SIM_WORLD;
}

void sim_name(struct sim_fiber *fiber, const char *name)
{
    snprintf(fiber->name, sizeof fiber->name, "%s", name);
}

void **sim_own(void)
{
    return sim.current ? &sim.current->own : NULL;
}

bool sim_ended(const struct sim_fiber *fiber, void **ret_result)
{
    if (fiber->ended && ret_result)
        *ret_result = fiber->result;
    return fiber->ended;
}

void sim_step(void)
{
    struct sim_fiber *self = sim.current;
    if (!self)
        return;
    if (sim_at_step && self->group != SIM_WORLD)
        sim_at_step(self->group);
    if (sim.paused_until_us[self->group] > sim.now_us || sim_one_in(sim.steps_per_switch))
        switch_away();
}

bool sim_wait(const void *on, int64_t until_us)
{
    struct sim_fiber *self = sim.current;
    assert(self);
    self->ready = false;
    self->on = on;
    self->until_us = until_us;
    switch_away();
    return self->woken;
}

void sim_sleep_us(int64_t us)
{
    sim_wait(NULL, us > 0 ? sim.now_us + us : sim.now_us);
}

int sim_wake(const void *on, int n)
{
    int woken = 0;
    for (; woken < n; woken++) {
        struct sim_fiber *chosen = NULL;
        uint32_t waiting = 0;
        for (size_t i = 0; i < sim.n; i++) {
            struct sim_fiber *fiber = sim.all[i];
            if (!fiber->ready && fiber->on == on && sim_below(++waiting) == 0)
                chosen = fiber;
        }
        if (!chosen)
            break;
        chosen->ready = true;
    }
    return woken;
}

/* -- groups ----------------------------------------------------------------------------------- */

void sim_pause(int group, int64_t until_us)
{
    sim.paused_until_us[group] = until_us;
}

void sim_kill(int group)
{
    for (size_t i = 0; i < sim.n;) {
        struct sim_fiber *fiber = sim.all[i];
        if (fiber->group != group) {
            i++;
            continue;
        }
        end(fiber);
        for (size_t j = 0; j < HELD_MAX; j++)
            if (fiber->held[j]) {
                *(struct sim_fiber **)fiber->held[j] = NULL;
                sim_wake(fiber->held[j], INT32_MAX);
            }
    }
    if (sim.current && sim.current->ended)
        switch_away();
}

/* -- mutexes: the first word is the fiber that has it ----------------------------------------- */

bool sim_try_lock(void *mutex)
{
    struct sim_fiber **owner = mutex, *self = sim.current;
    if (*owner)
        return false;
    if (!self)
        return true;
    *owner = self;
    for (size_t i = 0; i < HELD_MAX; i++)
        if (!self->held[i]) {
            self->held[i] = mutex;
            return true;
        }
    abort();
}

void sim_lock(void *mutex)
{
    sim_step();
    while (!sim_try_lock(mutex)) {
        assert(*(struct sim_fiber **)mutex != sim.current); /* it would wait for itself */
        sim_wait(mutex, SIM_FOREVER);
    }
}

void sim_unlock(void *mutex)
{
    struct sim_fiber **owner = mutex, *self = sim.current;
    assert(*owner == self);
    *owner = NULL;
    for (size_t i = 0; self && i < HELD_MAX; i++)
        if (self->held[i] == mutex)
            self->held[i] = NULL;
    sim_wake(mutex, INT32_MAX);
}

/* -- one run ---------------------------------------------------------------------------------- */

void sim_begin(uint64_t seed, uint32_t steps_per_switch)
{
    memset(&sim, 0, sizeof sim);
    memset(sim_wall_ahead_us, 0, sizeof sim_wall_ahead_us);
    sim_at_step = NULL;
    sim.random = seed * 0x9e3779b97f4a7c15u + 1;
    sim.steps_per_switch = steps_per_switch;
    sim.now_us = 1000000;
}

static void *run_script(void *arg)
{
    sim.script_run(arg);
    return NULL;
}

bool sim_run(void (*script)(void *arg), void *arg)
{
    sim.script_run = script;
    sim.script = sim_spawn(SIM_WORLD, "script", run_script, arg);
    go_to(&sim.outside, sim.script);
    return sim.script->ended;
}

void sim_print_fibers(void)
{
    for (size_t i = 0; i < sim.n; i++) {
        const struct sim_fiber *fiber = sim.all[i];
        fprintf(stderr, "  group %d %-15s %s on %p until %lld\n", fiber->group, fiber->name,
                fiber->ready ? "ready" : "waits", fiber->on, (long long)fiber->until_us);
    }
}
