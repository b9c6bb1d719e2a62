/* Pseudo-random numbers that depend on seed and position only, not on the order of calls. */
#ifndef SPLITMIX_H
#define SPLITMIX_H

#include <stdint.h>

/* Sebastiano Vigna, splitmix64.c (2015): one step from the state x. Another x, another number. */
static inline uint64_t splitmix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#endif
