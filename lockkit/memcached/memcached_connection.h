/*
 * One connection to a memcached, in the text protocol: one question and its answer at a time, each
 * before the connection's deadline.
 *
 * Each connect looks the host's name up, and no timeout of the library bounds that: prefer
 * addresses.
 *
 * Threading: one thread at a time.
 */
#ifndef LOCKKIT_MEMCACHED_CONNECTION_H
#define LOCKKIT_MEMCACHED_CONNECTION_H

#include "memcached_server.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_MEMCACHED_ANSWER_MAX = 1024 }; /* bytes of a line, and of a value that may be a token */

typedef struct lk_memcached_connection lk_memcached_connection;
struct lk_memcached_connection {
    const lk_context *context;
    int fd; /* -1: closed */
    int64_t deadline_us, used_us;
    size_t begin, end; /* received and not yet read */
    char received[LK_MEMCACHED_ANSWER_MAX];
    lk_memcached_connection *next; /* free ones of the pool */
};

/* Connects and logs in. LK_OK; LK_UNAVAILABLE: it is closed, and no command was sent. */
lk_status lk_memcached_connect(const lk_memcached_server *server,
                               lk_memcached_connection *connection);
void lk_memcached_disconnect(lk_memcached_connection *connection);
/* The server has sent nothing unasked and has not closed the connection. */
bool lk_memcached_is_quiet(const lk_memcached_connection *connection);

/* lk_note() of this server; returns status. */
lk_status lk_memcached_note(const lk_memcached_connection *connection, lk_status status,
                            const char *what);

/*
 * Sends one command of `length` bytes, reads the first line of its answer into line, without its
 * end. LK_OK; LK_UNAVAILABLE: certainly not done (not sent, SERVER_ERROR, or no login); LK_UNKNOWN:
 * sent, no answer; LK_PROTOCOL: ERROR, CLIENT_ERROR, or no line.
 */
lk_status lk_memcached_ask(lk_memcached_connection *connection, const char *command, size_t length,
                           char line[LK_MEMCACHED_ANSWER_MAX]);
/* Reads one more line. LK_OK, LK_UNKNOWN, LK_PROTOCOL (longer than fits). */
lk_status lk_memcached_line(lk_memcached_connection *connection,
                            char line[LK_MEMCACHED_ANSWER_MAX]);
/* Reads a value of so many bytes, whatever they are. Returns as lk_memcached_line(). */
lk_status lk_memcached_value(lk_memcached_connection *connection, size_t length,
                             char value[LK_MEMCACHED_ANSWER_MAX]);

#endif
