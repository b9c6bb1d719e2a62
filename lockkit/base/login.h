/*
 * A login from the environment, for servers whose endpoint has none: unlike a command line, the
 * environment of a process is shown to its own user only.
 */
#ifndef LOCKKIT_LOGIN_H
#define LOCKKIT_LOGIN_H

enum { LK_LOGIN_MAX = 128 }; /* bytes of a user's name, and of a password */

#define LK_REDIS_LOGIN     "LOCKKIT_REDIS_AUTH"
#define LK_SENTINEL_LOGIN  "LOCKKIT_SENTINEL_AUTH"
#define LK_MEMCACHED_LOGIN "LOCKKIT_MEMCACHED_AUTH"
#define LK_ZOOKEEPER_LOGIN "LOCKKIT_ZOOKEEPER_AUTH"

typedef struct lk_login {
    char user[LK_LOGIN_MAX + 1];     /* "": none was given */
    char password[LK_LOGIN_MAX + 1]; /* "": no login */
} lk_login;

/* Reads "user:password" or "password" from a variable; a password with a colon is written
 * ":password". A variable that is empty or not set gives no login. Returns NULL, or what is wrong
 * with it, without the password: "has no password after its colon". */
const char *lk_login_read(const char *variable, lk_login *ret);

#endif
