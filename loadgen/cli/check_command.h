/* The command check: runs the checkers on a history, with or without the audit of its run. */
#ifndef CHECK_COMMAND_H
#define CHECK_COMMAND_H

#include "options.h"

/* Returns the program's exit status. */
int check_command(const struct options *options);

#endif
