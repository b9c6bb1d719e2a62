/* The command site: makes the museum's pages from recordings. */
#ifndef SITE_COMMAND_H
#define SITE_COMMAND_H

#include "options.h"

/* Returns the program's exit status. */
int site_command(const struct options *options);

#endif
