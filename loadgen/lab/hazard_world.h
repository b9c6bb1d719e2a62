/* The servers that the lab's experiments run on: started once, reused with resources of their own
 * per run, set up anew only where an experiment wants it otherwise. */
#ifndef HAZARD_WORLD_H
#define HAZARD_WORLD_H

#include "lockkit.h"
#include "hazard.h"
#include "load.h"
#include "sandbox.h"
#include "sandbox_proxy.h"

#include <libpq-fe.h>

enum {
    WORLD_ARGS_MAX = 40,
    WORLD_ARGS_TEXT_MAX = 1536,
    WORLD_REDIS_KINDS = REDIS_SMALL + 1,
    WORLD_NODES = 5 /* of redlock */
};

/* The way from an instance to a server. */
struct world_link {
    struct proxy *proxy; /* NULL: none yet */
    int server_port;
};

/* An instance of the service. */
struct world_instance {
    struct sandbox_server *server;
    struct load_target target;
    char args[WORLD_ARGS_TEXT_MAX];       /* it runs with these, joined; "": not started */
    struct world_link links[WORLD_NODES]; /* to the one lock server, or to redlock's nodes */
    struct world_link store;              /* to the database; not used by all */
    bool stopped;                         /* SIGSTOPped */
};

struct world {
    struct sandbox *sandbox;
    const char *seckilld, *clock_shim;
    struct sandbox_server *postgres;
    PGconn *asker; /* looks at the database's locks; NULL: not connected yet */
    /* Lock servers, started when first needed; NULL, n 0: not yet. */
    struct sandbox_server *redis[WORLD_REDIS_KINDS], *nodes[WORLD_NODES], *memcached;
    struct sandbox_zookeeper zookeeper, ensemble;
    struct sandbox *failover_sandbox; /* of the following, made anew for each run */
    struct sandbox_sentinel failover;
    /* What this run's guard uses: */
    struct sandbox_server *locks;     /* its one server; NULL: several, or none */
    char endpoints[SANDBOX_TEXT_MAX]; /* for lk_open() */
    lk_client *inspector;             /* looks at its locks from outside; NULL: not opened yet */
    char inspects[SANDBOX_TEXT_MAX + 32]; /* guard and endpoints of the inspector */
    struct world_instance instances[HAZARD_INSTANCES];
};

/* Starts what all experiments need. Returns 0, or -1 with a message on stderr. */
int world_open(struct world *world, const char *seckilld, const char *clock_shim);
void world_close(struct world *world);

/* Runs all instances with this guard as default and this setting. 0 or -1. */
int world_prepare(struct world *world, const char *guard, const struct hazard_setting *with);

/* The instance that serves an actor. */
struct world_instance *world_instance_of(struct world *world, const struct hazard_setting *with,
                                         enum hazard_who who);

/* hazard_locks.c: starts what the guard needs and sets locks and endpoints. 0 or -1. */
int world_choose_locks(struct world *world, const char *guard, const struct hazard_setting *with);
/* What the lock servers say of a key: 1 held, 0 free, -1 no answer. */
int world_is_held(struct world *world, const char *guard, const char *key);
/* Does the guard's queue have n entries? True for a guard without a queue. */
bool world_queues(struct world *world, const char *guard, const char *key, int n);
void world_close_inspector(struct world *world);

/* Transactions that have written and are not over; -1: not known. */
int world_store_writes(struct world *world);
/* Does a session wait for a lock of the database? */
bool world_store_waits(struct world *world);

/* kill -9, start again, SIGSTOP, SIGCONT; observed. 0 or -1. */
int world_kill(struct world_instance *instance);
int world_restart(struct world_instance *instance);
int world_stop(struct world_instance *instance);
int world_continue(struct world_instance *instance);

#endif
