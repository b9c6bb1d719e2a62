#include "order_id.h"

#include <assert.h>
#include <sys/random.h>
#include <sys/types.h>

enum { TIME_DIGITS = 10, RANDOM_DIGITS = 8, BITS_PER_DIGIT = 5 };

static char *put(char *out, int digits, uint64_t value)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for (int i = digits - 1; i >= 0; i--) {
        out[i] = alphabet[value & 31];
        value >>= BITS_PER_DIGIT;
    }
    return out + digits;
}

void order_id_make(char ret[ORDER_ID_LENGTH + 1], int64_t now_wall_us)
{
    uint64_t random[2];
    ssize_t n = getrandom(random, sizeof random, 0);
    assert(n == (ssize_t)sizeof random); /* cannot fail for so few bytes */
    char *at = put(ret, TIME_DIGITS, (uint64_t)now_wall_us / 1000);
    at = put(at, RANDOM_DIGITS, random[0]);
    at = put(at, RANDOM_DIGITS, random[1]);
    *at = '\0';
}
