#include "metric.h"

#include <inttypes.h>

const struct metric_scale metric_seconds = {
    .per_unit = 1e6,
    .n = 17,
    .bounds = {50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000,
               1000000, 2500000, 5000000, 10000000},
};
const struct metric_scale metric_sizes = {
    .per_unit = 1,
    .n = 13,
    .bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096},
};

void metric_observe(struct metric_histogram *histogram, int64_t value)
{
    size_t i = 0;
    while (i < histogram->scale->n && value > histogram->scale->bounds[i])
        i++;
    atomic_fetch_add_explicit(&histogram->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum, value, memory_order_relaxed);
}

void metric_print(const struct metric_histogram *histogram, const char *name, const char *labels,
                  FILE *out)
{
    const struct metric_scale *scale = histogram->scale;
    const char *comma = labels[0] ? "," : "";
    uint64_t below = 0;
    for (size_t i = 0; i <= scale->n; i++) {
        below += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        if (i < scale->n)
            fprintf(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, comma,
                    (double)scale->bounds[i] / scale->per_unit, below);
        else
            fprintf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, below);
    }
    double sum = (double)atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    const char *open = labels[0] ? "{" : "", *close = labels[0] ? "}" : "";
    fprintf(out, "%s_sum%s%s%s %.9g\n", name, open, labels, close, sum / scale->per_unit);
    fprintf(out, "%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, below);
}

void metric_print_head(const char *name, const char *type, const char *help, FILE *out)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}
