/* A connection to Redis of one's own, for slips that are written by hand. */
#ifndef LAB_REDIS_H
#define LAB_REDIS_H

#include <hiredis/hiredis.h>
#include <stdint.h>

/* url: "redis://HOST:PORT", other parts are ignored. Connecting and each command may take
 * timeout_ms. NULL: there is no such server. To be freed with redisFree(). */
redisContext *lab_redis_connect(const char *url, int64_t timeout_ms);

#endif
