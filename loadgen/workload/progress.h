/* The current step, on one line of stderr. Nothing is written unless stderr is a terminal. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "run.h"

void progress_step(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void progress_clear(const struct options *options);
/* The view of a running load. Call progress_load_done() before anything else is written. */
void progress_load(struct run *run, const struct load_progress *now);
void progress_load_done(struct run *run);

#endif
