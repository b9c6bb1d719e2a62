/* The providers built in; registry.c lists them, each stands in the file of its name. */
#ifndef LOCKKIT_PROVIDERS_H
#define LOCKKIT_PROVIDERS_H

#include "provider.h"

extern const lk_provider lk_mutex;
extern const lk_provider lk_redis_setnx;
extern const lk_provider lk_redis_setnx_expire;
extern const lk_provider lk_redis_set;
extern const lk_provider lk_redis_getset;
extern const lk_provider lk_redis_token;
extern const lk_provider lk_redis_reentrant;
extern const lk_provider lk_redis_fair;

#endif
