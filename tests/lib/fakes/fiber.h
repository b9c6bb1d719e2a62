/*
 * Cooperative threads on a virtual clock. The fiber that is due first runs until it sleeps again.
 * One thread, no timing: the same seed replays a run exactly.
 */
#ifndef FIBER_H
#define FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

enum { FIBERS_MAX = 16, FIBER_STACK_BYTES = 256 * 1024 };

struct fibers;

struct fiber {
    ucontext_t context;
    struct fibers *fibers;
    void (*run)(void *arg);
    void *arg;
    int64_t due_us;
    bool ended;
    char *stack;
    void *tsan;
};

struct fibers {
    int64_t *now_us; /* the clock: set before a fiber runs */
    struct fiber all[FIBERS_MAX];
    size_t n;
    struct fiber *current;
    ucontext_t scheduler;
    void *tsan;
};

/* Zero the struct before its first run. Its stacks are kept between runs. */
void fibers_begin(struct fibers *fibers, int64_t *now_us);
void fibers_free(struct fibers *fibers);

/* run(arg) is called when the clock reaches due_us. */
void fibers_spawn(struct fibers *fibers, int64_t due_us, void (*run)(void *arg), void *arg);

/* Runs the fiber that is due first until it sleeps or ends. False: all have ended. */
bool fibers_step(struct fibers *fibers);

/* From inside a fiber only. */
void fibers_sleep_us(struct fibers *fibers, int64_t us);

#endif
