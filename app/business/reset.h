/* PUT of items and accounts: create, or reset to a new start. */
#ifndef RESET_H
#define RESET_H

#include "section.h"

/* Answers op, an OP_PUT_ITEM or OP_PUT_ACCOUNT. Of the section it uses reader, locks, store and
 * settings. */
void reset_put(struct section *section, struct op *op);

#endif
