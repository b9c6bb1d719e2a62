#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define CLEAR_LINE "\r\033[K"

static bool is_shown(const struct options *options)
{
    return !options->quiet && isatty(STDERR_FILENO);
}

void progress_step(const struct options *options, const char *format, ...)
{
    char line[200];
    va_list args;
    if (!is_shown(options))
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, CLEAR_LINE "%.78s", line);
    fflush(stderr);
}

void progress_clear(const struct options *options)
{
    if (is_shown(options)) {
        fputs(CLEAR_LINE, stderr);
        fflush(stderr);
    }
}

void progress_load(struct run *run, const struct load_progress *now)
{
    if (is_shown(run->options))
        live_draw(&run->live, run, now);
}

void progress_load_done(struct run *run)
{
    if (is_shown(run->options))
        live_clear(&run->live);
}
