/* Threads that serve lanes: their turns are noted, and stop at a gate while it is closed. */
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
    size_t n_batches, largest; /* its own and those that it went on with; or parts of many lanes */
};

struct crew {
    struct lanes *lanes;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool gate_closed, pass; /* one who stands there may pass though it is closed */
    int at_gate;

    /* What the test wants. */
    bool spreads;          /* a turn keeps only its first operation */
    bool goes_on;          /* a lane takes further batches while it may */
    int postpones_every;   /* one in so many parts of many lanes is postponed; 0: none */
    const char *postpones; /* the part of this lane is postponed */

    /* What was seen. */
    size_t n_parts, n_turns, served;
    struct crew_turn turns[CREW_TURNS_MAX];
    int64_t order[CREW_OPS_MAX];    /* numbers, as served */
    int64_t last[CREW_LANES];       /* number served of each lane */
    bool disorder;                  /* one before an earlier one of its lane */
    atomic_int running[CREW_LANES]; /* threads that serve the lane */
    atomic_bool overlap;            /* two at a time */
};

/* One for all tests of a binary. */
extern struct crew crew;

/* With the gate closed. together: lanes may be served so. */
void crew_open(bool together, size_t threads, size_t batch, size_t waiting_max);
/* Operation `number`, into lane "l0", "l1" ... or none. False: too many are waiting. */
bool crew_submit(int number, int lane);
void crew_open_gate(void);
/* Until n stand there. */
void crew_wait_at_gate(int n);
/* Lets pass who stands there, until so many turns have begun and the last one stands there. */
void crew_pass_gate_until_turn(size_t n_turns);
void crew_wait_served(size_t n);

#endif
