/* Runs that are bent towards rare states. Each state needs several things at once, which are seldom
 * drawn together. Of sixteen seeds one is bent towards each; the rest of its settings is drawn. */
#ifndef SIM_BEND_H
#define SIM_BEND_H

#include "sim_settings.h"

bool sim_bend(struct sim_settings *ret);        /* false: this seed is not bent */
void sim_bend_faults(struct sim_settings *ret); /* once its faults are drawn */

#endif
