/* Numbers as text without printf(3), which took a fifth of the instructions of a lock. */
#ifndef LOCKKIT_DIGITS_H
#define LOCKKIT_DIGITS_H

#include <stdint.h>

enum { LK_DIGITS_MAX = 20 /* of any number, in base 10 or 16 */ };

/* Writes at most LK_DIGITS_MAX bytes, no NUL; returns their end. */
static inline char *lk_put_digits(char *to, uint64_t number, unsigned base)
{
    char reversed[LK_DIGITS_MAX];
    int n = 0;
    do {
        reversed[n++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    while (n > 0)
        *to++ = reversed[--n];
    return to;
}

#endif
