/* The pieces of the lab's page. */
#ifndef HAZARD_HTML_H
#define HAZARD_HTML_H

#include "hazard_report.h"

/* hazard_html_trace.c: the run that is shown, as a list. */
void hazard_html_trace(const struct lab_result *result, FILE *out);

#endif
