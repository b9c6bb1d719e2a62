#include "fiber.h"

#include <assert.h>
#include <stdlib.h>

/* ThreadSanitizer must be told when the program switches stacks. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define FIBER_TSAN
#endif

#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#else
static void *__tsan_get_current_fiber(void)
{
    return NULL;
}
static void *__tsan_create_fiber(unsigned flags)
{
    (void)flags;
    return NULL;
}
static void __tsan_destroy_fiber(void *fiber)
{
    (void)fiber;
}
static void __tsan_switch_to_fiber(void *fiber, unsigned flags)
{
    (void)fiber;
    (void)flags;
}
#endif

/* A run may stop before all fibers have ended. ThreadSanitizer allows a limited number of fibers.
 */
static void forget_unended(struct fibers *fibers)
{
    for (size_t i = 0; i < fibers->n; i++) {
        if (!fibers->all[i].ended)
            __tsan_destroy_fiber(fibers->all[i].tsan);
    }
    fibers->n = 0;
}

void fibers_begin(struct fibers *fibers, int64_t *now_us)
{
    forget_unended(fibers);
    fibers->now_us = now_us;
    fibers->current = NULL;
    fibers->tsan = __tsan_get_current_fiber();
}

void fibers_free(struct fibers *fibers)
{
    forget_unended(fibers);
    for (size_t i = 0; i < FIBERS_MAX; i++)
        free(fibers->all[i].stack);
}

/* makecontext() passes only ints, so the pointer comes in two halves. */
static void start(unsigned high, unsigned low)
{
    struct fiber *fiber = (struct fiber *)(uintptr_t)((uint64_t)high << 32 | low);
    fiber->run(fiber->arg);
    fiber->ended = true;
    /* No return: each function must leave on the shadow stack on which it was entered. */
    __tsan_switch_to_fiber(fiber->fibers->tsan, 0);
    setcontext(&fiber->fibers->scheduler);
}

void fibers_spawn(struct fibers *fibers, int64_t due_us, void (*run)(void *arg), void *arg)
{
    assert(fibers->n < FIBERS_MAX);
    struct fiber *fiber = &fibers->all[fibers->n++];
    if (!fiber->stack)
        fiber->stack = malloc(FIBER_STACK_BYTES);
    assert(fiber->stack);
    fiber->fibers = fibers;
    fiber->run = run;
    fiber->arg = arg;
    fiber->due_us = due_us;
    fiber->ended = false;
    fiber->tsan = __tsan_create_fiber(0);
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = FIBER_STACK_BYTES;
    fiber->context.uc_link = NULL;
    uint64_t address = (uintptr_t)fiber;
    makecontext(&fiber->context, (void (*)(void))start, 2, (unsigned)(address >> 32),
                (unsigned)address);
}

bool fibers_step(struct fibers *fibers)
{
    struct fiber *next = NULL;
    for (size_t i = 0; i < fibers->n; i++) {
        struct fiber *fiber = &fibers->all[i];
        if (!fiber->ended && (!next || fiber->due_us < next->due_us))
            next = fiber;
    }
    if (!next)
        return false;
    if (*fibers->now_us < next->due_us)
        *fibers->now_us = next->due_us;
    fibers->current = next;
    __tsan_switch_to_fiber(next->tsan, 0);
    swapcontext(&fibers->scheduler, &next->context);
    fibers->current = NULL;
    if (next->ended)
        __tsan_destroy_fiber(next->tsan);
    return true;
}

void fibers_sleep_us(struct fibers *fibers, int64_t us)
{
    struct fiber *fiber = fibers->current;
    fiber->due_us = *fibers->now_us + us;
    __tsan_switch_to_fiber(fibers->tsan, 0);
    swapcontext(&fiber->context, &fibers->scheduler);
}
