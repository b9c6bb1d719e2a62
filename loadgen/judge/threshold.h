/*
 * Thresholds in the spirit of k6: "p(99)<50ms", "rate>4000", "errors<0.1%", "oversold==0". Pure
 * functions: an expression is parsed once and compared with a run's figures, at its end or on the
 * way.
 *
 *   expression  METRIC OPERATOR NUMBER[UNIT], blanks allowed between them
 *   operator    < <= > >= == !=
 *   latency     p(N) avg min max     from the intended start; unit us (default), ms, s; requests
 *                                    that were due and never sent count as infinitely slow
 *   rate        rate                 final answers per second; under way not before a second is
 *                                    measured
 *   counts      errors               what was not answered, what failed (load_errors()) and, at
 *                                    the end, what was due and never sent
 *               dropped timeouts retries     all with % as a share of the sendings; dropped is
 *                                    known at the end only: what is late may still be sent
 *   verdict     oversold lost_updates ... (verdict.h)   known at the end only
 */
#ifndef THRESHOLD_H
#define THRESHOLD_H

#include "load.h"
#include "verdict.h"

enum { THRESHOLD_TEXT_MAX = 64, THRESHOLDS_MAX = 16 };

enum threshold_relation {
    THRESHOLD_LESS,
    THRESHOLD_AT_MOST,
    THRESHOLD_MORE,
    THRESHOLD_AT_LEAST,
    THRESHOLD_EQUAL,
    THRESHOLD_UNEQUAL
};

struct threshold {
    char text[THRESHOLD_TEXT_MAX]; /* as it was given */
    const struct threshold_metric *metric;
    double percentile; /* of p(N) */
    enum threshold_relation relation;
    double limit; /* in us, per second, a count, or percent */
    bool is_share;
};

/* The figures of a run that thresholds are compared with. */
struct threshold_figures {
    const struct hist *latency;
    double seconds;    /* measured seconds */
    uint64_t answered; /* final answers in them */
    uint64_t sent, errors, dropped, timeouts, retries;
    uint64_t never_sent; /* known at the end: dropped and counted as errors, so infinitely slow */
    bool at_end;         /* false during the run: an unknown figure is no breach */
    const struct verdict *verdict; /* NULL: none, or during the run */
};

struct threshold_figures threshold_figures_now(const struct load_progress *now, int64_t warmup_ms);
/* verdict may be NULL. */
struct threshold_figures threshold_figures_at_end(const struct load_result *result,
                                                  const struct verdict *verdict);

/* Returns 0, or -1 with a message that says what was expected where. */
int threshold_parse(const char *text, struct threshold *ret, char *message, size_t size);

/* Does it need a verdict? Plain load has none. */
bool threshold_wants_verdict(const struct threshold *threshold);

/* Is it kept? *ret_value is the metric's value, in the unit of the limit. At the end of a run
 * without any request, a latency threshold is broken. */
bool threshold_kept(const struct threshold *threshold, const struct threshold_figures *figures,
                    double *ret_value);
/* NULL: all are kept. */
const struct threshold *threshold_first_broken(const struct threshold *thresholds, int n,
                                               const struct threshold_figures *figures);
/* "61.4 ms", "0.3 %", "3,812", "never": the value for people. */
char *threshold_value_text(const struct threshold *threshold, double value, char *out, size_t size);

#endif
