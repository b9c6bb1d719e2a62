/* A second process for the tests of the store. Start it before the parent opens a store: a fork
 * copies neither the store's threads nor the right to its locks. */
#ifndef TESTS_DB_CHILD_H
#define TESTS_DB_CHILD_H

#include "fixture.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct child {
    pid_t pid;
    int from; /* read end of its reports */
};

/* body reports through the descriptor; its return value is the exit status. */
static inline struct child child_start(int (*body)(void *arg, int report), void *arg)
{
    int ends[2];
    assert_int_equal(0, pipe(ends));
    struct child child = {fork(), ends[0]};
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        _exit(body(arg, ends[1]));
    }
    close(ends[1]);
    return child;
}

/* Waits for one byte from the child; false if it has ended. */
static inline bool child_hear(const struct child *child, char *ret_byte)
{
    return read(child->from, ret_byte, 1) == 1;
}

static inline void child_expect(const struct child *child, char expected)
{
    char heard = '\0';
    assert_true(child_hear(child, &heard));
    assert_int_equal(expected, heard);
}

static inline void child_say(int report, char byte)
{
    if (write(report, &byte, 1) != 1)
        _exit(99);
}

static inline int child_reap(struct child *child)
{
    int status = 0;
    assert_int_equal(child->pid, waitpid(child->pid, &status, 0));
    close(child->from);
    child->pid = 0;
    return status;
}

static inline void child_kill(struct child *child)
{
    kill(child->pid, SIGKILL);
    int status = child_reap(child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static inline void child_expect_success(struct child *child)
{
    int status = child_reap(child);
    assert_true(WIFEXITED(status));
    assert_int_equal(0, WEXITSTATUS(status));
}

#endif
