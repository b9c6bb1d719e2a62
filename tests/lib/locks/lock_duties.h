/* What every guard must do, whatever it claims; each duty is an experiment on a real server. */
#ifndef TEST_LOCK_DUTIES_H
#define TEST_LOCK_DUTIES_H

#include "lockkit.h"

enum { LOCK_DUTIES = 14 };

struct duty {
    const char *name;
    /* Fails the calling test if the guard breaks the duty. Returns false if the duty does not
     * apply. World and thread as for struct claim. */
    bool (*holds)(const lk_provider_info *guard);
};

extern const struct duty lock_duties[LOCK_DUTIES];

#endif
