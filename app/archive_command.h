/* "seckilld archive" moves closed months of the ledger to a file, "seckilld audit" proves store and
 * file. */
#ifndef ARCHIVE_COMMAND_H
#define ARCHIVE_COMMAND_H

#include "config.h"
#include "upkeep_command.h"

/* Each returns its exit status: 0, 1 (it failed, or the audit finds something), 2 (usage). */
int archive_command(const struct config *config, const struct upkeep_arguments *arguments);
int audit_command(const struct config *config, const struct upkeep_arguments *arguments);

#endif
