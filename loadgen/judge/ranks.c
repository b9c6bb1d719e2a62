#include "ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int ranks_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* -- ranks ------------------------------------------------------------------------------------- */

/* The ranks of all values, doubled: ties share the mean of their places, which may be a half
 * number. */
struct ranking {
    size_t n; /* of both samples */
    double *sorted;
    size_t *ranks; /* of sorted[i], doubled */
    double ties;   /* the sum of t^3 - t over groups of t equal values */
};

static void ranking_free(struct ranking *ranking)
{
    free(ranking->sorted);
    free(ranking->ranks);
}

static bool ranking_of(const double *a, size_t n_a, const double *b, size_t n_b,
                       struct ranking *ret)
{
    struct ranking ranking = {.n = n_a + n_b};
    ranking.sorted = malloc(ranking.n * sizeof *ranking.sorted);
    ranking.ranks = malloc(ranking.n * sizeof *ranking.ranks);
    if (ranking.sorted == NULL || ranking.ranks == NULL) {
        ranking_free(&ranking);
        return false;
    }
    memcpy(ranking.sorted, a, n_a * sizeof *a);
    memcpy(ranking.sorted + n_a, b, n_b * sizeof *b);
    qsort(ranking.sorted, ranking.n, sizeof *ranking.sorted, ranks_by_value);
    for (size_t i = 0, end; i < ranking.n; i = end) {
        for (end = i + 1; end < ranking.n && ranking.sorted[end] == ranking.sorted[i]; end++)
            continue;
        double t = (double)(end - i);
        ranking.ties += t * t * t - t;
        for (size_t j = i; j < end; j++)
            ranking.ranks[j] = i + 1 + end; /* places i + 1 to end: twice their mean */
    }
    *ret = ranking;
    return true;
}

static size_t rank_sum(const struct ranking *ranking, const double *values, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double *found = bsearch(&values[i], ranking->sorted, ranking->n,
                                      sizeof *ranking->sorted, ranks_by_value);
        sum += ranking->ranks[found - ranking->sorted];
    }
    return sum;
}

/* The number of ways to choose n of the ranks with each sum: ways[0..largest]. malloc()ed; NULL:
 * no memory. */
static double *count_ways(const size_t *ranks, size_t n_all, size_t n, size_t *ret_largest)
{
    size_t largest = 0;
    for (size_t i = 0; i < n_all; i++)
        largest += ranks[i];
    double *ways = calloc((n + 1) * (largest + 1), sizeof *ways), *chosen = NULL;
    if (ways == NULL)
        return NULL;
    ways[0] = 1;
    for (size_t i = 0, reached = 0; i < n_all; i++)
        for (size_t k = (i < n ? i + 1 : n), to = reached += ranks[i]; k > 0; k--)
            for (size_t sum = ranks[i]; sum <= to; sum++)
                ways[k * (largest + 1) + sum] += ways[(k - 1) * (largest + 1) + sum - ranks[i]];
    chosen = malloc((largest + 1) * sizeof *chosen);
    if (chosen != NULL)
        memcpy(chosen, ways + n * (largest + 1), (largest + 1) * sizeof *chosen);
    free(ways);
    *ret_largest = largest;
    return chosen;
}

/* -- the test ---------------------------------------------------------------------------------- */

static double exact_p(const struct ranking *ranking, size_t n_a, size_t sum)
{
    size_t largest;
    double *ways = count_ways(ranking->ranks, ranking->n, n_a, &largest);
    double all = 0, below = 0, above = 0;
    if (ways == NULL)
        return NAN;
    for (size_t i = 0; i <= largest; i++) {
        all += ways[i];
        below += i <= sum ? ways[i] : 0;
        above += i >= sum ? ways[i] : 0;
    }
    free(ways);
    return fmin(1, 2 * fmin(below, above) / all);
}

