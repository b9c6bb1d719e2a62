/*
 * The scheduled task that prunes stored answers older than --key-retention-s (db/upkeep.h).
 *
 * It sweeps through all keys in small bites, with a pause after each, so that it costs orders next
 * to nothing. Each instance sweeps: a bite that another one has pruned costs a read.
 */
#ifndef PRUNE_KEYS_H
#define PRUNE_KEYS_H

#include "section.h"

struct prune_keys;

/* Starts the task's thread. NULL without memory or threads. */
struct prune_keys *prune_keys_open(const struct section_base *base);
void prune_keys_close(struct prune_keys *task); /* after its bite; NULL is allowed */

#endif
