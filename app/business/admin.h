/* What the operator's writes of a whole item or account have in common: PUT, reset and PATCH. */
#ifndef ADMIN_H
#define ADMIN_H

#include "section.h"

/* The guard that the request names, or the default. NULL: op has its problem. */
struct guard *admin_wanted_guard(struct section *section, struct op *op);

/* Takes the lock of the guard that the row names, which is ret_former. False: op has its problem. A
 * condition that does not hold now needs no lock.
 *
 * If the server of that guard is away, a PUT of another guard goes on without the lock: a request
 * that still runs under the old guard finds the new epoch. A PATCH does not, as the epoch stays: a
 * guard could change and change back while a request holds its lock. */
bool admin_acquire(struct section *section, struct op *op, const struct guard *wanted,
                   char ret_former[DB_GUARD_MAX + 1]);

/* Tells op that its condition does not hold for the row of this version; 0: there is none. */
void admin_refuse(struct op *op, int64_t version);

#endif