/* The standard deviation of U. */
static double sigma_of(double n_a, double n_b, double ties)
{
    double n = n_a + n_b;
    return sqrt(n_a * n_b / 12 * (n + 1 - ties / (n * (n - 1))));
}

static double normal_p(const struct ranking *ranking, double n_a, double n_b, double sum)
{
    double sigma = sigma_of(n_a, n_b, ranking->ties);
    double u = sum / 2 - n_a * (n_a + 1) / 2;
    double off = fabs(u - n_a * n_b / 2) - 0.5;
    return sigma > 0 && off > 0 ? erfc(off / sigma / M_SQRT2) : 1;
}

double ranks_p(const double *a, size_t n_a, const double *b, size_t n_b)
{
    struct ranking ranking;
    if (n_a == 0 || n_b == 0)
        return 1;
    if (!ranking_of(a, n_a, b, n_b, &ranking))
        return NAN;
    size_t sum = rank_sum(&ranking, a, n_a);
    double p = ranking.n <= RANKS_EXACT_MAX
                   ? exact_p(&ranking, n_a, sum)
                   : normal_p(&ranking, (double)n_a, (double)n_b, (double)sum);
    ranking_free(&ranking);
    return p;
}

double ranks_least_p(size_t n_a, size_t n_b)
{
    double ways = 1;
    for (size_t i = 1; i <= n_a; i++)
        ways *= (double)(n_b + i) / (double)i;
    return fmin(1, 2 / ways);
}

size_t ranks_needed(double p)
{
    size_t n = 1;
    while (ranks_least_p(n, n) > p)
        n++;
    return n;
}

/* -- the ratio --------------------------------------------------------------------------------- */

/* The value that a normal variable exceeds with probability p. */
static double normal_quantile(double p)
{
    double low = 0, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (erfc(middle / M_SQRT2) / 2 > p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The largest c with P(U < c) at most tail; 0: none. -1: no memory. */
static long critical_value(size_t n_a, size_t n_b, double tail)
{
    size_t n = n_a + n_b, largest, ranks[RANKS_EXACT_MAX];
    if (n > RANKS_EXACT_MAX) {
        double pairs = (double)n_a * (double)n_b;
        double c = pairs / 2 - normal_quantile(tail) * sigma_of((double)n_a, (double)n_b, 0);
        return c > 0 ? (long)c : 0;
    }
    for (size_t i = 0; i < n; i++)
        ranks[i] = i + 1;
    double *ways = count_ways(ranks, n, n_a, &largest), all = 0, below = 0;
    if (ways == NULL)
        return -1;
    for (size_t i = 0; i <= largest; i++)
        all += ways[i];
    size_t least = n_a * (n_a + 1) / 2, c = 0;
    while ((below += ways[least + c]) <= tail * all)
        c++;
    free(ways);
    return (long)c;
}

bool ranks_ratio(const double *a, size_t n_a, const double *b, size_t n_b, double error,
                 struct ranks_ratio *ret)
{
    size_t pairs = n_a * n_b;
    long c = pairs > 0 ? critical_value(n_a, n_b, error / 2) : -1;
    double *logs = c >= 0 ? malloc(pairs * sizeof *logs) : NULL;
    bool good = logs != NULL;
    for (size_t i = 0; i < n_a && good; i++)
        for (size_t j = 0; j < n_b && good; j++) {
            good = a[i] > 0 && b[j] > 0 && isfinite(a[i]) && isfinite(b[j]);
            if (good)
                logs[i * n_b + j] = log(b[j]) - log(a[i]);
        }
    if (good) {
        qsort(logs, pairs, sizeof *logs, ranks_by_value);
        double middle = (logs[(pairs - 1) / 2] + logs[pairs / 2]) / 2;
        *ret = (struct ranks_ratio){.ratio = exp(middle), .low = 0, .high = HUGE_VAL};
        if (c > 0) {
            ret->low = exp(logs[c - 1]);
            ret->high = exp(logs[pairs - (size_t)c]);
        }
    }
    free(logs);
    return good;
}
