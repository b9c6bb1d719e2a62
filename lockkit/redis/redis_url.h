/* One Redis node's address, from its URL. */
#ifndef LOCKKIT_REDIS_URL_H
#define LOCKKIT_REDIS_URL_H

#include "lockkit.h"
#include "login.h"

enum { LK_REDIS_HOST_MAX = 255, LK_REDIS_SECRET_MAX = LK_LOGIN_MAX, LK_REDIS_DB_MAX = 65535 };

/* The end of a message about a login that is missing or wrong. */
#define LK_REDIS_LOGIN_ADVICE                                                                      \
    "; give its login in the endpoint or in " LK_REDIS_LOGIN ", a Sentinel's "                     \
    "in " LK_SENTINEL_LOGIN

typedef struct lk_redis_url {
    char host[LK_REDIS_HOST_MAX + 1]; /* of redis://; "": a unix socket */
    int port;
    char path[LK_REDIS_HOST_MAX + 1]; /* of unix://, "": TCP */
    char user[LK_REDIS_SECRET_MAX + 1];
    char password[LK_REDIS_SECRET_MAX + 1]; /* "": no AUTH */
    int db;                                 /* 0: no SELECT */
} lk_redis_url;

/*
 * Parses "redis://[[user]:password@]host[:port][/db]" (user and password percent-encoded, an IPv6
 * host in brackets, port 6379 when absent) or "unix:///path/to/socket[?db=N]".
 * Returns LK_OK, or LK_INVALID with a message that never contains the password.
 */
lk_status lk_redis_url_parse(const char *text, lk_redis_url *ret, lk_error *error);

/* Gives a URL without a login that of an environment variable, if there is one (login.h). LK_OK;
 * LK_INVALID: its form is wrong. */
lk_status lk_redis_url_login(lk_redis_url *url, const char *variable, lk_error *error);

#endif
