/* The command compare: two reports side by side. */
#ifndef RATIOS_COMMAND_H
#define RATIOS_COMMAND_H

#include "options.h"

/* Returns the program's exit status. */
int ratios_command(const struct options *options);

#endif
