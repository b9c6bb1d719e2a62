/* Runs one workload under each guard in turn: same seed, one run each, one table. */
#include "judged_command.h"
#include "progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_run(struct report *report, const struct options *options,
                   const struct workload *workload, const struct remote_service *service,
                   const char *guard)
{
    if (report->n_runs == REPORT_RUNS_MAX) {
        fprintf(stderr, "loadgen: more than %d runs in one report\n", REPORT_RUNS_MAX);
        return -1;
    }
    struct run *run = &report->runs[report->n_runs];
    if (run_once(options, workload, service, guard, report->history, run) != 0) {
        fprintf(stderr, "loadgen: %s under %s: %s\n", workload->name, guard, run->message);
        run_free(run);
        return -1;
    }
    report->n_runs++;
    char cut[REMOTE_MESSAGE_MAX];
    if (run_cut_short(run, cut, sizeof cut))
        fprintf(stderr, "loadgen: %s under %s: %s\n", workload->name, guard, cut);
    if (!run->judged)
        fprintf(stderr, "loadgen: %s under %s is not judged: %s\n", workload->name, guard,
                run->message);
    return run->judged ? 0 : -1;
}

/* All guards once, then all again: a slow phase of the machine affects all guards. */
int judged_add(struct report *report, const struct options *options,
               const struct workload *workload, const struct remote_service *service)
{
    int n = options->n_guards == 0 ? 1 : options->n_guards;
    for (int i = 0; i < n * options->repeat; i++) {
        if (options_stopped(options))
            return 0;
        const char *guard =
            options->n_guards == 0 ? service->default_guard : options->guards[i % n];
        if (add_run(report, options, workload, service, guard) != 0)
            return -1;
    }
    return 0;
}

static bool is_run(const struct options *options, const char *default_guard, const char *guard)
{
    for (int i = 0; i < options->n_guards; i++)
        if (strcmp(options->guards[i], guard) == 0)
            return true;
    return options->n_guards == 0 && strcmp(default_guard, guard) == 0;
}

int judged_check_expectations(const struct options *options, const char *default_guard)
{
    for (int i = 0; i < options->n_expectations; i++) {
        const char *guard = options->expectations[i].guard;
        if (!is_run(options, default_guard, guard)) {
            fprintf(stderr, "loadgen: --expect: '%s' is not run; name it in --guards, too\n",
                    guard);
            return -1;
        }
    }
    return 0;
}

int judged_exit_status(const struct report *report)
{
    const struct options *options = report->options;
    if (options_stopped(options))
        return EXIT_INTERRUPTED;
    for (int i = 0; i < report->n_runs; i++)
        if (!report->runs[i].judged)
            return EXIT_FAILURE;
    for (int i = 0; i < report->n_runs; i++)
        if (run_broke_claim(&report->runs[i]))
            return EXIT_BROKEN;
    for (int i = 0; i < report->n_runs; i++)
        if (!run_keeps_thresholds(&report->runs[i]))
            return EXIT_BROKEN;
    for (int i = 0; i < report->n_runs; i++)
        if (report->runs[i].failed > 0 || run_dropped(&report->runs[i]) > 0 ||
            run_cut_short(&report->runs[i], NULL, 0))
            return EXIT_FAILURE;
    return report_as_claimed(report) ? EXIT_SUCCESS : EXIT_BROKEN;
}

static int compare(const struct options *options, const struct workload *workload)
{
    struct remote_service service;
    char message[REMOTE_MESSAGE_MAX];
    if (remote_describe(options, &service, message) != 0) {
        fprintf(stderr, "loadgen: %s\n", message);
        return EXIT_FAILURE;
    }
    if (judged_check_expectations(options, service.default_guard) != 0) {
        remote_forget(&service);
        return EXIT_USAGE;
    }
    struct report *report = calloc(1, sizeof *report);
    if (report == NULL) {
        fprintf(stderr, "loadgen: not enough memory\n");
        remote_forget(&service);
        return EXIT_FAILURE;
    }
    report->options = options;
    report->workload = workload->name;
    environment_read(&report->environment);
    int result = -1;
    if (options->history == NULL || history_create(options->history, &report->history) == 0)
        result = judged_add(report, options, workload, &service);
    else
        fprintf(stderr, "loadgen: cannot write %s: %s\n", options->history, strerror(errno));
    if (history_close(report->history) != 0) {
        fprintf(stderr, "loadgen: cannot write %s: %s\n", options->history, strerror(errno));
        result = -1;
    }
    /* The finished runs are reported even if a later guard could not be run. */
    if (report->n_runs > 0 && report_write(report) != 0)
        result = -1;
    int status = judged_exit_status(report);
    if (result != 0 && status != EXIT_INTERRUPTED)
        status = EXIT_FAILURE;
    report_free(report);
    free(report);
    remote_forget(&service);
    return status;
}

#define JUDGED_DEFINE(name)                                                                        \
    int judged_##name(const struct options *options)                                               \
    {                                                                                              \
        return compare(options, &workload_##name);                                                 \
    }
WORKLOAD_MAP(JUDGED_DEFINE)
