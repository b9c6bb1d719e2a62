#include "format.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* "-9223372036854775808" */

struct out {
    char *text;
    size_t size, length; /* length may be beyond size: what did not fit is counted */
};

static void put(struct out *out, const char *text, size_t length)
{
    if (out->length < out->size) {
        const size_t room = out->size - out->length;
        memcpy(out->text + out->length, text, length < room ? length : room);
    }
    out->length += length;
}

static void put_number(struct out *out, long number)
{
    char digits[DIGITS_MAX], *at = digits + DIGITS_MAX;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    put(out, at, (size_t)(digits + DIGITS_MAX - at));
}

/* False: a conversion that is not ours. */
static bool put_all(struct out *out, const char *format, va_list args)
{
    const char *percent;
    for (; (percent = strchr(format, '%')) != NULL; format = percent) {
        put(out, format, (size_t)(percent - format));
        if (percent[1] == 's') {
            const char *text = va_arg(args, const char *);
            put(out, text, strlen(text));
            percent += 2;
        } else if (percent[1] == 'd') {
            put_number(out, va_arg(args, int));
            percent += 2;
        } else if (percent[1] == 'l' && percent[2] == 'd') {
            put_number(out, va_arg(args, long));
            percent += 3;
        } else {
            return false;
        }
    }
    put(out, format, strlen(format));
    return true;
}

int format_text(char *ret, size_t size, const char *format, va_list args)
{
    struct out out = {.text = ret, .size = size};
    va_list quick;
    va_copy(quick, args);
    bool done = put_all(&out, format, quick);
    va_end(quick);
    if (!done)
        return vsnprintf(ret, size, format, args);
    ret[out.length < size ? out.length : size - 1] = '\0';
    return (int)out.length;
}
