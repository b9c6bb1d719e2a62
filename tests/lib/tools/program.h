/* Programs as child processes of a test. */
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Runs argv[0], a path, with argv up to its NULL as a child that program_ends() has to await. Its
 * output goes to the file of that name, its messages to another or, when NULL, to the same one;
 * both NULL: where ours go. The pid; the test fails when it cannot be started. */
pid_t program_start(const char *const *argv, const char *output, const char *messages);
/* Awaits a child. True when it ended within wait_ms, with its status as of waitpid(2); one that did
 * not is killed and reaped. */
bool program_ends(pid_t pid, int64_t wait_ms, int *ret_status);

#endif
