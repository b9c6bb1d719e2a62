/*
 * Private lock servers, clients of their guards, and queries about the locks on the servers.
 *
 * A family is one kind of server with its guards. The claims (lock_claims.h) use servers only
 * through their family. So a new kind of server needs a file family_NAME.c, an entry in
 * lock_families[] and a test_conformance_NAME.c. If it has server(), it also needs a
 * test_outage_NAME.c and a test_endurance_NAME.c.
 */
#ifndef TEST_LOCK_WORLD_H
#define TEST_LOCK_WORLD_H

#include "lockkit.h"
#include "sandbox.h"

#include <stdarg.h>

enum {
    WORLD_ENDPOINTS_MAX = 1024,
    WORLD_COMMAND_MS = 10000 /* a command timeout that no server exceeds, even on a busy machine */
};

/* All calls are made by the test's main thread, after start(). Keys are lockkit's keys. */
struct lock_family {
    const char *name;
    const char *const *guards; /* names of the providers it serves, NULL-terminated */
    bool fast;                 /* thousands of grants a second: the long series are longer */

    bool (*start)(struct sandbox *sandbox); /* its servers; once per test binary */
    /* Endpoints for lk_open(). proxy_port 0: the servers themselves; else the server of port() is
     * reached through this loopback port. */
    void (*endpoints)(char *ret, size_t size, int proxy_port);
    int (*port)(void); /* of the server to put a proxy before; 0: there is none */
    struct sandbox_server *(*server)(size_t i); /* the ith server, NULL past the last; the pointer
                                                   itself is NULL if there are no servers */
    void (*wipe)(void);                         /* deletes all, fence counters too */
    bool (*exists)(const char *key);            /* true if the servers have a holder of the lock */
    bool (*remove)(const char *key); /* frees the lock by hand, as an operator would; false: it had
                                        no holder */
    int64_t (*left_ms)(const char *key); /* time left of its lease on the server; -1: the lock does
                                            not expire while its holder is connected */
    int64_t (*leftovers)(void);          /* keys, nodes, rows on the server, without fence
                                            counters and those kept on purpose */
    /* If a holder with a lease of lease_ms is killed, its lock is free within this time. */
    int64_t (*crash_bound_ms)(const lk_provider_info *guard, int64_t lease_ms);
};

extern const struct lock_family family_redis, family_sentinel, family_cluster, family_redlock,
    family_memcached, family_zookeeper, family_sqlite, family_postgres;
extern const struct lock_family *const lock_families[]; /* NULL-terminated */

extern struct sandbox *world_sandbox;
extern const struct lock_family *world; /* the family that world_open() starts; default: redis */

/* Group set-up and tear-down of cmocka. */
int world_open(void **state);
int world_close(void **state);
/* Set-up of a test: empties the servers, fence counters too. */
int world_empty(void **state);

/* Options with WORLD_COMMAND_MS. */
extern const lk_options world_patient;

/* A client of the guard, on the world's servers or through a proxy's port. NULL with a message. */
lk_client *world_client(const char *guard, const lk_options *options);
lk_client *world_client_at(const char *guard, int proxy_port, const lk_options *options);

/* Acquires and releases a lock once: then the client has a connection and, on Redis, has loaded its
 * scripts. Returns client. */
lk_client *world_warm(lk_client *client);
lk_stats world_stats(const lk_client *client);

/* lk_acquire() without an owner. lease_ms 0: the default lease; wait_ms 0: one attempt. */
lk_status world_acquire(lk_client *client, const char *key, int64_t lease_ms, int64_t wait_ms,
                        lk_hold *hold);
/* True as soon as the key is free on the server; false if it was not within wait_ms. */
bool world_frees(const char *key, int64_t wait_ms);
/* For comes_within(). */
bool world_is_free(void *key);
/* Stops (or continues) each server with all its processes; kills each; starts each again. They fail
 * the test on an error. */
void world_freeze(bool on);
void world_kill(void);
void world_restart(void);

/* -- PostgreSQL only (family_postgres.c)
 * -------------------------------------------------------------
 */

extern struct sandbox_server *world_postgres;

/* Runs one statement on a new connection; $1: key (may be NULL). Returns the first integer of the
 * result; 0 if there are no rows or the table does not exist; INT64_MIN on another error. */
int64_t world_sql(const char *sql, const char *key);

/* -- Redis only (family_redis.c) ------------------------------------------------------------------
 */

extern struct sandbox_server *world_redis;

/* Runs one command in hiredis format. Returns its integer; 0 for nil; 1 for any text; INT64_MIN on
 * an error. */
int64_t world_ask(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a text: "" if there is none. */
void world_ask_text(char *ret, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* True if the redis-token lock exists and belongs to this hold. */
bool world_stands(const lk_hold *hold);
/* True as soon as the command's integer is want; false if it was not within wait_ms. */
bool world_becomes(int64_t want, int64_t wait_ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* -- memcached only (family_memcached.c) ---------------------------------------------------------
 */

extern struct sandbox_server *world_memcached;

/* -- ZooKeeper only (family_zookeeper.c) ----------------------------------------------------------
 */

extern struct sandbox_zookeeper world_zookeeper;

/* How many children a node has; -1: there is no such node. */
int world_zk_children(const char *path);
/* Creates a node without lockkit, as another client's contender. Its session lives until
 * world_close(). mode: ZOO_EPHEMERAL_SEQUENTIAL or another. ret gets the node's name. */
bool world_zk_create(const char *path, int mode, char *ret, int size);
bool world_zk_delete(const char *path);

/* -- redlock only (family_redlock.c) ----------------------------------------------------------- */

enum { WORLD_NODES = 5, WORLD_QUORUM = 3 };

extern struct sandbox_server *world_nodes[WORLD_NODES];

/* How many nodes have the key; a node that does not answer is not counted. */
int world_standing(const char *key);

#endif
