/* What `make serve` runs: private Redis and one instance of the service to play with. Redis is
 * stopped while the page wishes the wire between them cut (app/lab/lab.h, /v1/lab/wire). */
#ifndef SERVE_H
#define SERVE_H

#include "options.h"

/* Returns the program's exit status once it was stopped. */
int serve_run(const struct options *options);

#endif
