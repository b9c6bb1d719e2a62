/* vsnprintf(), several times as fast for the formats of answers. */
#ifndef FORMAT_H
#define FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* Writes at most size - 1 bytes and a NUL; size > 0. Returns the length without a limit. Fast for
 * %s, %d and %ld (PRId64 on 64-bit machines). With any other conversion it calls vsnprintf(). */
int format_text(char *ret, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
