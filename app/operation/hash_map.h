/* uthash for the service. If memory runs out, HASH_ADD leaves the entry's hh.tbl NULL and the table
 * unchanged. */
#ifndef HASH_MAP_H
#define HASH_MAP_H

#define HASH_NONFATAL_OOM 1 /* by default uthash ends the process */
#include <uthash.h>

#endif
