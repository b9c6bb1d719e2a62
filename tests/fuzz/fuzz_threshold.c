/* Thresholds: the text is read; relation and limit are read again by hand; and figures with the
 * edges of numbers are compared with it. */
#include "fuzz.h"
#include "threshold.h"

#include <math.h>

/* What stands behind the relation. */
static double limit_of(const char *text)
{
    static const char relation[] = "<>=!";
    const char *at = text + strcspn(text, relation);
    return strtod(at + strspn(at, relation), NULL);
}

static void check_kept(const struct threshold *threshold, const struct threshold_figures *figures)
{
    double value;
    char text[200];
    const bool kept = threshold_kept(threshold, figures, &value);
    FUZZ_CHECK(strlen(threshold_value_text(threshold, value, text, sizeof text)) < sizeof text);
    FUZZ_CHECK(!isnan(value));
    FUZZ_CHECK((threshold_first_broken(threshold, 1, figures) == NULL) == kept);
}

static void try_figures(const struct threshold *threshold)
{
    static struct hist empty, full;
    static const uint64_t edges[] = {0, 1, INT32_MAX, INT64_MAX, UINT64_MAX};
    struct verdict verdict = {0};
    if (empty.buckets == NULL) {
        FUZZ_CHECK(hist_init(&empty) == 0 && hist_init(&full) == 0);
        hist_record(&full, 0);
        hist_record(&full, 1);
        hist_record(&full, INT64_MAX);
    }
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (int round = 0; round < 4; round++) {
            const struct threshold_figures figures = {.latency = round & 1 ? &full : &empty,
                                                      .seconds = round & 1 ? 1e-9 : 0,
                                                      .answered = edges[i],
                                                      .sent = edges[i],
                                                      .errors = edges[i],
                                                      .dropped = 0,
                                                      .timeouts = edges[i],
                                                      .retries = edges[i],
                                                      .never_sent = round & 1 ? 0 : edges[i],
                                                      .at_end = (round & 2) != 0,
                                                      .verdict = round & 2 ? &verdict : NULL};
            check_kept(threshold, &figures);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    char *text = fuzz_text(input, size), message[400] = "";
    struct threshold threshold, again;
    if (threshold_parse(text, &threshold, message, sizeof message) != 0) {
        FUZZ_CHECK(message[0] != '\0' && strlen(message) < sizeof message);
    } else {
        FUZZ_CHECK(strcmp(threshold.text, text) == 0 && isfinite(threshold.limit));
        FUZZ_CHECK(threshold.percentile >= 0 && threshold.percentile <= 100);
        const double number = limit_of(text), times = threshold.limit / number;
        FUZZ_CHECK(number == 0 ? threshold.limit == 0 : times > 0.999 && times < 1000001);
        FUZZ_CHECK(threshold_parse(threshold.text, &again, message, sizeof message) == 0);
        FUZZ_CHECK(again.metric == threshold.metric && again.limit == threshold.limit &&
                   again.relation == threshold.relation && again.is_share == threshold.is_share);
        try_figures(&threshold);
    }
    free(text);
    return 0;
}
