/* Arithmetic with numbers that come from a server. */
#ifndef LOCKKIT_NUMBER_H
#define LOCKKIT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* a + b and a * b for times that are not negative; INT64_MAX if the result does not fit. */
static inline int64_t lk_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static inline int64_t lk_product(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Reads decimal digits at the start of text. The number is at most max, and max is less than a
 * tenth of INT_MAX. Returns the text after the digits, or NULL. */
static inline const char *lk_digits(const char *text, int max, int *ret)
{
    int number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && number <= max; at++)
        number = number * 10 + (*at - '0');
    if (at == text || number > max)
        return NULL;
    *ret = number;
    return at;
}

#endif
