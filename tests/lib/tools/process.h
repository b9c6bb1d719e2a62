/* Identifies processes, reads their state, polls until a condition is true. */
#ifndef TEST_PROCESS_H
#define TEST_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel may reuse a pid. A pid with its start time identifies one process. */
struct process {
    pid_t pid;
    long long started; /* clock ticks since boot; -1: there was none */
};

struct process process_of(pid_t pid);
/* True if it has not ended; a zombie has ended. */
bool process_runs(struct process process);
/* True if it has ended and been reaped. */
bool process_gone(struct process process);
/* True if it is stopped by SIGSTOP. */
bool process_stopped(struct process process);
/* True if it sleeps; a thread's id may be used as the pid. */
bool process_sleeps(struct process process);
/* Sends a signal to the children of pid. */
void process_signal_children(pid_t pid, int signal);
/* How many file descriptors this process has open. */
int process_count_fds(void);

int64_t test_now_ms(void); /* monotonic */
/* True as soon as is_so(arg) is true; false if it was not within wait_ms. */
bool wait_until(bool (*is_so)(void *arg), void *arg, int64_t wait_ms);
/* Returns full if TEST_FULL=1, else usual. */
int64_t test_size(int64_t usual, int64_t full);

#endif
