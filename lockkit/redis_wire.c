#include "redis_wire.h"

#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 20, FRAME_MAX = 1 + DIGITS_MAX + 2 /* "$123\r\n" */ };

static char *put_ending(char *to)
{
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static char *put_frame(char *to, char kind, size_t number)
{
    char digits[DIGITS_MAX];
    int n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    *to++ = kind;
    while (n > 0)
        *to++ = digits[--n];
    return put_ending(to);
}

bool lk_redis_wire_make(lk_redis_wire *wire, int n, const char *const *words)
{
    size_t bound = FRAME_MAX;
    for (int i = 0; i < n; i++)
        bound += FRAME_MAX + strlen(words[i]) + 2;
    wire->bytes = bound <= sizeof wire->room ? wire->room : malloc(bound);
    if (wire->bytes == NULL)
        return false;
    char *to = put_frame(wire->bytes, '*', (size_t)n);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(words[i]);
        to = put_frame(to, '$', length);
        memcpy(to, words[i], length);
        to = put_ending(to + length);
    }
    wire->length = (size_t)(to - wire->bytes);
    return true;
}

void lk_redis_wire_free(lk_redis_wire *wire)
{
    if (wire->bytes != wire->room)
        free(wire->bytes);
}
