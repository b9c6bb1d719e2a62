/* A synchronous standby that PostgreSQL waits for, and that is not there. */
#ifndef PG_STANDBY_H
#define PG_STANDBY_H

#include <stdbool.h>

/* From now on every commit waits for a standby of this name; "": none does. When it returns, a
 * commit has been seen to wait. False with a message on stderr. */
bool pg_standby_set(const char *url, const char *name);

#endif
