/* PATCH of an item: price, limit per user, time to pay, guard and fence, without a reset. */
#ifndef SETTING_H
#define SETTING_H

#include "section.h"

/* Answers op, an OP_PATCH_ITEM. Members that the request does not have are OP_UNCHANGED, -1 or "".
 * Of the section it uses reader, locks, store and settings. */
void setting_patch(struct section *section, struct op *op);

#endif
