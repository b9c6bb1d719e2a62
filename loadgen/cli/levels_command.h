/* The command levels: records all schedules of the levels. */
#ifndef LEVELS_COMMAND_H
#define LEVELS_COMMAND_H

#include "options.h"

/* Returns the program's exit status. */
int levels_command(const struct options *options);

#endif
