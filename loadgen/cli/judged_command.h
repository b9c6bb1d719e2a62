/* The commands that run a workload under each guard in turn and judge it: sale, accounts,
 * transfers. The demo uses their parts. */
#ifndef JUDGED_COMMAND_H
#define JUDGED_COMMAND_H

#include "exit_status.h"
#include "report.h"

/* judged_sale(), ...: each returns the program's exit status. */
#define JUDGED_DECLARE(name) int judged_##name(const struct options *options);
WORKLOAD_MAP(JUDGED_DECLARE)
#undef JUDGED_DECLARE

/* Runs the workload options->repeat times under each guard of options, in turn, and adds the runs
 * to the report. Returns 0, also when interrupted, or -1 after a message on stderr. */
int judged_add(struct report *report, const struct options *options,
               const struct workload *workload, const struct remote_service *service);

/* Is each guard of --expect run? An expectation without a run would always hold. Returns 0, or -1
 * after a message on stderr. */
int judged_check_expectations(const struct options *options, const char *default_guard);

/* The exit status; the first that applies:
 * - 130: interrupted
 * - 1: a run is not judged
 * - 99: a guard certainly broke its claim, or a threshold is broken
 * - 1: requests failed or were dropped
 * - 0: as claimed; else 99 */
int judged_exit_status(const struct report *report);

#endif
