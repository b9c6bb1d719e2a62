/*
 * What the seed of a round draws: the settings of the service, what its clients want, which kinds
 * of fault exist at all (swarm testing: Groce and others, ISSTA 2012), and when each one strikes.
 * Pure functions: equal seeds and limits give equal plans.
 */
#ifndef TORTURE_PLAN_H
#define TORTURE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* -- what a fault does to a lock --------------------------------------------------------------- */

enum torture_harm {
    HARM_FORGET = 1,  /* the lock server forgets a lock, or gives it back */
    HARM_LEASE = 2,   /* a lease or a session may end under its holder */
    HARM_SESSION = 4, /* a holder's connection to the lock server breaks */
    HARM_DIE = 8,     /* a holder dies, and its commit may land after that */
    HARM_ALWAYS = 16  /* no fault is needed */
};

/* -- faults ------------------------------------------------------------------------------------ */

/* What a fault strikes, and so when it can be drawn. */
enum torture_target {
    AT_INSTANCE,
    AT_LOCKS,      /* any lock server, also PostgreSQL */
    AT_REDIS,      /* Redis, in any topology */
    AT_CACHE,      /* Redis or memcached: servers that forget */
    AT_LOCK_WIRES, /* between an instance and a lock server, where a proxy can stand */
    AT_LEADER,     /* Redis with replicas, or three ZooKeeper servers */
    AT_POSTGRES,   /* as store */
    AT_SQLITE      /* as store */
};

/*
 * Name, where, times per two minutes, shortest and longest duration in ms, harms. Harms of a
 * lock server that is killed depend on its kind: torture_breaks().
 */
#define TORTURE_FAULT_MAP(X)                                                                       \
    X(KILL, "kill", AT_INSTANCE, 180, 0, 300, HARM_DIE)                                            \
    X(PAUSE, "pause", AT_INSTANCE, 90, 10, 900, HARM_LEASE)                                        \
    X(RESTART, "restart", AT_INSTANCE, 15, 0, 100, 0)                                              \
    X(FEW_FILES, "few-files", AT_INSTANCE, 15, 100, 1000, HARM_SESSION)                            \
    X(DOUBLE_KILL, "double-kill", AT_INSTANCE, 45, 0, 300, HARM_DIE)                               \
    X(LOCKS_KILL, "locks-kill", AT_LOCKS, 60, 0, 500, 0)                                           \
    X(LOCKS_PAUSE, "locks-pause", AT_LOCKS, 30, 10, 900, HARM_LEASE)                               \
    X(FLUSH, "flush", AT_CACHE, 90, 0, 0, HARM_FORGET)                                             \
    X(DELETE, "delete", AT_LOCKS, 240, 0, 0, HARM_FORGET)                                          \
    X(EVICT, "evict", AT_REDIS, 30, 0, 0, HARM_FORGET)                                             \
    X(CLIENT_PAUSE, "client-pause", AT_REDIS, 20, 10, 900, HARM_LEASE)                             \
    X(CLOCK, "clock", AT_REDIS, 20, 0, 0, HARM_LEASE)                                              \
    X(CUT, "cut", AT_LOCK_WIRES, 60, 0, 0, HARM_SESSION)                                           \
    X(HALF_CUT, "half-cut", AT_LOCK_WIRES, 20, 50, 900, HARM_LEASE | HARM_SESSION)                 \
    X(DELAY, "delay", AT_LOCK_WIRES, 20, 100, 1500, HARM_LEASE)                                    \
    X(FAILOVER, "failover", AT_LEADER, 40, 2500, 4000, HARM_LEASE | HARM_SESSION)                  \
    X(STORE_KILL, "store-kill", AT_POSTGRES, 50, 0, 300, HARM_SESSION)                             \
    X(STORE_FAST, "store-fast", AT_POSTGRES, 15, 0, 300, HARM_SESSION)                             \
    X(STORE_IMMEDIATE, "store-immediate", AT_POSTGRES, 20, 0, 300, HARM_SESSION)                   \
    X(STORE_PAUSE, "store-pause", AT_POSTGRES, 20, 10, 900, HARM_LEASE)                            \
    X(STORE_CUT, "store-cut", AT_POSTGRES, 60, 0, 0, HARM_SESSION)                                 \
    X(STORE_HALF_CUT, "store-half-cut", AT_POSTGRES, 20, 50, 900, HARM_SESSION)                    \
    X(STORE_DELAY, "store-delay", AT_POSTGRES, 20, 100, 1500, 0)                                   \
    X(TERMINATE, "terminate", AT_POSTGRES, 60, 0, 0, HARM_SESSION)                                 \
    X(STANDBY, "standby", AT_POSTGRES, 10, 100, 1500, HARM_SESSION | HARM_LEASE)                   \
    X(DISK_FULL, "disk-full", AT_SQLITE, 30, 100, 1500, 0)                                         \
    X(ARCHIVE, "archive", AT_POSTGRES, 40, 0, 500, 0)                                              \
    X(ARCHIVE_OFFLINE, "archive-offline", AT_SQLITE, 20, 0, 500, HARM_DIE)

