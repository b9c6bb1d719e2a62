/*
 * Private lock servers, clients of the guards that they serve, and looking at what stands in them.
 *
 * A family is one kind of server with the guards that live on it. The claims (lock_claims.h) know
 * servers through their family only, so a new kind of server is one more file family_NAME.c, one
 * entry in lock_families[], and a test_conformance_NAME.c; with server(), a test_outage_NAME.c and
 * a test_endurance_NAME.c as well.
 */
#ifndef TEST_LOCK_WORLD_H
#define TEST_LOCK_WORLD_H

#include "lockkit.h"
#include "sandbox.h"

#include <stdarg.h>

enum { WORLD_ENDPOINTS_MAX = 1024 };

/* All calls from the test's main thread, after start(). Keys are as lockkit's users name them. */
struct lock_family {
    const char *name;
    const char *const *guards; /* names of the providers it serves, NULL-terminated */
    bool fast;                 /* thousands of grants a second: long series can be long */

    bool (*start)(struct sandbox *sandbox); /* its servers; once per test binary */
    /* What lk_open() is given. proxy_port 0: the servers themselves; else the one of port() is
     * reached through this loopback port. */
    void (*endpoints)(char *ret, size_t size, int proxy_port);
    int (*port)(void); /* of the server that a proxy stands before; 0: it has none */
    struct sandbox_server *(*server)(size_t i); /* each in turn, NULL past the last; itself NULL:
                                                   there are none */
    void (*wipe)(void);                         /* empty, fence counters too */
    bool (*exists)(const char *key); /* is the lock there, held by anybody? Asked of the servers */
    bool (*remove)(const char *key); /* freed as by an operator's hand, whoever holds it; false:
                                        nobody did */
    int64_t (*left_ms)(const char *key); /* of its lease on the server; -1: no lease that ends while
                                            its holder lives and is connected */
    int64_t (*leftovers)(void);          /* keys, nodes, rows that stand there besides fence
                                            counters and what is kept on purpose */
    /* The lock of a holder with a lease of lease_ms, killed now, is free within this. */
    int64_t (*crash_bound_ms)(const lk_provider_info *guard, int64_t lease_ms);
};

extern const struct lock_family family_redis, family_sentinel, family_cluster, family_redlock,
    family_memcached, family_zookeeper, family_sqlite, family_postgres;
extern const struct lock_family *const lock_families[]; /* NULL-terminated */

extern struct sandbox *world_sandbox;
extern const struct lock_family *world; /* the one that world_open() starts; at first redis */

/* Group set-up and tear-down of cmocka. */
int world_open(void **state);
int world_close(void **state);
/* Set-up of a test: its servers are empty, fence counters too. */
int world_empty(void **state);

/* Options of clients whose server answers, however busy the machine is. */
extern const lk_options world_patient;

/* A client of the guard, on the world's servers or through a proxy's port. NULL with a message. */
lk_client *world_client(const char *guard, const lk_options *options);
lk_client *world_client_at(const char *guard, int proxy_port, const lk_options *options);

/* It has taken and released a lock once, so that it has a connection and, on Redis, knows its
 * scripts. Returns client. */
lk_client *world_warm(lk_client *client);
lk_stats world_stats(const lk_client *client);

/* One attempt or more, exact or default lease (lease_ms 0), no owner. */
lk_status world_acquire(lk_client *client, const char *key, int64_t lease_ms, int64_t wait_ms,
                        lk_hold *hold);
/* True as soon as the key is free on the server; false when it was not within wait_ms. */
bool world_frees(const char *key, int64_t wait_ms);
/* Each of its servers stands still with all its processes, or goes on; is killed; starts again.
 * Fail the test when one does not. */
void world_freeze(bool on);
void world_kill(void);
void world_restart(void);

/* -- PostgreSQL only (family_postgres.c)
 * -------------------------------------------------------------
 */

extern struct sandbox_server *world_postgres;

/* One statement on a connection of its own, $1: key (may be NULL). The first integer answered; 0
 * without rows or when the table is not there yet, INT64_MIN for another error. */
int64_t world_sql(const char *sql, const char *key);

/* -- Redis only (family_redis.c) ------------------------------------------------------------------
 */

extern struct sandbox_server *world_redis;

/* One command in hiredis format: its integer; 0 for nil, 1 for any other text; INT64_MIN for an
 * error. */
int64_t world_ask(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* ... its text, "" for nil or none. */
void world_ask_text(char *ret, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The lock of a redis-token stands, and is this hold's. */
bool world_stands(const lk_hold *hold);
/* True as soon as the command's integer is want; false when it was not within wait_ms. */
bool world_becomes(int64_t want, int64_t wait_ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* -- memcached only (family_memcached.c) ---------------------------------------------------------
 */

extern struct sandbox_server *world_memcached;

/* -- ZooKeeper only (family_zookeeper.c) ----------------------------------------------------------
 */

extern struct sandbox_zookeeper world_zookeeper;

/* Children of a node; -1: there is no such node. */
int world_zk_children(const char *path);
/* A node made by other means than lockkit, on a session that lives until world_close(): as another
 * client's contender. mode: ZOO_EPHEMERAL_SEQUENTIAL or others. Its name goes to ret. */
bool world_zk_create(const char *path, int mode, char *ret, int size);
bool world_zk_delete(const char *path);

/* -- redlock only (family_redlock.c) ----------------------------------------------------------- */

enum { WORLD_NODES = 5, WORLD_QUORUM = 3 };

extern struct sandbox_server *world_nodes[WORLD_NODES];

/* Nodes on which the key stands; one that does not answer has it not. */
int world_standing(const char *key);

#endif
