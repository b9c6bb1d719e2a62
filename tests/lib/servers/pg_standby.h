/* A synchronous standby that PostgreSQL waits for but that does not exist. */
#ifndef PG_STANDBY_H
#define PG_STANDBY_H

#include <stdbool.h>

/* Makes every commit wait for a standby of this name; "": none waits. It returns after a commit has
 * been seen to wait. False with a message on stderr. */
bool pg_standby_set(const char *url, const char *name);

#endif
