/* A report to be written, with runs as they come out of run_once(), without the network. */
#ifndef REPORT_RIG_H
#define REPORT_RIG_H

#include "report.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct options options;
static struct report *report;

static inline void add_run(const struct workload *workload, const char *guard, bool claims_safe)
{
    struct run *run = &report->runs[report->n_runs++];
    *run = (struct run){.workload = workload,
                        .options = &options,
                        .id = "00c0ffee",
                        .claims_safe = claims_safe,
                        .judged = true,
                        .instances = 2,
                        .accepted = 100,
                        .refused = 1900,
                        .initial = 100,
                        .expected = 100,
                        .actual = 100};
    snprintf(run->guard, sizeof run->guard, "%s", guard);
    assert_int_equal(hist_init(&run->load.latency), 0);
    assert_int_equal(hist_init(&run->load.service), 0);
    for (int i = 1; i <= 3000; i++) /* as many as tell a p99.9 */
        hist_record(&run->load.latency, (i + 2) / 3);
    run->load.sent = run->load.completed = run->load.measured = run->load.answered = 2000;
    run->load.duration_us = run->load.measured_us = 1200000;
    run->load.status[201] = 100;
    run->load.status[409] = 1900;
    run->has_load = true;
    assert_int_equal(tally_init(&run->tally, 1, 1, 0, 1000), 0);
    for (int i = 0; i < 1900; i++)
        tally_count_problem(&run->tally, "sold-out");
}

static inline void lose(struct run *run)
{
    run->verdict = (struct verdict){.oversold = 73, .lost_updates = 61, .lost_amount = 61};
    run->actual = 173;
    run->has_counterexample = true;
    for (int i = 0; i < 2; i++)
        run->counterexample[i] = (struct ledger_row){.resource = "item:1",
                                                     .txn_id = "txn-a",
                                                     .instance = "shop-1",
                                                     .delta = -1,
                                                     .before = 37,
                                                     .after = 36,
                                                     .version_before = 63,
                                                     .at_us = 5 + i};
    strcpy(run->counterexample[1].txn_id, "txn-b");
}

static inline int open_report(void **state)
{
    (void)state;
    options = (struct options){.seed = 42, .connections = 64, .accounts = 4, .no_color = true};
    strcpy(options.command, "loadgen sale <&>");
    report = calloc(1, sizeof *report);
    if (report == NULL)
        return -1;
    report->options = &options;
    report->workload = "sale";
    environment_read(&report->environment);
    return 0;
}

static inline int close_report(void **state)
{
    (void)state;
    report_free(report);
    free(report);
    return 0;
}

/* What one of the writers wrote; to be freed. */
static inline char *written(void (*writer)(const struct report *report, FILE *out))
{
    static char *text;
    static size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    writer(report, out);
    fclose(out);
    return text;
}

#endif
