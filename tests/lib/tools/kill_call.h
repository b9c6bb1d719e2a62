/*
 * Kills another process at its nth system call: it dies when it enters the call, so the call has no
 * effect. The calls of all its threads count, in the order in which they are entered (ptrace(2)).
 * Linux 5.3. Threading: one thread uses a killer at a time; each killer has a tracing thread.
 */
#ifndef TEST_KILL_CALL_H
#define TEST_KILL_CALL_H

#include <stdbool.h>
#include <sys/types.h>

struct kill_call;

struct killed {
    bool at_call;   /* at its nth call; false: it had entered fewer, or ended before */
    long number;    /* that call's number, such as SYS_write */
    bool by_itself; /* it ended without a kill, or could not be traced */
};

/* Traces a running process, whoever its parent is. Its calls count from the return on. NULL: no
 * memory. */
struct kill_call *kill_call_attach(pid_t pid, int n);
/* Starts a program, argv[0], as a child. Its calls count from its first instruction on. The file
 * log gets its output. */
struct kill_call *kill_call_start(char *const argv[], const char *log, int n);
/* True if the process has ended. */
bool kill_call_ended(const struct kill_call *killer);
/* Kills the process if it has not come to its nth call. Returns once it is dead; a child is reaped.
 */
struct killed kill_call_end(struct kill_call *killer);

#endif
