/* What `make serve` runs: private Redis and one instance of the service to play with. */
#ifndef SERVE_H
#define SERVE_H

#include "options.h"

/* Returns the program's exit status once it was stopped. */
int serve_run(const struct options *options);

#endif
