/*
 * Arithmetic with numbers that others state: a service, a history file, a report. Sums are exact in
 * 128 bits, so that none wraps into a figure that looks right; they are clipped where they are
 * stored or shown.
 */
#ifndef WIDE_H
#define WIDE_H

#include <stdint.h>

__extension__ typedef __int128 wide;

/* The nearest 64-bit number. */
static inline int64_t wide_clip(wide value)
{
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* The same, rounded towards zero; NaN is 0. 2^63 is the first double that does not fit. */
static inline int64_t wide_clip_real(double value)
{
    return value >= 0x1p63   ? INT64_MAX
           : value < -0x1p63 ? INT64_MIN
           : value == value  ? (int64_t)value
                             : 0;
}

#endif
