/*
 * Which hold has which connection, and which of them have ended: one thread per client that sleeps
 * in epoll until a server hangs up.
 *
 * A watch_id is one hold's time on one connection: a number that never comes again and says in
 * which place of a fixed table it stands, so that a late look at one that is over finds another's
 * number, and no freed memory.
 */
#ifndef LOCKKIT_PG_WATCH_H
#define LOCKKIT_PG_WATCH_H

#include "sql_postgres.h"

typedef struct lk_pg_watch lk_pg_watch;

/* Starts the thread. LK_OK, LK_NO_MEMORY. */
lk_status lk_pg_watch_open(const lk_context *context, lk_pg_watch **ret);
/* No watch_id is left. */
void lk_pg_watch_close(lk_pg_watch *watch);

/* Begins a watch_id; 0: this connection cannot be watched. At most LK_PG_POOL_MAX at a time. */
uint64_t lk_pg_watch_add(lk_pg_watch *watch, lk_pg_conn *conn);
/* Its connection; NULL when it is over. For the thread that has the hold. */
lk_pg_conn *lk_pg_watch_find(lk_pg_watch *watch, uint64_t watch_id);
/* Ends it: the connection is the caller's alone. */
void lk_pg_watch_remove(lk_pg_watch *watch, uint64_t watch_id);

/* False when it is over or its connection has ended. Any thread, takes no lock. */
bool lk_pg_watch_alive(lk_pg_watch *watch, uint64_t watch_id);

#endif
