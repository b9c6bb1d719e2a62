/* A shared Redis connection without a client around it. */
#ifndef TEST_REDIS_LINK_H
#define TEST_REDIS_LINK_H

#include "redis_command.h"

enum { LINK_TIMEOUT_MS = 300, LINK_URL_MAX = 300 };

struct link {
    _Atomic uint64_t commands;
    lk_options options;
    lk_context context;
    char url[LINK_URL_MAX];
    lk_redis *redis;
};

/* The struct must not move. False with a message on stderr. */
bool link_open(struct link *link, const char *url);
bool link_open_port(struct link *link, int port);
/* Without the login of the environment: the first thing that the server gets is a command. */
bool link_open_stranger(struct link *link, const char *url);
bool link_open_for(struct link *link, const char *url, int64_t timeout_ms);
void link_close(struct link *link);

/* Sends ECHO; false if the answer belongs to another request. */
bool link_echoes(struct link *link, const char *text, lk_status *ret_status);

#endif
