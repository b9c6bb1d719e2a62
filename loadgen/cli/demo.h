/* What `make demo` runs: private Redis, two instances of the service on one store, every guard. */
#ifndef DEMO_H
#define DEMO_H

#include "options.h"

/* Returns the program's exit status. */
int demo_run(const struct options *options);

#endif
