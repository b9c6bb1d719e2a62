/* Other people's clients: commands run as a user would type them. */
#ifndef TEST_FOREIGN_H
#define TEST_FOREIGN_H

#include <stdbool.h>
#include <stdio.h>

enum { FOREIGN_TEXT_MAX = 512 };

/* Runs a command of the shell in printf format and gives its output without the last newline. False
 * when it could not be run or did not end well. */
bool foreign_run(char ret[FOREIGN_TEXT_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* True: it says exactly this. */
bool foreign_says(const char *want, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
