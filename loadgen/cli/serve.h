/* Runs `make serve`: private lock servers and two instances of the service to play with. While the
 * page wants the wire between them cut (app/lab/lab.h, /v1/lab/wire), Redis is paused (SIGSTOP).
 * With --follow, a class is served beside them (follow_command.h), by a process of its own. */
#ifndef SERVE_H
#define SERVE_H

#include "options.h"

/* Returns the program's exit status once it is stopped. */
int serve_run(const struct options *options);

#endif
