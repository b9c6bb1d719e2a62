#include "progress.h"
#include "text.h"

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

void progress_load(const struct run *run, const struct load_progress *now)
{
    char completed[TEXT_MAX], planned[TEXT_MAX + 8] = "", elapsed[TEXT_MAX], n[TEXT_MAX];
    if (run->options->duration_ms == 0)
        snprintf(planned, sizeof planned, " of %s", text_count(n, (int64_t)run->tally.n));
    progress_step(run->options, "%s under %s: %s%s requests done, %s", run->workload->name,
                  run->guard, text_count(completed, (int64_t)now->completed), planned,
                  text_time_us(elapsed, now->elapsed_us));
}
