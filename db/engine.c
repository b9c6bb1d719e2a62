/* What all engines need: error messages, the rules they share, the clock. */
#include "engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

db_status db_fail(db_error *error, db_status status, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
        error->status = status;
    }
    return status;
}

bool db_text_ok(const char *text, size_t max)
{
    return strnlen(text, max + 1) <= max;
}

bool db_name_ok(const char *name, size_t max)
{
    return name[0] != '\0' && db_text_ok(name, max);
}

db_status db_why_refused(int64_t row_epoch, int64_t row_last_fence, int64_t epoch, int64_t fence,
                         db_status otherwise)
{
    if (row_epoch != epoch)
        return DB_CONFLICT;
    return fence != 0 && row_last_fence > fence ? DB_STALE_FENCE : otherwise;
}

void db_reset_txn(char (*ret)[DB_KEY_MAX + 1], const char *resource, int64_t epoch)
{
    snprintf(*ret, sizeof *ret, "reset\t%s:%" PRId64, resource, epoch);
}

int64_t db_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

void db_sleep_us(int64_t us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

int64_t db_backoff_us(int64_t first_us, int64_t most_us, int n)
{
    for (; n > 0 && first_us < most_us; n--)
        first_us *= 2;
    return first_us < most_us ? first_us : most_us;
}

/* Counters are read one by one, for metrics. */
void db_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}
