/* What can be said of a run that is over. Each fact is a predicate over the recorded events, the
 * answers and the audit, and has its words in both languages. A fact says what happened, never what
 * the row was meant to show. */
#ifndef HAZARD_FACTS_H
#define HAZARD_FACTS_H

#include "hazard_report.h"

enum { LAB_FACTS_MAX = 24, LAB_FACT_MAX = 400 };

struct lab_fact {
    const char *id; /* "not-deducted", ... */
    char text[HAZARD_LANGUAGES][LAB_FACT_MAX];
};

/* Fills ret in a fixed order: the figures, the contradiction, the way there. Returns how many. */
int lab_facts(const struct lab_result *result, struct lab_fact ret[LAB_FACTS_MAX]);

/* The fence for which the store refused this write (an event "rejected"). The write had passed
 * "checked", and another actor committed under a larger fence meanwhile. 0: no fence refused it. */
int64_t lab_refusing_fence(const struct lab_result *result, const struct run_event *rejected);

#endif
