/*
 * Connections to one memcached, lent to the threads of a client.
 *
 * A connection whose question was not answered in full is closed, so that a late answer is never
 * taken for another question's. An idle connection is tested before it is used, so that a server
 * that has gone away costs a reconnect and not an unknown outcome.
 *
 * If LOCKKIT_MEMCACHED_AUTH holds "user:password", each new connection logs in first, as memcached
 * with --auth-file demands: by a set whose value is "user password". No command is sent before the
 * login is accepted.
 *
 * Threading: any thread may call the pool's functions. A connection belongs to its borrower.
 */
#ifndef LOCKKIT_MEMCACHED_POOL_H
#define LOCKKIT_MEMCACHED_POOL_H

#include "memcached_connection.h"

enum { LK_MEMCACHED_CONNECTIONS_MAX = 16 }; /* other callers wait, up to the command timeout */

typedef struct lk_memcached_pool lk_memcached_pool;

/* The endpoint and the login are read as by lk_memcached_server_read(). Connects on first use.
 * LK_OK, LK_INVALID, LK_NO_MEMORY. */
lk_status lk_memcached_open(const lk_context *context, lk_memcached_pool **ret, lk_error *error);
/* No connection may be lent out. */
void lk_memcached_close(lk_memcached_pool *pool);

/* A connected connection for one call, of at most the command timeout from here. NULL: none was
 * free or the server could not be reached: certainly nothing was sent. */
lk_memcached_connection *lk_memcached_take(lk_memcached_pool *pool);
/* Gives it back; usable: its last answer was read to the end. */
void lk_memcached_give(lk_memcached_pool *pool, lk_memcached_connection *connection, bool usable);

#endif
