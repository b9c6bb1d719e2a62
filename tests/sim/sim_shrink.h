/* Makes a failing run small: fewer hands, faults, instances, clients, deals, and so on, each as few
 * as still break something. */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "sim_less.h"

/* A run in a process of its own: whether it breaks something. */
typedef bool sim_try(uint64_t seed, const struct sim_less *less);

struct sim_shrunk {
    struct sim_less less;
    uint32_t runs; /* that it took */
};

/* drawn: of the seed. begin: what it has less of already. Ends after about most_s seconds. */
void sim_shrink(const struct sim_settings *drawn, const struct sim_less *begin, sim_try *try_run,
                double most_s, struct sim_shrunk *ret);

#endif
