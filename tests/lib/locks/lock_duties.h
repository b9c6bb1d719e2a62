/* What every guard must keep, whatever it claims; each an experiment on a real server. */
#ifndef TEST_LOCK_DUTIES_H
#define TEST_LOCK_DUTIES_H

#include "lockkit.h"

enum { LOCK_DUTIES = 7 };

struct duty {
    const char *name;
    /* Fails the test that it runs in if the guard does not keep it. Returns false where it does not
     * apply. World and thread as for struct claim. */
    bool (*holds)(const lk_provider_info *guard);
};

extern const struct duty lock_duties[LOCK_DUTIES];

#endif
