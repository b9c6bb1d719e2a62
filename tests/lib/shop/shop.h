/* The real service on private servers, for the end-to-end tests. */
#ifndef TEST_SHOP_H
#define TEST_SHOP_H

#include "sandbox.h"
#include "shop_client.h"

enum { SHOP_WAIT_MS = 30000 }; /* for answers whose time is not the point */

struct shop {
    struct sandbox *sandbox;
    struct sandbox_server *redis, *service;
    struct client client; /* for the main thread */
};

/* Opens sandbox, Redis and one service with a database in the sandbox. args: further arguments,
 * NULL-terminated. 0 or -1; call shop_close() in both cases. */
int shop_open(struct shop *shop, const char *const *args);
/* One more instance on the same database and Redis; NULL on failure. */
struct sandbox_server *shop_instance(struct shop *shop, const char *const *args);
/* Ends the service by SIGTERM. True if its exit status is 0: then no sanitizer reported an error,
 * either. True for a service that does not run. */
bool shop_stop(struct sandbox_server *service);
void shop_close(struct shop *shop);

/* $BUILD/NAME; without $BUILD: build/NAME. Static. */
const char *shop_binary(const char *name);

/* Creates or resets: 201 or 200. */
bool shop_put(struct shop *shop, const char *path, const char *body);
/* POST with the main client; returns the status. */
int shop_post(struct shop *shop, const char *path, const char *key, const char *body,
              struct reply *ret);
/* True if GET /v1/audit answers ok; if not, prints the answer. */
bool shop_audit_ok(int port);

#endif
