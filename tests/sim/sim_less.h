/*
 * What a run has less of than its seed draws: fewer clients, deals, faults, instances and so on.
 * As a text: "clients=2,deals=1,KILL=0,run=3". A failing seed is shrunk with it (sim_shrink.h).
 */
#ifndef SIM_LESS_H
#define SIM_LESS_H

#include "sim_settings.h"

enum { SIM_KNOBS = 16, SIM_LESS_MAX = SIM_KNOBS + SIM_EVENTS, SIM_LESS_TEXT_MAX = 600 };

struct sim_less {
    uint32_t run; /* the same settings with other chance, for 1 and more */
    bool claims;  /* even if guard and settings claim nothing */
    bool set[SIM_LESS_MAX];
    uint32_t values[SIM_LESS_MAX]; /* the knobs, then the kinds of fault: only 0 */
};

/* False: it is no such text. NULL or "": nothing is less. */
bool sim_less_parse(const char *text, struct sim_less *ret);
void sim_less_print(const struct sim_less *less, char ret[SIM_LESS_TEXT_MAX]);
void sim_less_apply(const struct sim_less *less, struct sim_settings *settings);

/* The ith knob or kind of fault as it stands in settings, and its least value. */
uint32_t sim_less_value(const struct sim_settings *settings, int i);
uint32_t sim_less_least(int i);

#endif
