/*
 * One TCP or unix connection to Redis: opened, greeted, written to, read from. Commands
 * (redis_mux.h), subscriptions (redis_sub.h) and Redlock's nodes (redlock_node.h) stand on it.
 * hiredis connects and parses.
 *
 * Every step is bounded in time, with one exception: getaddrinfo(3) looks up a host's name, and
 * takes as long as it takes. Deadlines are instants of lk_monotonic_us(), the real clock: the wait
 * is for a real socket, so an injected clock (lk_env) does not apply.
 *
 * Threading: none. The owner hands a connection over as a whole.
 */
#ifndef LOCKKIT_REDIS_CONNECTION_H
#define LOCKKIT_REDIS_CONNECTION_H

#include "lockkit.h"
#include "monotonic.h"
#include "redis_protocol.h"
#include "redis_url.h"
#include "spin.h"

#include <hiredis/hiredis.h>
#include <sys/uio.h>

enum {
    LK_REDIS_BACKLOG_MAX = 1 << 16, /* bytes received and not yet parsed */
    LK_REDIS_NO_WAIT = 0            /* as a deadline: only what has arrived */
};

enum { LK_REDIS_GREETINGS_MAX = 3 };

typedef struct lk_redis_connection {
    int fd; /* -1: closed */
    redisReader *reader;
    int64_t patience_us;                /* how long one read may spin and block; 0: not at all */
    lk_spin spin;                       /* before it blocks. Set by the owner, survives closing */
    int64_t used_us;                    /* last traffic; set by the owner */
    char server[LK_REDIS_HOST_MAX + 8]; /* "host:port", or the path of its socket */
    int n_greetings;                    /* sent and not answered, in this order: */
    const char *greeting[LK_REDIS_GREETINGS_MAX];
    char message[LK_MESSAGE_MAX]; /* why the last step failed */
} lk_redis_connection;

/* A closed connection; needs no clean-up. */
void lk_redis_connection_init(lk_redis_connection *connection);
/* Connects and greets. deadline_us does not bound the look-up of a name. Returns LK_OK,
 * LK_UNAVAILABLE (message says why), LK_PROTOCOL. */
lk_status lk_redis_connection_open(lk_redis_connection *connection, const lk_redis_url *url,
                                   int64_t deadline_us);
void lk_redis_connection_close(lk_redis_connection *connection);

/* The steps of opening, for an owner that waits for several connections at once. */

/* Begins to connect. Waits for the look-up of a name and for nothing else. Once poll(2) says that
 * the descriptor can be written to, it is connected or has failed; the first write tells which.
 * LK_OK, LK_UNAVAILABLE. */
lk_status lk_redis_connection_begin(lk_redis_connection *connection, const lk_redis_url *url);
/* The one greeting of Redis: AUTH and SELECT where the URL wants them, then PING if ping, in one
 * write. LK_OK: n_greetings answers are due; else as lk_redis_connection_write(). */
lk_status lk_redis_connection_greet(lk_redis_connection *connection, const lk_redis_url *url,
                                    bool ping, int64_t deadline_us);
/* Reads the answers to the greeting. LK_OK: all are good. LK_TIMEOUT: call it again, with the same
 * reply. LK_UNAVAILABLE: refused. Else as lk_redis_connection_read(). */
lk_status lk_redis_connection_greeted(lk_redis_connection *connection, lk_redis_reply *reply,
                                      int64_t deadline_us);

/* Before writing. After a moment without traffic: closes a connection that the server has closed,
 * or on which it has sent bytes unasked. So a server that went away costs a reconnect, not an
 * unknown outcome. */
void lk_redis_connection_look(lk_redis_connection *connection);

/* Writes all of it; iov is consumed. LK_OK; LK_UNAVAILABLE: not one byte went out; LK_UNKNOWN. */
lk_status lk_redis_connection_write(lk_redis_connection *connection, struct iovec *iov, size_t n,
                                    int64_t deadline_us);
/* The next reply. LK_OK; LK_TIMEOUT: deadline passed; LK_UNKNOWN: hung up; LK_PROTOCOL. After
 * anything but LK_OK the connection is of no more use, except that LK_TIMEOUT may be tried again.
 */
lk_status lk_redis_connection_read(lk_redis_connection *connection, lk_redis_reply *reply,
                                   int64_t deadline_us);
/* For a reply that lk_redis_reply_refuses(): it becomes the message. LK_UNAVAILABLE. */
lk_status lk_redis_connection_refused(lk_redis_connection *connection, const lk_redis_reply *reply);
/* One question whose answer may have any shape, with strings of up to LK_REDIS_BACKLOG_MAX bytes.
 * The connection must be idle, and the question must change nothing. *ret may be an error reply;
 * the caller frees it (freeReplyObject()). LK_OK; LK_UNAVAILABLE (message): no answer; LK_PROTOCOL.
 */
lk_status lk_redis_connection_ask(lk_redis_connection *connection, int n, const char **words,
                                  int64_t deadline_us, redisReply **ret);
/* True when bytes beyond the replies read so far have arrived. */
bool lk_redis_connection_leftover(const lk_redis_connection *connection);

#endif
