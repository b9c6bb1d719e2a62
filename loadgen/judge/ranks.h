/*
 * Are two samples of one kind different, and by how much? Rank statistics: they ask nothing of the
 * distribution, which latencies would not keep, and they see smaller differences the more runs
 * there are. Pure functions.
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

/* Up to so many values in both samples together the distribution is counted out, ties included;
 * beyond, it is taken for normal, with corrections for ties and continuity. */
enum { RANKS_EXACT_MAX = 50 };

/* Of two doubles, for qsort(3). */
int ranks_by_value(const void *a, const void *b);

/* The two-sided p of the Mann-Whitney test: the chance of samples so far apart, or further, where
 * there is no difference. NAN: no memory. 1 when one is empty. */
double ranks_p(const double *a, size_t n_a, const double *b, size_t n_b);

/* The least p that so many values can have; 1 when there are none. */
double ranks_least_p(size_t n_a, size_t n_b);
/* How many values each sample needs for a p of at most this, above 0. */
size_t ranks_needed(double p);

struct ranks_ratio {
    double ratio;     /* of b to a: Hodges and Lehmann's estimate on logarithms */
    double low, high; /* its interval; 0 and HUGE_VAL: so few values bound nothing */
};

/* error: the chance that the interval misses the true ratio, as 0.05. False: a value is not above
 * 0, a sample is empty, or no memory. */
bool ranks_ratio(const double *a, size_t n_a, const double *b, size_t n_b, double error,
                 struct ranks_ratio *ret);

#endif
