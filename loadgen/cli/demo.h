/* Runs `make demo`: a private Redis, two instances of the service on one store, a set of guards. */
#ifndef DEMO_H
#define DEMO_H

#include "options.h"

/* Returns the program's exit status. */
int demo_run(const struct options *options);

#endif
