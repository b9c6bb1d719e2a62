/*
 * Maps holds to connections, and finds connections that have ended: one thread per client sleeps in
 * epoll until a server closes a connection.
 *
 * A watch id is the time of one hold on one connection. It is a number that is never used again,
 * and it names a place in a fixed table. So a late look with an old id finds another id there, and
 * never freed memory.
 */
#ifndef LOCKKIT_PG_WATCH_H
#define LOCKKIT_PG_WATCH_H

#include "sql_postgres.h"

typedef struct lk_pg_watch lk_pg_watch;

/* Starts the thread. LK_OK, LK_NO_MEMORY. */
lk_status lk_pg_watch_open(const lk_context *context, lk_pg_watch **ret);
/* No watch id is in use. */
void lk_pg_watch_close(lk_pg_watch *watch);

/* Begins to watch a connection; 0: this connection cannot be watched. At most LK_PG_POOL_MAX at a
 * time. */
uint64_t lk_pg_watch_add(lk_pg_watch *watch, lk_pg_conn *conn);
/* Its connection; NULL if the id is over. For the thread of the hold. */
lk_pg_conn *lk_pg_watch_find(lk_pg_watch *watch, uint64_t watch_id);
/* Ends it: the connection is the caller's alone. */
void lk_pg_watch_remove(lk_pg_watch *watch, uint64_t watch_id);

/* False if the id is over or its connection has ended. Any thread; takes no lock. */
bool lk_pg_watch_alive(lk_pg_watch *watch, uint64_t watch_id);

#endif
