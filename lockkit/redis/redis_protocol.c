#include "redis_protocol.h"
#include "digits.h"

#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX = 1 + LK_DIGITS_MAX + 2 /* "$123\r\n" */ };

static char *put_ending(char *to)
{
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static char *put_frame(char *to, char kind, size_t number)
{
    *to++ = kind;
    return put_ending(lk_put_digits(to, number, 10));
}

bool lk_redis_encode(lk_redis_encoded *encoded, int n, const char *const *words)
{
    size_t bound = FRAME_MAX;
    for (int i = 0; i < n; i++)
        bound += FRAME_MAX + strlen(words[i]) + 2;
    encoded->bytes = bound <= sizeof encoded->room ? encoded->room : malloc(bound);
    if (encoded->bytes == NULL)
        return false;
    char *to = put_frame(encoded->bytes, '*', (size_t)n);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(words[i]);
        to = put_frame(to, '$', length);
        memcpy(to, words[i], length);
        to = put_ending(to + length);
    }
    encoded->length = (size_t)(to - encoded->bytes);
    return true;
}

void lk_redis_encoded_free(lk_redis_encoded *encoded)
{
    if (encoded->bytes != encoded->room)
        free(encoded->bytes);
}
