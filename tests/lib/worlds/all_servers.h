/* Starts lock servers of each kind, so that a service can offer all its guards. */
#ifndef TEST_ALL_SERVERS_H
#define TEST_ALL_SERVERS_H

#include "sandbox.h"

enum { ALL_REDIS = 5, ALL_ARGS_MAX = 24 };

struct all_servers {
    struct sandbox_server *redis[ALL_REDIS]; /* independent; the first is that of redis-* */
    struct sandbox_server *memcached, *postgres;
    struct sandbox_zookeeper zookeeper; /* one */
    char redis_urls[ALL_REDIS * 40];
};

/* False with a message on stderr. */
bool all_servers_open(struct sandbox *sandbox, struct all_servers *ret);
/* Fills ret with seckilld's arguments for these servers, then with `more` (NULL-terminated). */
void all_servers_args(const struct all_servers *servers, const char *const *more,
                      const char *ret[ALL_ARGS_MAX + 1]);

#endif
