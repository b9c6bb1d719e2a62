/* Other projects' clients, run as shell commands. */
#ifndef TEST_FOREIGN_H
#define TEST_FOREIGN_H

#include <stdbool.h>
#include <stdio.h>

enum { FOREIGN_TEXT_MAX = 512 };

/* Runs a shell command (printf format); ret gets its output without the last newline. False if it
 * could not be run or failed. */
bool foreign_run(char ret[FOREIGN_TEXT_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* True if the command's output is exactly this. */
bool foreign_says(const char *want, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
