/* A connection to Redis for slips that do not use lockkit's own. */
#ifndef LAB_REDIS_H
#define LAB_REDIS_H

#include <hiredis/hiredis.h>
#include <stdint.h>

/* url: "redis://HOST:PORT", other parts are ignored; the password is that of the
 * environment (LOCKKIT_REDIS_AUTH). Connecting and each command may take
 * timeout_ms. NULL: no such server, or another form of URL. Free it with redisFree(). */
redisContext *lab_redis_connect(const char *url, int64_t timeout_ms);

#endif
