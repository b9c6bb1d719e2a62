/* What is kept of one run of a level: its events, its ledger rows, and what they add up to. */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

#include "stage.h"

enum { RUN_MOVES_MAX = 40 };

/* The moves of a run, and when all stood still after each. */
struct run_moves {
    char who[RUN_MOVES_MAX + 1];
    int64_t ended_us[RUN_MOVES_MAX], lease_us; /* lease_us: A's key was seen last; 0: no 'L' yet */
    int n;
};

/* A run that is over, as JSON (levels.schema.json, "run"); NULL with stage->message. */
json_t *run_record(struct stage *stage, const struct run_moves *moves);

#endif
