/* loadgen follow [--site DIR] [--listen HOST:PORT]: a class goes along on its phones. */
#ifndef FOLLOW_COMMAND_H
#define FOLLOW_COMMAND_H

#include "options.h"

/* The last line that it prints begins with this: it serves. */
#define FOLLOW_READY "The presenter's page"

/* Serves until it is stopped. Returns the exit status. */
int follow_command(const struct options *options);

#endif
