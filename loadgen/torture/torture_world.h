/* The servers and instances of a round, and what can be done to them. One thread uses a world. */
#ifndef TORTURE_WORLD_H
#define TORTURE_WORLD_H

#include "load.h"
#include "lockkit.h"
#include "sandbox.h"
#include "sandbox_proxy.h"
#include "torture_pace.h"
#include "torture_plan.h"

enum { TORTURE_URL_MAX = 600, TORTURE_PATH_MAX = 512, TORTURE_WHY_MAX = 600 };

/* A server or an instance, and in which state the faults have put it. */
struct torture_process {
    struct sandbox_server *server; /* NULL: not part of this round */
    enum torture_state { RUNS, STOPPED, LEAVES, DOWN } state;
    int64_t until_us; /* STOPPED, DOWN: goes on then; LEAVES: is killed then */
    int64_t down_ms;  /* LEAVES: so long it stays away */
    bool instance;
};

/* Archives of the round's ledger (torture_archive.h). */
struct torture_archive {
    pid_t pid;  /* 0: none runs */
    bool begun; /* one has run: the file may be there */
    bool aim;   /* kill it once the file is larger than it was */
    int64_t size;
    bool disturbed; /* since it began, its server was down, or kept it waiting */
    struct torture_pace pace;
    int64_t ended, killed, failed, resumed;
    int64_t broken; /* of those that failed: not as their server's fault */
};

struct torture_world {
    struct sandbox *sandbox;
    const char *seckilld, *shim;
    const char *slip; /* a mistake the service makes on purpose; NULL: none */
    /* started when first needed, used by many rounds */
    struct sandbox_server *redis, *memcached, *nodes[TORTURE_NODES], *instances[TORTURE_INSTANCES];
    struct sandbox_server *database; /* PostgreSQL */
    struct sandbox_zookeeper single, ensemble;
    struct sandbox *failover_sandbox; /* of the next two, made anew for each round */
    struct sandbox_sentinel sentinel;
    struct sandbox_cluster cluster;
    /* of this round */
    const struct torture_plan *plan;
    struct torture_process postgres, instance[TORTURE_INSTANCES], locks[2 * TORTURE_NODES];
    int n_locks;
    struct proxy *lock_wires[TORTURE_INSTANCES][TORTURE_NODES]; /* NULL: none */
    struct proxy *store_wires[TORTURE_INSTANCES];
    struct load_target targets[TORTURE_INSTANCES];
    char dir[TORTURE_PATH_MAX];       /* of what the round leaves */
    char store[TORTURE_URL_MAX - 16]; /* for the judge: no proxy between */
    char endpoints[TORTURE_URL_MAX];  /* of the guard, without proxies; "": it has none */
    char database_name[32];           /* in PostgreSQL */
    lk_client *hand;                  /* deletes locks; NULL: not open yet */
    struct torture_archive archive;
    pid_t stopped_backends[256];
    int n_stopped_backends;
    bool standby_awaited;      /* commits wait for one that does not exist */
    int failovers;             /* seen in this round */
    int64_t ahead_us;          /* of the clocks of Redis */
    char why[TORTURE_WHY_MAX]; /* something ended by itself; "": nothing did */
};

/* Returns 0, or -1 after a message on stderr. shim: of the clock. */
int torture_world_open(struct torture_world *world, const char *seckilld, const char *shim);
void torture_world_close(struct torture_world *world);

/* Starts what the plan needs. dir exists. 0 or -1. */
int torture_world_prepare(struct torture_world *world, const struct torture_plan *plan,
                          const char *dir);
/* Ends the instances, clears the lock servers. Keeps the store. */
void torture_world_end_round(struct torture_world *world);
/* Drops the database of the round. */
void torture_world_drop(struct torture_world *world);

/* Wakes, restarts and kills what is due; notices what has ended by itself. */
void torture_world_tick(struct torture_world *world, int64_t now_us);
/* Everything that is down or stopped comes back at once, but for what the plan leaves broken. True
 * once all run. */
bool torture_world_heal(struct torture_world *world);

/* torture_process.c. Each returns false if the process was not in a state for it. */
bool torture_kill(struct torture_process *process, int64_t down_ms);
bool torture_stop(struct torture_process *process, int64_t stop_ms);
/* A signal that the process answers by ending. */
bool torture_end(struct torture_process *process, int signal, int64_t down_ms);
void torture_process_tick(struct torture_world *world, struct torture_process *process,
                          int64_t now_us);

/* torture_servers.c: starts the lock servers of the plan and their wires. */
int torture_servers_prepare(struct torture_world *world);
void torture_servers_clear(struct torture_world *world);
/* The flag and address by which instance i finds its lock servers. "": it needs none. */
void torture_servers_flag(const struct torture_world *world, int i, const char **ret_flag,
                          char *ret_value, size_t size);
int torture_database_start(struct torture_world *world);
/* One command of an operator at PostgreSQL. Returns the number of rows, or -1. */
long torture_database_ask(const struct torture_world *world, const char *sql);

#endif
