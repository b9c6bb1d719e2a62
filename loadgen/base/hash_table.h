/* Hash tables. Without memory HASH_ADD leaves the entry's hh.tbl NULL and the table as it was. */
#ifndef HASH_TABLE_H
#define HASH_TABLE_H

#define HASH_NONFATAL_OOM 1 /* else uthash ends the process */
#include <uthash.h>

#endif
