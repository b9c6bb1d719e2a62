/* The catalogue's rows, by theme: hazard_rows_*.c. */
#ifndef HAZARD_ROWS_H
#define HAZARD_ROWS_H

#include "hazard.h"

#define HAZARD_MAP(X)                                                                              \
    X(lost_update)                                                                                 \
    X(oversell)                                                                                    \
    X(two_processes)                                                                               \
    X(expired_lease)                                                                               \
    X(wrong_delete)                                                                                \
    X(paused_holder)

#define HAZARD_DECLARE(name) extern const struct hazard hazard_##name;
HAZARD_MAP(HAZARD_DECLARE)
#undef HAZARD_DECLARE

#endif
