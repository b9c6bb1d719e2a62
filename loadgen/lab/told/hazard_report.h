/* What the lab found: one result per hazard and case, from one or more runs. */
#ifndef HAZARD_REPORT_H
#define HAZARD_REPORT_H

#include "hazard_facts.h"
#include "hazard_options.h"

#include <jansson.h>

enum { LAB_RESULTS_MAX = 400, LAB_MEASURE_MAX = 64, LAB_LABEL_MAX = 96 };

struct lab_report {
    uint64_t seed;
    enum hazard_language language; /* of the text */
    int repeat; /* runs that each result is to have; one that has fewer was not finished */
    struct lab_result results[LAB_RESULTS_MAX];
    int n_results;
};

/* Adds a run to its result, the last one of the report. Returns 0, or -1 without memory. */
int lab_result_add(struct lab_result *result, const struct hazard_run *run);
bool lab_result_agrees(const struct lab_result *result);
int lab_mismatches(const struct lab_report *report);
bool lab_was_run(const struct lab_report *report, const struct lab_result *result);
int lab_not_run(const struct lab_report *report); /* how many */
void lab_report_free(struct lab_report *report);

json_t *lab_report_to_json(const struct lab_report *report); /* NULL without memory */
/* The part of the catalogue that is wanted. */
json_t *lab_list_to_json(const struct hazard_options *wanted);
/* The catalogue's row for loadgen/README.md: what fails, under which guard, and what stands beside
 * it. */
void lab_row_to_markdown(const struct hazard *hazard, const struct hazard_options *wanted,
                         FILE *out);
/* The amount that is wrong ("200 not deducted"), or the time that it took; "": nothing to tell. */
char *lab_measure(const struct lab_result *result, enum hazard_language language,
                  char out[LAB_MEASURE_MAX]);
/* "unsafe", 不安全 */
const char *lab_outcome_word(enum hazard_outcome outcome, enum hazard_language language);
/* The verdict, then a line per case; 80 columns. */
void lab_report_to_text(const struct lab_report *report, FILE *out);
/* One line about a case that is not as expected. */
void lab_report_mismatch(const struct lab_result *result, enum hazard_language language, FILE *out);
void lab_report_to_html(const struct lab_report *report, FILE *out);

#endif
