/* Hash tables. Without memory HASH_ADD leaves the entry's hh.tbl NULL and the table as it was. */
#ifndef LOCKKIT_TABLE_H
#define LOCKKIT_TABLE_H

#define HASH_NONFATAL_OOM 1 /* else uthash ends the process */
#include <uthash.h>

#endif
