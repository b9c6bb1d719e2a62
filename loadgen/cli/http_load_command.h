/* The command http: plain load on any HTTP server, no verdict. */
#ifndef HTTP_LOAD_COMMAND_H
#define HTTP_LOAD_COMMAND_H

#include "options.h"

extern const struct argp http_load_command_argp;

/* Returns the program's exit status. */
int http_load_command(const struct options *options);

#endif
