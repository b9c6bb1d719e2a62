/* The command http: plain load on any HTTP server, no verdict. */
#ifndef PLAIN_COMMAND_H
#define PLAIN_COMMAND_H

#include "options.h"

extern const struct argp plain_command_argp;

/* Returns the program's exit status. */
int plain_command(const struct options *options);

#endif
