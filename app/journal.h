/* "seckilld export --journal": the books as plain text, for auditors that are not ours. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "db.h"

#include <stdio.h>

/* Writes all movements of money of the store at url, as one snapshot has them. Those that were
 * moved to an archive come from its file, which is proved first; archive NULL: they are one opening
 * entry. DB_OK, or why not. */
db_status journal_write(const char *url, bool shared_file, const char *archive, FILE *out,
                        db_error *error);

#endif
