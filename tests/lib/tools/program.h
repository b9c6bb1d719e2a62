/* Programs as child processes of a test. */
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Runs argv[0], a path, as a child; argv is NULL-terminated. The caller must call program_ends().
 * Standard output goes to the file `output`, standard error to the file `messages` (NULL: to
 * `output`); both NULL: to our own. Returns the pid. Fails the test if it cannot be started. */
pid_t program_start(const char *const *argv, const char *output, const char *messages);
/* Waits for a child. True if it ended within wait_ms; its status is as of waitpid(2). If it did
 * not, it is killed and reaped. */
bool program_ends(pid_t pid, int64_t wait_ms, int *ret_status);

#endif