enum torture_fault {
#define TORTURE_FAULT_ENUM(name, ...) TORTURE_##name,
    TORTURE_FAULT_MAP(TORTURE_FAULT_ENUM)
#undef TORTURE_FAULT_ENUM
        TORTURE_FAULTS
};

struct torture_fault_info {
    const char *name;
    enum torture_target at;
    uint32_t per_two_minutes, short_ms, long_ms, harms;
};
extern const struct torture_fault_info torture_faults[TORTURE_FAULTS];

/* -- guards ------------------------------------------------------------------------------------ */

enum torture_servers {
    SERVERS_NONE,
    SERVERS_REDIS,     /* single, Sentinel or cluster: torture_settings.topology */
    SERVERS_REDLOCK,   /* five nodes */
    SERVERS_ZOOKEEPER, /* one or three */
    SERVERS_MEMCACHED,
    SERVERS_DATABASE, /* PostgreSQL, or for sql-unique the store's kind */
    SERVERS_POSTGRES
};

enum torture_topology { SINGLE, SENTINEL, CLUSTER, FIVE, THREE };

/* What a guard claims: the table of torture_claims.c. */
struct torture_guard {
    const char *name;
    enum torture_servers servers;
    bool one_process; /* excludes only the threads of one process */
    bool a_lock;      /* takes a fence from the store, if told so */
    bool fence;       /* its lock gives fences */
    /* harms that may lose an update when the write has no fence */
    uint32_t broken_by;
    bool stuck_by_faults; /* its lock may stay locked for ever: no progress is demanded */
    uint32_t weight;      /* in the draw */
};
extern const struct torture_guard torture_guards[];
extern const int n_torture_guards;
/* NULL: none has this name. */
const struct torture_guard *torture_guard_named(const char *name);

/* -- the plan of a round ----------------------------------------------------------------------- */

enum { TORTURE_STRIKES_MAX = 400, TORTURE_INSTANCES = 2, TORTURE_NODES = 5 };

struct torture_settings {
    const struct torture_guard *guard;
    enum torture_topology topology;
    bool postgres; /* the store; else SQLite */
    uint32_t instances, workers, batch, turns, lease_ms, wait_ms;
    bool lanes, lock_queue, watchdog, fence, fence_database;
    uint32_t clients, items, stock, limit, accounts, balance, think_ms;
    uint32_t faults_ms; /* so long faults strike */
    bool leave_broken;  /* a minority of the lock servers stays dead: the guard tolerates it */
    bool faults[TORTURE_FAULTS];
    /* torture_claim(): what must hold */
    bool claims_safe;     /* no update may be lost */
    bool claims_progress; /* all requests are served within 60 s of the heal */
};

struct torture_strike {
    uint32_t at_ms, for_ms;
    enum torture_fault fault;
    uint32_t who;    /* instance or node, to be taken modulo their number */
    uint32_t chance; /* for what the fault draws besides */
};

struct torture_plan {
    uint64_t seed;
    struct torture_settings is;
    int n_strikes;
    struct torture_strike strikes[TORTURE_STRIKES_MAX]; /* in order of time */
};

/* Limits of the command line; NULL, 0: none. */
struct torture_limits {
    const char *guard;  /* this one only */
    const char *store;  /* "sqlite", "postgres" */
    uint32_t instances; /* 0: drawn */
    bool small;         /* only one Redis beside the store: what starts at once */
    const char *fault;  /* each that begins so exists wherever it can strike */
};

void torture_plan_draw(struct torture_plan *ret, uint64_t seed,
                       const struct torture_limits *limits);
/* Sets both claims from the settings and their faults. */
void torture_claim(struct torture_settings *is);
/* The harms of a fault that may lose an update of this round's guard, if its writes have no fence.
 */
uint32_t torture_breaks(const struct torture_settings *is, enum torture_fault fault);
bool torture_is_fenced(const struct torture_settings *is);
/* "redis-token sqlite 2x ..." on one line, without its end. */
void torture_settings_print(const struct torture_settings *is, FILE *out);
/* Settings and strikes, a line each. */
void torture_plan_print(const struct torture_plan *plan, FILE *out);

/* A stream of random numbers. */
uint32_t torture_below(uint64_t *state, uint32_t n);

#endif
