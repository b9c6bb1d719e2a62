/* The reports: a table for people, JSON for programs, an HTML page for both. The verdict comes
 * first. */
#ifndef REPORT_H
#define REPORT_H

#include "run.h"

#include <stdio.h>

enum { REPORT_RUNS_MAX = OPTIONS_RUNS_MAX };

/* Where it was measured. */
struct environment {
    char system[200]; /* kernel and machine */
    char cpu[160];
    int cores;
    int64_t memory_mb;
    char at[32]; /* UTC, ISO 8601 */
};
void environment_read(struct environment *ret);

struct report {
    const struct options *options;
    const char *workload; /* "sale", ..., "demo" */
    char store[160];      /* where the service keeps its data, if loadgen chose it; else "" */
    struct environment environment;
    struct history_writer *history; /* NULL: none is kept */
    struct run runs[REPORT_RUNS_MAX];
    int n_runs;
};

bool report_as_claimed(const struct report *report);
bool report_keeps_thresholds(const struct report *report);
/* One sentence: "As claimed. ..." or what is not as claimed. */
void report_headline(const struct report *report, char *out, size_t size);
/* The loss in words: "A read 37 and wrote 36; B had read 37 too ...: one sale vanished". */
void report_counterexample(const struct run *run, char *out, size_t size);
/* The workload's run that best shows a loss: the first with a counter-example. A guard that claims
 * nothing comes before one that claims to be safe. NULL: none. */
const struct run *report_example(const struct report *report, const struct workload *workload);

void report_text(const struct report *report, FILE *out);
json_t *report_to_json(const struct report *report); /* NULL without memory */
void report_to_html(const struct report *report, FILE *out);
void report_to_csv(const struct report *report, FILE *out);

/* Writes the terminal's table and the files of --json, --html and --csv, and makes their folders.
 * Returns 0, or -1 with a message on stderr. */
int report_write(const struct report *report);
void report_free(struct report *report);

#endif
