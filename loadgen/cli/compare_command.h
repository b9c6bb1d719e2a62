/* The command compare: two reports side by side. */
#ifndef COMPARE_COMMAND_H
#define COMPARE_COMMAND_H

#include "options.h"

/* Returns the program's exit status. */
int compare_command(const struct options *options);

#endif
