/* What is being done, on stderr and overwritten as work goes on; nothing unless that is a terminal.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "run.h"

void progress_step(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void progress_clear(const struct options *options);
/* The view of a running load; to be ended before anything else is written. */
void progress_load(struct run *run, const struct load_progress *now);
void progress_load_done(struct run *run);

#endif
