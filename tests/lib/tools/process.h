/* Telling processes apart, and waiting for something to become true by looking at it. */
#ifndef TEST_PROCESS_H
#define TEST_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A pid alone may be given to another process; with its start time it is one process for good. */
struct process {
    pid_t pid;
    long long started; /* clock ticks since boot; -1: there was none */
};

struct process process_of(pid_t pid);
/* It has not ended; a zombie has. */
bool process_runs(struct process process);
/* Nothing is left of it, not even a zombie. */
bool process_gone(struct process process);
/* Stopped by SIGSTOP. */
bool process_stopped(struct process process);
/* Waits for something; a thread's id will do for a process. */
bool process_sleeps(struct process process);
/* Sends a signal to the children of pid. */
void process_signal_children(pid_t pid, int signal);
/* Open descriptors of this process. */
int process_count_fds(void);

int64_t test_now_ms(void); /* monotonic */
/* True as soon as is_so(arg) is; false when it was not within wait_ms. */
bool wait_until(bool (*is_so)(void *arg), void *arg, int64_t wait_ms);
/* TEST_FULL=1: the sizes that the full run is for. */
int64_t test_size(int64_t usual, int64_t full);

#endif
