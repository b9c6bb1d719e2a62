/*
 * Running a command for as long as its locks last.
 *
 * The command has a process group of its own, so that what it started ends with it; a terminal is
 * handed to that group. It dies with us (PR_SET_PDEATHSIG) even if we are killed by SIGKILL.
 * One command per process; called from the main thread but for cmd_run_on_lost().
 */
#ifndef LOCKKIT_CMD_RUN_H
#define LOCKKIT_CMD_RUN_H

#include "lockkit.h"

/* Catches the signals that cmd_run() passes on; until then they do what they always do. False with
 * errno. To be called before lk_open(). */
bool cmd_run_prepare(void);

/* For lk_request.on_lost: ends the command. */
void cmd_run_on_lost(void *arg, const lk_hold *hold, lk_loss cause);
/* Has it been called? */
bool cmd_run_lost(void);

/* Runs the command (NULL-terminated) until it ends. Signals are passed on to it. If a lock is
 * lost, it gets SIGTERM, and SIGKILL after grace_ms. When it has ended, the rest of its process
 * group gets SIGKILL. Returns its exit status, 128 + N for signal N, or 126 or 127 with a message.
 */
int cmd_run(char **command, int64_t grace_ms);

#endif
