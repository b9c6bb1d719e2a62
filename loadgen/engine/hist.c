/*
 * Index of a value: its top 11 bits give the place within its power of two, their shift gives the
 * power. The first 2048 values have a bucket each. From there on each power of two has 1024.
 * Source: Gil Tene, HdrHistogram (hdrhistogram.org), "counts array layout".
 */
#include "hist.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HALF_BITS = HIST_SUB_BITS - 1 };
static const double MISS_MAX = 0.05; /* accepted chance that all values lie below the percentile */

static uint32_t index_of(int64_t value)
{
    uint64_t linear = (UINT64_C(1) << HIST_SUB_BITS) - 1;
    int top_bit = 63 - __builtin_clzll((uint64_t)value | linear);
    int shift = top_bit - HALF_BITS;
    return ((uint32_t)shift << HALF_BITS) + (uint32_t)(value >> shift);
}

static int64_t highest_of(uint32_t index)
{
    if (index < 1U << HIST_SUB_BITS)
        return index;
    uint32_t shift = (index >> HALF_BITS) - 1;
    int64_t step = (int64_t)(index - (shift << HALF_BITS));
    return ((step + 1) << shift) - 1;
}

static uint32_t add_saturating(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

void hist_record(struct hist *hist, int64_t value)
{
    if (value < 0)
        value = 0;
    if (value < hist->min || hist->count == 0)
        hist->min = value;
    if (value > hist->max)
        hist->max = value;
    hist->count++;
    hist->sum += (double)value;
    if (value > HIST_VALUE_MAX) {
        hist->clipped++;
        value = HIST_VALUE_MAX;
    }
    uint32_t *bucket = &hist->buckets[index_of(value)];
    *bucket = add_saturating(*bucket, 1);
}

int64_t hist_percentile(const struct hist *hist, double percentile)
{
    if (hist->count == 0)
        return 0;
    /* 99.9 has no exact binary form: without the allowance, ceil() would give rank 1000 for 99.9 %
     * of 1000 values. */
    double rank = ceil(percentile / 100.0 * (double)hist->count * (1.0 - 4.0 * DBL_EPSILON));
    uint64_t wanted = rank < 1.0 ? 1 : (uint64_t)rank;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HIST_BUCKETS - 1; i++) {
        seen += hist->buckets[i];
        if (seen >= wanted) {
            int64_t highest = highest_of(i);
            return highest < hist->max ? highest : hist->max;
        }
    }
    return hist->max; /* the last bucket also holds clipped values */
}

bool hist_tells(const struct hist *hist, double percentile)
{
    return hist->count > 0 && pow(percentile / 100, (double)hist->count) <= MISS_MAX;
}

void hist_add(struct hist *into, const struct hist *from)
{
    if (from->count == 0)
        return;
    if (from->min < into->min || into->count == 0)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    into->count += from->count;
    into->clipped += from->clipped;
    into->sum += from->sum;
    for (uint32_t i = 0; i < HIST_BUCKETS; i++)
        into->buckets[i] = add_saturating(into->buckets[i], from->buckets[i]);
}

double hist_mean(const struct hist *hist)
{
    return hist->count == 0 ? 0.0 : hist->sum / (double)hist->count;
}

int hist_init(struct hist *hist)
{
    uint32_t *buckets = calloc(HIST_BUCKETS, sizeof *buckets);
    if (buckets == NULL)
        return -1;
    *hist = (struct hist){.buckets = buckets};
    return 0;
}

void hist_free(struct hist *hist)
{
    free(hist->buckets);
    *hist = (struct hist){0};
}

void hist_reset(struct hist *hist)
{
    assert(hist->buckets != NULL);
    memset(hist->buckets, 0, HIST_BUCKETS * sizeof *hist->buckets);
    *hist = (struct hist){.buckets = hist->buckets};
}
