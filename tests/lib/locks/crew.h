/* Threads that serve lanes. Each turn is recorded. Each turn stops at a gate while it is closed. */
#ifndef TEST_CREW_H
#define TEST_CREW_H

#include "lanes.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CREW_OPS_MAX = 10000,
    CREW_LANES = 40,
    CREW_NO_LANE = -1,
    CREW_TURNS_MAX = 2 * CREW_OPS_MAX
};

struct crew_turn {
    bool together;
    size_t n_lanes, n_ops;
    size_t n_batches, largest; /* batches of one lane; or parts of many lanes */
};

struct crew {
    struct lanes *lanes;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool gate_closed, pass; /* pass: one thread may pass the closed gate */
    int at_gate;

    /* Set by the test. */
    bool spreads;          /* a turn keeps only its first operation */
    bool goes_on;          /* a lane takes further batches while allowed */
    int postpones_every;   /* every nth part of many lanes is postponed; 0: none */
    const char *postpones; /* the part of this lane is postponed */

    /* Recorded. */
    size_t n_parts, n_turns, served;
    struct crew_turn turns[CREW_TURNS_MAX];
    int64_t order[CREW_OPS_MAX];    /* numbers, as served */
    int64_t last[CREW_LANES];       /* last number served of each lane */
    bool disorder;                  /* a lane was served out of order */
    atomic_int running[CREW_LANES]; /* threads that serve the lane */
    atomic_bool overlap;            /* two threads served one lane at once */
};

/* One for all tests of a binary. */
extern struct crew crew;

/* Starts with the gate closed. together: one turn may serve several lanes. */
void crew_open(bool together, size_t threads, size_t batch, size_t waiting_max);
/* Submits operation `number` to lane "l0", "l1" ... or to none. False: too many are waiting. */
bool crew_submit(int number, int lane);
void crew_open_gate(void);
/* Waits until n threads stand at the gate. */
void crew_wait_at_gate(int n);
/* Lets threads pass the closed gate until n_turns turns have begun and the last stands at it. */
void crew_pass_gate_until_turn(size_t n_turns);
void crew_wait_served(size_t n);

#endif
