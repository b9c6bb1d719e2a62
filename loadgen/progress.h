/* One line on stderr that is overwritten as work goes on; nothing unless stderr is a terminal. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "run.h"

void progress_step(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void progress_clear(const struct options *options);
void progress_load(const struct run *run, const struct load_progress *now);

#endif
