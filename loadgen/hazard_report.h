/* What the lab found: one result per hazard and case, from one or more runs. */
#ifndef HAZARD_REPORT_H
#define HAZARD_REPORT_H

#include "hazard_run.h"

#include <jansson.h>

enum { LAB_RESULTS_MAX = 400, LAB_KEPT_EVENTS_MAX = 160 };

struct lab_result {
    const struct hazard *hazard;
    const struct hazard_case *one;
    bool fence;
    enum hazard_outcome observed; /* of the last run that disagreed, else of the last run */
    int runs, agreeing, took_effect;
    struct run_outcome outcome; /* of the same run, as the following */
    struct run_event *events;   /* malloc()ed */
    int n_events;
    char message[LAB_MESSAGE_MAX]; /* why a fault did not take effect */
    int64_t took_us;
};

struct lab_report {
    uint64_t seed;
    struct lab_result results[LAB_RESULTS_MAX];
    int n_results;
};

/* Adds a run to its result, the last one of the report. Returns 0, or -1 without memory. */
int lab_result_add(struct lab_result *result, const struct hazard_run *run);
bool lab_result_agrees(const struct lab_result *result);
int lab_mismatches(const struct lab_report *report);
void lab_report_free(struct lab_report *report);

json_t *lab_report_to_json(const struct lab_report *report); /* NULL without memory */
json_t *lab_list_to_json(void);
/* The catalogue's row for README.md: what fails, under which guard, and what stands beside it. */
void lab_row_to_markdown(const struct hazard *hazard, FILE *out);
void lab_report_line(const struct lab_result *result, FILE *out);
void lab_report_to_html(const struct lab_report *report, FILE *out);

#endif
