/* Hash tables. If memory runs out, HASH_ADD leaves the entry's hh.tbl NULL and the table unchanged.
 */
#ifndef LOCKKIT_TABLE_H
#define LOCKKIT_TABLE_H

#define HASH_NONFATAL_OOM 1 /* by default uthash ends the process */
#include <uthash.h>

#endif
