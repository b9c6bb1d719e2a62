/* What can be said of a run that is over. Each fact is a predicate over the recorded events, the
 * answers and the audit, and has its words in both languages. A fact says what happened, never what
 * the row was meant to show. */
#ifndef HAZARD_FACTS_H
#define HAZARD_FACTS_H

#include "hazard_run.h"

enum { LAB_FACTS_MAX = 24, LAB_FACT_MAX = 400, LAB_KEPT_EVENTS_MAX = 400 };

/* One hazard and case, from one or more runs. */
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
