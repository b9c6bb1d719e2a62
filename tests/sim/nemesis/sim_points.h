/*
 * The named points of an operation (op.h) and of lockkit (lockkit.h), and of the disk: there the
 * timeline looks, rare states are counted, and a fault may fire.
 */
#ifndef SIM_POINTS_H
#define SIM_POINTS_H

#include "sim_world.h"

/* For service_open(), after the settings are drawn. */
const struct seams *sim_seams(void);
/* The running fiber passes a point. key: of the lock or operation; "": none. */
void sim_pass(const char *point, const char *key);

/* A fault that waits for a thread of an instance to pass its point. */
struct sim_trap {
    const char *point;           /* NULL: it waits no more */
    uint32_t passes;             /* that it lets go by */
    enum sim_event kind;         /* SIM_KILL, SIM_PAUSE, SIM_STALL, SIM_CLOCK, SIM_KEY_DELETED */
    struct sim_instance *victim; /* NULL: it has not fired yet */
};
enum { SIM_HANDS_MAX = 3 };
extern struct sim_trap sim_traps[SIM_HANDS_MAX]; /* one of each hand */
const char *sim_any_point(void);
void sim_points_begin(void); /* no trap */

#endif
