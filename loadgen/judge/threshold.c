#include "threshold.h"
#include "text.h"
#include "wide.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double RATE_SECONDS_MIN = 1; /* measured, before a rate is judged under way */

enum metric_kind { METRIC_LATENCY, METRIC_RATE, METRIC_COUNT, METRIC_VERDICT };

struct threshold_metric {
    const char *name;
    enum metric_kind kind;
    double (*value)(const struct threshold *threshold, const struct threshold_figures *figures);
};

/* -- the metrics ------------------------------------------------------------------------------- */

static double percentile(const struct threshold *threshold, const struct threshold_figures *figures)
{
    double answered = (double)figures->latency->count;
    double rank = threshold->percentile / 100 * (answered + (double)figures->never_sent);
    return rank > answered ? HUGE_VAL
                           : (double)hist_percentile(figures->latency, 100 * rank / answered);
}

static double average(const struct threshold *threshold, const struct threshold_figures *figures)
{
    (void)threshold;
    return figures->never_sent > 0 ? HUGE_VAL : hist_mean(figures->latency);
}

static double minimum(const struct threshold *threshold, const struct threshold_figures *figures)
{
    (void)threshold;
    return (double)figures->latency->min;
}

static double maximum(const struct threshold *threshold, const struct threshold_figures *figures)
{
    (void)threshold;
    return figures->never_sent > 0 ? HUGE_VAL : (double)figures->latency->max;
}

static double rate(const struct threshold *threshold, const struct threshold_figures *figures)
{
    (void)threshold;
    return figures->seconds > 0 ? (double)figures->answered / figures->seconds : 0;
}

static double count(const struct threshold *threshold, const struct threshold_figures *figures,
                    uint64_t n)
{
    if (!threshold->is_share)
        return (double)n;
    uint64_t all = figures->sent + figures->dropped;
    return all == 0 ? 0 : 100 * (double)n / (double)all;
}

#define THRESHOLD_COUNT_METRIC(name)                                                               \
    static double name(const struct threshold *threshold, const struct threshold_figures *figures) \
    {                                                                                              \
        return count(threshold, figures, figures->name);                                           \
    }
THRESHOLD_COUNT_METRIC(errors)
THRESHOLD_COUNT_METRIC(dropped)
THRESHOLD_COUNT_METRIC(timeouts)
THRESHOLD_COUNT_METRIC(retries)

#define THRESHOLD_VERDICT_METRIC(name, text)                                                       \
    static double name(const struct threshold *threshold, const struct threshold_figures *figures) \
    {                                                                                              \
        (void)threshold;                                                                           \
        return (double)figures->verdict->name;                                                     \
    }
VERDICT_MAP(THRESHOLD_VERDICT_METRIC)

static const struct threshold_metric metrics[] = {
    {"p", METRIC_LATENCY, percentile},   {"avg", METRIC_LATENCY, average},
    {"min", METRIC_LATENCY, minimum},    {"max", METRIC_LATENCY, maximum},
    {"rate", METRIC_RATE, rate},         {"errors", METRIC_COUNT, errors},
    {"dropped", METRIC_COUNT, dropped},  {"timeouts", METRIC_COUNT, timeouts},
    {"retries", METRIC_COUNT, retries},
#define THRESHOLD_VERDICT_ENTRY(name, text) {#name, METRIC_VERDICT, name},
    VERDICT_MAP(THRESHOLD_VERDICT_ENTRY)
#undef THRESHOLD_VERDICT_ENTRY
};

/* -- parsing ----------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *text)
{
    while (*text == ' ')
        text++;
    return text;
}

/* Each parser returns the text after its part, or NULL with a message. */

static const char *parse_metric(const char *text, struct threshold *ret, char *message, size_t size)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (strlen(metrics[i].name) == length && memcmp(metrics[i].name, text, length) == 0)
            ret->metric = &metrics[i];
    if (ret->metric == NULL) {
        int used = snprintf(message, size, "'%.*s' is none of p(N)", (int)length, text);
        for (size_t i = 1; i < sizeof metrics / sizeof *metrics && (size_t)used < size; i++)
            used += snprintf(message + used, size - (size_t)used, ", %s", metrics[i].name);
        return NULL;
    }
    text += length;
    if (ret->metric->value != percentile)
        return text;
    char *end = NULL;
    if (*text == '(')
        ret->percentile = strtod(text + 1, &end);
    if (end == NULL || end == text + 1 || *end != ')' ||
        !(ret->percentile > 0 && ret->percentile <= 100)) {
        snprintf(message, size, "a percentile is p(N), N above 0 and up to 100: p(99.9)");
        return NULL;
    }
    return end + 1;
}

static const char *parse_relation(const char *text, struct threshold *ret, char *message,
                                  size_t size)
{
    static const struct {
        const char *text;
        enum threshold_relation relation;
    } relations[] = {
        {"<=", THRESHOLD_AT_MOST}, {">=", THRESHOLD_AT_LEAST}, {"==", THRESHOLD_EQUAL},
        {"!=", THRESHOLD_UNEQUAL}, {"<", THRESHOLD_LESS},      {">", THRESHOLD_MORE},
    };
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if (strncmp(text, relations[i].text, strlen(relations[i].text)) == 0) {
            ret->relation = relations[i].relation;
            return text + strlen(relations[i].text);
        }
    snprintf(message, size, "one of < <= > >= == != is expected at '%.20s'", text);
    return NULL;
}

