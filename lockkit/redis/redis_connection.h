/*
 * One RESP2 connection: opened, logged in, written to, read from; every step bounded in time, but
 * one: a host's name is resolved by getaddrinfo(3), which takes what it takes.
 * What both the shared command connection (redis_command.h) and the subscriber (redis_sub.h) stand
 * on. hiredis does the connecting and the parsing.
 *
 * Threading: none; the owner hands a connection over as a whole.
 * Deadlines are instants of lk_monotonic_us(), the real monotonic clock: the bound is on a real
 * socket, so an injected clock (lk_env) has no say in it.
 */
#ifndef LOCKKIT_REDIS_CONNECTION_H
#define LOCKKIT_REDIS_CONNECTION_H

#include "lockkit.h"
#include "monotonic.h"
#include "redis_reply.h"
#include "redis_url.h"
#include "spin.h"

#include <hiredis/hiredis.h>
#include <sys/uio.h>

enum {
    LK_REDIS_BACKLOG_MAX = 1 << 16, /* bytes received and not yet understood */
    LK_REDIS_NO_WAIT = 0            /* as a deadline: only what is there already */
};

typedef struct lk_redis_connection {
    int fd; /* -1: closed */
    redisReader *reader;
    int64_t patience_us;          /* so long one read spins and blocks; 0: not at all */
    lk_spin spin;                 /* before it blocks. The owner's: no closing resets it */
    char message[LK_MESSAGE_MAX]; /* why the last step failed */
} lk_redis_connection;

/* A closed connection; needs no clean-up. */
void lk_redis_connection_init(lk_redis_connection *connection);
/* Connects, AUTH, SELECT; deadline_us does not bound the look-up of a name. Returns LK_OK,
 * LK_UNAVAILABLE (message says why), LK_PROTOCOL. */
lk_status lk_redis_connection_open(lk_redis_connection *connection, const lk_redis_url *url,
                                   int64_t deadline_us);
/* Begins to connect, and does not wait but for the look-up of a name: once poll(2) says that it can
 * be written to, it is connected or has failed, as the first write tells. No AUTH, no SELECT.
 * LK_OK, LK_UNAVAILABLE. */
lk_status lk_redis_connection_begin(lk_redis_connection *connection, const lk_redis_url *url);
void lk_redis_connection_close(lk_redis_connection *connection);
/* False when the server has hung up or has said something that nobody asked for. */
bool lk_redis_connection_quiet(const lk_redis_connection *connection);

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
/* One question whose answer may have any shape and size, each of its strings up to
 * LK_REDIS_BACKLOG_MAX; the connection must be idle. *ret is the
 * caller's (freeReplyObject()), and may be an error reply. LK_OK; LK_UNAVAILABLE (message): no
 * answer; LK_PROTOCOL. Only for what changes nothing. */
lk_status lk_redis_connection_ask(lk_redis_connection *connection, int n, const char **words,
                                  int64_t deadline_us, redisReply **ret);
/* True when bytes beyond the replies read so far have arrived. */
bool lk_redis_connection_leftover(const lk_redis_connection *connection);

#endif
