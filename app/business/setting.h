/* PATCH without a reset. Of an item: price, limit per user, time to pay, guard and fence; of an
 * account: guard and fence. */
#ifndef SETTING_H
#define SETTING_H

#include "section.h"

/* Answers op, an OP_PATCH_*. Members that the request does not have are OP_UNCHANGED, -1 or "".
 * Of the section it uses reader, locks, store and settings. The answer has the row as it was
 * committed; of an item, sold is counted once the lock is free, so orders since are in it. */
void setting_patch(struct section *section, struct op *op);

#endif