static const char *parse_limit(const char *text, struct threshold *ret, char *message, size_t size)
{
    static const struct {
        enum metric_kind kind;
        const char *text;
        double factor;
        bool is_share;
    } units[] = {
        {METRIC_LATENCY, "us", 1, false},
        {METRIC_LATENCY, "ms", 1000, false},
        {METRIC_LATENCY, "s", 1e6, false},
        {METRIC_COUNT, "%", 1, true},
    };
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number)) {
        snprintf(message, size, "a number is expected at '%.20s'", text);
        return NULL;
    }
    const char *unit = skip_blanks(end);
    ret->limit = number;
    if (*unit == '\0')
        return unit;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].kind == ret->metric->kind && strcmp(unit, units[i].text) == 0) {
            ret->limit = number * units[i].factor;
            ret->is_share = units[i].is_share;
            return unit + strlen(unit);
        }
    snprintf(message, size, "'%.20s' is no unit of %s", unit, ret->metric->name);
    return NULL;
}

int threshold_parse(const char *text, struct threshold *ret, char *message, size_t size)
{
    struct threshold threshold = {0};
    if (strlen(text) >= sizeof threshold.text) {
        snprintf(message, size, "longer than %zu characters", sizeof threshold.text - 1);
        return -1;
    }
    strcpy(threshold.text, text);
    const char *at = parse_metric(skip_blanks(text), &threshold, message, size);
    if (at != NULL)
        at = parse_relation(skip_blanks(at), &threshold, message, size);
    if (at != NULL)
        at = parse_limit(skip_blanks(at), &threshold, message, size);
    if (at == NULL)
        return -1;
    *ret = threshold;
    return 0;
}

/* -- figures ----------------------------------------------------------------------------------- */

struct threshold_figures threshold_figures_now(const struct load_progress *now, int64_t warmup_ms)
{
    double seconds = (double)now->elapsed_us / 1e6 - (double)warmup_ms / 1e3;
    return (struct threshold_figures){
        .latency = now->latency,
        .seconds = seconds > 0 ? seconds : 0,
        .answered = now->answered,
        .sent = now->sent,
        .errors = load_errors(now->ends, now->failed),
        .timeouts = now->ends[LOAD_TIMED_OUT],
        .retries = now->retries,
    };
}

struct threshold_figures threshold_figures_at_end(const struct load_result *result,
                                                  const struct verdict *verdict)
{
    return (struct threshold_figures){
        .latency = &result->latency,
        .seconds = (double)result->measured_us / 1e6,
        .answered = result->answered,
        .sent = result->sent,
        .errors = load_errors(result->ends, result->failed) + result->dropped_errors,
        .timeouts = result->ends[LOAD_TIMED_OUT],
        .dropped = result->dropped,
        .never_sent = result->dropped_errors,
        .retries = result->retries,
        .at_end = true,
        .verdict = verdict,
    };
}

/* -- judging ----------------------------------------------------------------------------------- */

static bool compare(double value, enum threshold_relation relation, double limit)
{
    switch (relation) {
    case THRESHOLD_LESS:
        return value < limit;
    case THRESHOLD_AT_MOST:
        return value <= limit;
    case THRESHOLD_MORE:
        return value > limit;
    case THRESHOLD_AT_LEAST:
        return value >= limit;
    case THRESHOLD_EQUAL:
        return value == limit;
    case THRESHOLD_UNEQUAL:
        return value != limit;
    }
    return false;
}

const struct threshold *threshold_first_broken(const struct threshold *thresholds, int n,
                                               const struct threshold_figures *figures)
{
    double value;
    for (int i = 0; i < n; i++)
        if (!threshold_kept(&thresholds[i], figures, &value))
            return &thresholds[i];
    return NULL;
}

bool threshold_wants_verdict(const struct threshold *threshold)
{
    return threshold->metric->kind == METRIC_VERDICT;
}

bool threshold_kept(const struct threshold *threshold, const struct threshold_figures *figures,
                    double *ret_value)
{
    bool no_latency = threshold->metric->kind == METRIC_LATENCY &&
                      (figures->latency == NULL || figures->latency->count == 0);
    bool no_rate = threshold->metric->kind == METRIC_RATE && figures->seconds < RATE_SECONDS_MIN;
    bool no_drops = threshold->metric->value == dropped; /* what is late may still be sent */
    *ret_value = 0;
    if ((no_rate || no_drops) && !figures->at_end)
        return true;
    if (no_latency)
        return !figures->at_end;
    if (threshold_wants_verdict(threshold) && figures->verdict == NULL)
        return !figures->at_end;
    *ret_value = threshold->metric->value(threshold, figures);
    return compare(*ret_value, threshold->relation, threshold->limit);
}

char *threshold_value_text(const struct threshold *threshold, double value, char *out, size_t size)
{
    char text[TEXT_MAX];
    if (!isfinite(value))
        snprintf(out, size, "never");
    else if (threshold->metric->kind == METRIC_LATENCY)
        snprintf(out, size, "%s", text_time_us(text, wide_clip_real(value)));
    else if (threshold->is_share)
        snprintf(out, size, "%.3g %%", value);
    else if (threshold->metric->kind == METRIC_RATE)
        snprintf(out, size, "%s", text_rate(text, value));
    else
        snprintf(out, size, "%s", text_count(text, wide_clip_real(value)));
    return out;
}
