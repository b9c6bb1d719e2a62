/* One line per run, for spreadsheets (RFC 4180), with the names of the JSON report. */
#include "report.h"

#include <inttypes.h>

static double rate(uint64_t n, int64_t us)
{
    return us > 0 ? (double)n * 1e6 / (double)us : 0;
}

static void print_head(FILE *out)
{
    fprintf(out, "workload,guard,claims_safe,as_claimed,instances,lanes,seed,mode,connections,"
                 "sent,completed,dropped,accepted,refused,failed,throughput_rps,accepted_per_s");
#define CSV_NAME(name, text) fprintf(out, ",%s", #name);
    VERDICT_MAP(CSV_NAME)
#undef CSV_NAME
    fprintf(out, ",p50_us,p90_us,p99_us,p99_9_us,p99_99_us,max_us\n");
}

/* Empty without an audit. */
static void print_judged(const struct run *run, int64_t value, FILE *out)
{
    fputc(',', out);
    if (run->judged)
        fprintf(out, "%" PRId64, value);
}

/* Empty: not available. */
static void print_figure(int64_t us, FILE *out)
{
    fputc(',', out);
    if (us >= 0)
        fprintf(out, "%" PRId64, us);
}

static void print_run(const struct run *run, FILE *out)
{
    const struct load_result *load = &run->load;
    fprintf(out, "%s,%s,%d,%d,%d,%d,%" PRIu64 ",%s,%d", run->workload->name, run->guard,
            run->claims_safe, run_as_claimed(run), run->instances, run->lanes, run->options->seed,
            options_mode_text(run->mode), run->options->connections);
    fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
            load->sent, load->completed, load->dropped, run->accepted, run->refused, run->failed);
    fprintf(out, ",%.2f,%.2f", load_rate(load), rate(run->accepted, load->duration_us));
#define CSV_VALUE(name, text) print_judged(run, run->verdict.name, out);
    VERDICT_MAP(CSV_VALUE)
#undef CSV_VALUE
    static const double percentiles[] = {50, 90, 99, 99.9, 99.99};
    for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++)
        print_figure(load_percentile(load, percentiles[i]), out);
    print_figure(load->latency.count > 0 ? load->latency.max : LOAD_NO_FIGURE, out);
    fputc('\n', out);
}

void report_to_csv(const struct report *report, FILE *out)
{
    print_head(out);
    for (int i = 0; i < report->n_runs; i++)
        print_run(&report->runs[i], out);
}
