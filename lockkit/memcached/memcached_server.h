/* Where a memcached is, and the login that it demands. */
#ifndef LOCKKIT_MEMCACHED_SERVER_H
#define LOCKKIT_MEMCACHED_SERVER_H

#include "login.h"
#include "provider.h"

#include <sys/un.h>

enum {
    LK_MEMCACHED_PORT = 11211, /* if the endpoint names none */
    LK_MEMCACHED_HOST_MAX = 255,
    LK_MEMCACHED_LOGIN_MAX = 2 * LK_LOGIN_MAX + 64
};

typedef struct lk_memcached_server {
    char host[LK_MEMCACHED_HOST_MAX + 1], port[8];
    struct sockaddr_un local;           /* sun_path "": TCP */
    char login[LK_MEMCACHED_LOGIN_MAX]; /* the command that logs in; "": no login */
} lk_memcached_server;

/* Reads an endpoint, "host[:port]", "[ipv6]:port" or "unix:///path", and the login in
 * LOCKKIT_MEMCACHED_AUTH. LK_OK; LK_INVALID: several hosts, or a wrong form. */
lk_status lk_memcached_server_read(const char *endpoint, lk_memcached_server *ret, lk_error *error);

#endif
