/* One line on stderr that is overwritten as work goes on; nothing unless stderr is a terminal. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "options.h"

void progress_step(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void progress_clear(const struct options *options);
/* As load_options.progress; ctx is the struct run. */
void progress_load(void *ctx, const struct load_progress *now);

#endif
