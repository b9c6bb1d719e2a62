/*
 * Connections to one memcached, lent to the threads of a client. Text protocol: one question and
 * its answer at a time.
 *
 * A connection whose question was not answered in full is closed, so that a late answer is never
 * taken for another question's. An idle connection is tested before it is used, so that a server
 * that has gone away costs a reconnect and not an unknown outcome.
 *
 * If LOCKKIT_MEMCACHED_AUTH holds "user:password", each new connection logs in first, as memcached
 * with --auth-file demands: by a set whose value is "user password". No command is sent before the
 * login is accepted.
 *
 * Each connect looks the host's name up, and no timeout of the library bounds that: prefer
 * addresses.
 *
 * Threading: any thread may call the pool's functions. A connection belongs to its borrower.
 */
#ifndef LOCKKIT_MEMCACHED_POOL_H
#define LOCKKIT_MEMCACHED_POOL_H

#include "provider.h"

enum {
    LK_MEMCACHED_CONNECTIONS_MAX = 16, /* other callers wait, up to the command timeout */
    LK_MEMCACHED_PORT = 11211,         /* if the endpoint names none */
    LK_MEMCACHED_HOST_MAX = 255,
    LK_MEMCACHED_ANSWER_MAX = 1024 /* bytes of a line, and of a value that may be a token */
};

typedef struct lk_memcached_pool lk_memcached_pool;
typedef struct lk_memcached_connection lk_memcached_connection;

/* Endpoint: "host[:port]", "[ipv6]:port" or "unix:///path". Connects on first use. LK_OK,
 * LK_INVALID (also for several hosts, or a login of a wrong form), LK_NO_MEMORY. */
lk_status lk_memcached_open(const lk_context *context, lk_memcached_pool **ret, lk_error *error);
/* No connection may be lent out. */
void lk_memcached_close(lk_memcached_pool *pool);

/* A connected connection for one call, of at most the command timeout from here. NULL: none was
 * free or the server could not be reached: certainly nothing was sent. */
lk_memcached_connection *lk_memcached_take(lk_memcached_pool *pool);
/* lk_note() of this server; returns status. */
lk_status lk_memcached_note(const lk_memcached_connection *connection, lk_status status,
                            const char *what);
/* Gives it back; usable: its last answer was read to the end. */
void lk_memcached_give(lk_memcached_pool *pool, lk_memcached_connection *connection, bool usable);

/*
 * Sends one command of `length` bytes, reads the first line of its answer into line, without its
 * end. LK_OK; LK_UNAVAILABLE: certainly not done (not sent, SERVER_ERROR, or no login); LK_UNKNOWN:
 * sent, no answer; LK_PROTOCOL: ERROR, CLIENT_ERROR, or no line.
 */
lk_status lk_memcached_ask(lk_memcached_pool *pool, lk_memcached_connection *connection,
                           const char *command, size_t length, char line[LK_MEMCACHED_ANSWER_MAX]);
/* Reads one more line. LK_OK, LK_UNKNOWN, LK_PROTOCOL (longer than fits). */
lk_status lk_memcached_line(lk_memcached_connection *connection,
                            char line[LK_MEMCACHED_ANSWER_MAX]);
/* Reads a value of so many bytes, whatever they are. Returns as lk_memcached_line(). */
lk_status lk_memcached_value(lk_memcached_connection *connection, size_t length,
                             char value[LK_MEMCACHED_ANSWER_MAX]);

#endif
