#include "load_text.h"
#include "schedule.h"
#include "text.h"

static const char *const end_names[LOAD_END_COUNT] = {
    [LOAD_ANSWERED] = "answered", [LOAD_ABANDONED] = "abandoned", [LOAD_NOT_SENT] = "not sent",
    [LOAD_BROKEN] = "broken",     [LOAD_TIMED_OUT] = "timed out", [LOAD_BAD_ANSWER] = "bad answer",
};

/* -- latencies --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double percentile;
} columns[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* dropped: requests that count as slower than all of these. False: a percentile is missing. */
static bool print_latency(FILE *out, const char *name, const struct hist *hist, uint64_t dropped)
{
    const struct load_result of = {.latency = *hist, .dropped_errors = dropped};
    char text[TEXT_MAX];
    bool all_known = true;
    fprintf(out, "  %-8s", name);
    for (size_t i = 0; i < COLUMNS; i++) {
        int64_t us =
            hist->count == 0 ? LOAD_NO_FIGURE : load_percentile(&of, columns[i].percentile);
        all_known = all_known && us != LOAD_NO_FIGURE;
        fprintf(out, " %9s", text_percentile(text, us));
    }
    fprintf(out, " %9s\n", text_percentile(text, hist->count == 0 ? LOAD_NO_FIGURE : hist->max));
    return all_known;
}

/* Prints the table. For an open load it also shows why requests were sent late. */
static void print_latencies(FILE *out, const struct load_result *load,
                            const struct load_options *options)
{
    bool open = schedule_is_open(options->mode);
    fprintf(out, "  %-8s", "");
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, " %9s", columns[i].name);
    fprintf(out, " %9s\n", "max");
    bool all_known = print_latency(out, "latency", &load->latency, load->dropped_errors);
    all_known = print_latency(out, "service", &load->service, 0) && all_known;
    if (open) {
        all_known = print_latency(out, "own lag", &load->own_lag, 0) && all_known;
        all_known = print_latency(out, "no conn.", &load->no_connection, 0) && all_known;
    }
    fprintf(out, "  latency: from the moment a request was due; service: from its sending\n");
    if (open)
        fprintf(out, "  sent late because loadgen was busy: own lag; no connection was free: no "
                     "conn.\n");
    if (!all_known)
        fprintf(out, "  -: too few answers" LOAD_FEW_NOTE "%s\n",
                load->dropped_errors > 0 ? ",\n     or among the requests never sent" : "");
    if (options->mode == LOAD_CLOSED)
        fprintf(out, "  " LOAD_CLOSED_NOTE("\n  ") "\n");
}

/* -- the whole --------------------------------------------------------------------------------- */

void load_text_headline(const struct load_result *load, const struct load_options *options,
                        FILE *out)
{
    char sentence[LOAD_OVERLOAD_MAX];
    if (options->stop != NULL && atomic_load(options->stop))
        fprintf(out, "INTERRUPTED: not everything was tried\n");
    else if (load_overload(load, sentence, sizeof sentence))
        fprintf(out, "OVERLOADED: %s\n", sentence);
}

static void print_count(FILE *out, const char **before, const char *name, uint64_t n)
{
    char count[TEXT_MAX];
    if (n == 0)
        return;
    fprintf(out, "%s%s: %s", *before, name, text_count(count, (int64_t)n));
    *before = ", ";
}

void load_text(const struct load_result *load, const struct load_options *options, FILE *out)
{
    uint64_t outside = load->ends[LOAD_ANSWERED] - load->answered;
    const char *before = "\n  status   ";
    char count[TEXT_MAX], rate[TEXT_MAX];
    fprintf(out, "%s answers in %.2f s: %s per second, %.2f MB read\n",
            text_count(count, (int64_t)load->answered), (double)load->measured_us / 1e6,
            text_rate(rate, load_rate(load)), (double)load->bytes_in / 1e6);
    if (load->completed > load->measured)
        fprintf(out, "  warm-up: %s requests before that, not measured\n",
                text_count(count, (int64_t)(load->completed - load->measured)));
    if (outside > 0)
        fprintf(out, "  outside: %s answers %safter the end, not in the rate\n",
                text_count(count, (int64_t)outside),
                options->warmup_ms > 0 ? "in the warm-up or " : "");
    fputc('\n', out);
    print_latencies(out, load, options);
    for (int i = 0; i < 600; i++) {
        char status[8];
        snprintf(status, sizeof status, "%d", i);
        print_count(out, &before, status, load->status[i]);
    }
    before = "\n  problems ";
    print_count(out, &before, "dropped", load->dropped);
    for (int i = LOAD_ABANDONED; i < LOAD_END_COUNT; i++)
        print_count(out, &before, end_names[i], load->ends[i]);
    fputc('\n', out);
}
