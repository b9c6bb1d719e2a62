/* The commands that run a workload under one guard after the other and judge it: sale, accounts,
 * transfers. And the parts that demo puts together itself. */
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

/* Is each guard of --expect run? Returns 0, or -1 after a message on stderr. An expectation that is
 * not tested would always hold. */
int judged_check_expectations(const struct options *options, const char *default_guard);

/* 0 as claimed, 130 interrupted, 1 when a run is not judged, 99 when a guard is not as it claims or
 * a threshold is broken, 1 when requests failed or were dropped and no claim is certainly broken.
 */
int judged_exit_status(const struct report *report);

#endif
