/*
 * Are two samples different, and by how much? Rank statistics assume nothing about the
 * distribution; latencies would break such assumptions. With more runs they find smaller
 * differences. Pure functions.
 *
 * Sources: H. B. Mann and D. R. Whitney, On a test of whether one of two random variables is
 * stochastically larger than the other (Ann. Math. Statist. 18, 1947); J. L. Hodges and E. L.
 * Lehmann, Estimates of location based on rank tests (Ann. Math. Statist. 34, 1963); M. Hollander
 * and D. A. Wolfe, Nonparametric Statistical Methods (1999), chapter 4: ties, intervals.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stddef.h>

/* Up to this many values in both samples together, the distribution is exact, ties included.
 * Above, it is taken as normal, corrected for ties and continuity. */
enum { RANKS_EXACT_MAX = 50 };

/* Compares two doubles, for qsort(3). */
int ranks_by_value(const void *a, const void *b);

/* The two-sided p of the Mann-Whitney test: the chance of samples at least this far apart if there
 * is no difference. NAN: no memory. 1 when one is empty. Infinite values rank last. */
double ranks_p(const double *a, size_t n_a, const double *b, size_t n_b);

/* The smallest p that samples of these sizes can have; 1 if one is empty. */
double ranks_least_p(size_t n_a, size_t n_b);
/* How many values each sample needs to reach p, which is above 0. */
size_t ranks_needed(double p);

struct ranks_ratio {
    double ratio;     /* of b to a: Hodges and Lehmann's estimate on logarithms */
    double low, high; /* its interval; 0 and HUGE_VAL: too few values for a bound */
};

/* error: the chance that the interval misses the true ratio, e.g. 0.05. With ties
 * across the samples it misses less often. False: a value is not above 0 or is infinite, a sample
 * is empty, or no memory. */
bool ranks_ratio(const double *a, size_t n_a, const double *b, size_t n_b, double error,
                 struct ranks_ratio *ret);

#endif
