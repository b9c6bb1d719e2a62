/*
 * Threads as fibers in one thread, on a virtual clock, scheduled by a seed.
 *
 * Every thread of the simulated service is a fiber of a group: one group per instance, and the
 * world (clients, servers) in group SIM_WORLD. A fiber runs until it waits or until sim_step() lets
 * another one overtake it. Of all fibers that can run, a random one runs next. When none can, the
 * clock jumps to the first one that is due. So equal seeds give equal runs, and sim_hash() is
 * equal.
 *
 * One run per process: fork a child for each (sim_rounds.c), so that a killed group may leave
 * anything.
 */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_WORLD = 0, SIM_GROUPS_MAX = 1024, SIM_FIBERS_MAX = 1024 };
#define SIM_FOREVER INT64_MAX

struct sim_fiber;

/* -- one run ---------------------------------------------------------------------------------- */

/* steps_per_switch: how many steps a fiber goes on average before it is overtaken; 1: each. */
void sim_begin(uint64_t seed, uint32_t steps_per_switch);
/* Runs script(arg) as the first fiber, and all that it spawns, until it returns. False: it never
 * will, as every fiber waits for something that nobody does. */
bool sim_run(void (*script)(void *arg), void *arg);

int64_t sim_now_us(void);
uint64_t sim_random(void);
uint32_t sim_below(uint32_t n); /* 0 .. n-1; n > 0 */
bool sim_one_in(uint32_t n);    /* 0: never */
/* Mixes what happened into the run's hash. */
void sim_note(uint64_t what);
uint64_t sim_hash(void);

/* -- fibers ----------------------------------------------------------------------------------- */

struct sim_fiber *sim_spawn(int group, const char *name, void *(*run)(void *arg), void *arg);
struct sim_fiber *sim_self(void); /* NULL: outside of sim_run() */
int sim_group(void);
void sim_name(struct sim_fiber *fiber, const char *name);
/* A place of the running fiber for its user, NULL at first. NULL: no fiber runs. */
void **sim_own(void);
bool sim_ended(const struct sim_fiber *fiber, void **ret_result);

/* The running fiber may be overtaken here, its group paused or killed. May not return. */
void sim_step(void);
void sim_sleep_us(int64_t us);
/* Sleeps until sim_wake(on), or until the clock says until_us: false. */
bool sim_wait(const void *on, int64_t until_us);
/* Wakes at most n that wait on this, in random order. Returns how many. */
int sim_wake(const void *on, int n);

/* -- groups ----------------------------------------------------------------------------------- */

/* None of its fibers runs until then. */
void sim_pause(int group, int64_t until_us);
/* None of its fibers ever runs again. If it is the caller's own, does not return. Mutexes that they
 * hold are free then: only static ones outlive a process. */
void sim_kill(int group);
/* Called at each step of a group's fiber: the place for a pause or a kill. NULL: nothing. */
extern void (*sim_at_step)(int group);
/* Added to the wall clock of a group. */
extern int64_t sim_wall_ahead_us[SIM_GROUPS_MAX];
/* The wall clock at the begin of each run. */
extern const int64_t sim_wall_begin_us;

/* -- mutexes, for sim_wrap.c ------------------------------------------------------------------ */

void sim_lock(void *mutex);
bool sim_try_lock(void *mutex);
void sim_unlock(void *mutex);

/* Prints the fibers and what they wait for. */
void sim_print_fibers(void);

#endif
