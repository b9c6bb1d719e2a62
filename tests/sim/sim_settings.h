/*
 * What one seed draws: how the service is set up, what its clients want, and which kinds of fault
 * exist at all (swarm testing: Groce and others, ISSTA 2012).
 */
#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H

#include "sim_redis.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Kinds of fault, and rare states that a run of many seeds has to reach: each is counted, and one
 * that never happened fails the run. */
#define SIM_EVENT_MAP(X)                                                                           \
    X(KILL, "instance killed")                                                                     \
    X(STOP, "instance stopped and started")                                                        \
    X(PAUSE, "instance paused")                                                                    \
    X(POWER, "power cut")                                                                          \
    X(WRITE_FAILED, "write of the disk failed")                                                    \
    X(FLUSH_FAILED, "flush of the disk failed")                                                    \
    X(DISK_FULL, "disk full")                                                                      \
    X(START_FAILED, "instance could not start")                                                    \
    X(CLOCK, "wall clock of an instance leapt")                                                    \
    X(STALL, "thread stalled at a named point")                                                    \
    X(KEY_DELETED, "key of a lock deleted")                                                        \
    X(AT_POINT, "fault at a named point")                                                          \
    X(GUARD_CHANGED, "guard changed in flight")                                                    \
    X(GUARD_PATCHED, "guard changed in flight without a reset")                                    \
    X(GAVE_UP, "client gave up and asked again")                                                   \
    X(TWICE, "one key at two instances at once")                                                   \
    X(REPLAYED, "answer replayed")                                                                 \
    X(IN_FLIGHT, "key refused as still running")                                                   \
    X(SOLD_OUT, "sold out")                                                                        \
    X(FUNDS, "insufficient funds")                                                                 \
    X(LOCK_TIMEOUT, "lock not had in time")                                                        \
    X(UNAVAILABLE, "store or lock server away")                                                    \
    X(STORAGE_FULL, "storage full told")                                                           \
    X(PAID, "order paid")                                                                          \
    X(CANCELLED, "order cancelled")                                                                \
    X(CLOSED, "order closed by the task")                                                          \
    X(TRANSFERRED, "transfer done")                                                                \
    X(RESTOCKED, "stock changed")                                                                  \
    X(TOO_FEW, "too few pieces for a stock change")                                                \
    X(REFUNDED, "order refunded")                                                                  \
    X(CHANGED, "change refused, as the version is another")                                        \
    X(PRUNED, "key asked again whose answer was pruned")                                           \
    X(REDECIDED, "refusal decided anew, as it was pruned")                                         \
    X(FORGOTTEN, "refusal pruned, as newer ones were stored")                                      \
    X(NET_CUT, "connection to Redis or memcached cut before a command")                            \
    X(NET_LOST, "answer of Redis or memcached lost")                                               \
    X(NET_LATE, "packet to or from Redis or memcached late")                                       \
    X(NET_SILENT, "connection to Redis or memcached silent")                                       \
    X(REDIS_AWAY, "Redis not reachable")                                                           \
    X(REDIS_STOP, "Redis stood still")                                                             \
    X(REDIS_KILL, "Redis killed and back, empty")                                                  \
    X(REDIS_DELETE, "keys deleted on Redis")                                                       \
    X(REDIS_CLOCK, "clock of Redis leapt")                                                         \
    X(REDIS_FAILOVER, "Redis failed over")                                                         \
    X(REDIS_SPLIT, "two masters at once")                                                          \
    X(REDIS_READONLY, "write refused by a replica")                                                \
    X(REDIS_NOSCRIPT, "script unknown to Redis")                                                   \
    X(REDIS_RAISED, "fence lifted by the store")                                                   \
    X(REDIS_HEARD, "message of a release heard")                                                   \
    X(CLUSTER_MOVED, "Redis Cluster: sent elsewhere by MOVED")                                     \
    X(CLUSTER_ASK, "Redis Cluster: sent elsewhere by ASK")                                         \
    X(CLUSTER_TRYAGAIN, "Redis Cluster: keys of one lock at two nodes")                            \
    X(CLUSTER_DOWN, "Redis Cluster: said to be down")                                              \
    X(CLUSTER_HEARD, "Redis Cluster: message heard at another node")                               \
    X(CLUSTER_SLOT, "Redis Cluster: slot moved")                                                   \
    X(CLUSTER_TURN, "Redis Cluster: replica took over, nothing lost")                              \
    X(CLUSTER_ROLL, "Redis Cluster: node back at another address")                                 \
    X(CLUSTER_GONE, "Redis Cluster: former address of a node asked")                               \
    X(CLUSTER_PROMOTED, "Redis Cluster: replica promoted")                                         \
    X(CLUSTER_LOST, "Redis Cluster: lock lost by a failover")                                      \
    X(MEMCACHED_AWAY, "memcached not reachable")                                                   \
    X(MEMCACHED_STOP, "memcached stood still")                                                     \
    X(MEMCACHED_KILL, "memcached killed and back, empty")                                          \
    X(MEMCACHED_EVICT, "memcached evicted keys")                                                   \
    X(MEMCACHED_FLUSH, "memcached forgot all keys")                                                \
    X(UNKNOWN_COMMIT, "commit of unknown outcome")                                                 \
    X(PG_CUT, "PostgreSQL: connection lost at a statement")                                        \
    X(PG_TERMINATED, "PostgreSQL: server process ended")                                           \
    X(PG_REFUSED, "PostgreSQL: connections refused for a while")                                   \
    X(PG_RESTART, "PostgreSQL: restarted")                                                         \
    X(PG_CRASH, "PostgreSQL: crashed")                                                             \
    X(PG_SLOW, "PostgreSQL: slow statements and commits")                                          \
    X(PG_LATE_COMMIT, "PostgreSQL: commit after its connection was lost")                          \
    X(PG_LATE_ROLLBACK, "PostgreSQL: rollback after its connection was lost")                      \
    X(PG_SETTLED, "PostgreSQL: server process ended by db_settle()")                               \
    X(PG_SERIALIZATION, "PostgreSQL: serialization failure")                                       \
    X(PG_RECHECK, "PostgreSQL: row changed while a statement waited for it")                       \
    X(PG_TAKEN, "PostgreSQL: key of a new row taken")                                              \
    X(PG_SKIPPED, "PostgreSQL: row of a lock passed over, as another has it")                      \
    X(PG_LOCK_WAITED, "PostgreSQL: advisory lock waited for")                                      \
    X(PG_LOCK_LATE, "PostgreSQL: advisory lock not had in time")                                   \
    X(PG_LOCK_FREED, "PostgreSQL: advisory lock free, as its session ended")                       \
    X(PG_LOCK_SETTLED, "PostgreSQL: session ended whose grant was not answered")                   \
    X(ROW_FREED, "row of a lock without a lease deleted by an operator")                           \
    X(KEPT, "lock kept while its commit is undecided")                                             \
    X(KEPT_ALONE, "the same, and no fence would keep others out")                                  \
    X(DUPLICATE, "key answered by another since the look-up")                                      \
    X(DRAINING, "asked while it drains")                                                           \
    X(BATCHED, "operations share a turn")                                                          \
    X(TOGETHER, "lanes served together")                                                           \
    X(LATER_TURN, "lane kept its lock for another turn")                                           \
    X(LATE_TURN, "lane lost its lock in a later turn")                                             \
    X(HANDED_OVER, "hold handed over within a client")                                             \
    X(RENEWED, "lease renewed")                                                                    \
    X(LOCK_LOST, "lock lost before the write")                                                     \
    X(STALE_FENCE, "stale fence refused")                                                          \
    X(FENCED, "fenced write judged where it goes to the store")                                    \
    X(ENDED_IN_COMMIT, "lease ended during a commit")                                              \
    X(RERUN, "decided again, as the row had changed")                                              \
    X(ZK_CUT, "ZooKeeper: connection lost at a request")                                           \
    X(ZK_AWAY, "ZooKeeper: no leader for a while")                                                 \
    X(ZK_PART, "ZooKeeper: not reachable by one instance")                                         \
    X(ZK_DELETE, "ZooKeeper: node of a lock removed by hand")                                      \
    X(ZK_EXPIRE, "ZooKeeper: session ended by the servers")                                        \
    X(ZK_HOLDING, "ZooKeeper: session ended while its node stood")                                 \
    X(ZK_WATCH, "ZooKeeper: watch fired")                                                          \
    X(ARCHIVED, "rows of the ledger archived")                                                     \
    X(ARCHIVE_KILLED, "archive killed")                                                            \
    X(ARCHIVE_RESUMED, "archive finished a part of one that was killed")                           \
    X(FORK, "update lost by a guard that claims nothing")

enum sim_event {
#define SIM_EVENT_ENUM(name, text) SIM_##name,
    SIM_EVENT_MAP(SIM_EVENT_ENUM)
#undef SIM_EVENT_ENUM
        SIM_EVENTS
};

extern const char *const sim_event_texts[SIM_EVENTS];

enum { SIM_REFUSALS_ALL = 100000 }; /* more than there are */

struct sim_settings {
    uint64_t seed;
    const char *guard, *other_guard; /* the second one: of PUTs that change it; NULL: none */
    uint32_t instances, workers, batch, turns, lease_ms, wait_ms, close_ms, reserve_s;
    uint32_t retention_s;  /* of answers; 0: for ever */
    uint32_t refusals_max; /* that the store keeps */
    enum sim_redis_kind redis;
    bool postgres;         /* the store, else SQLite */
    bool lock_postgres;    /* locks that are rows are in it, too */
    const char *isolation; /* of PostgreSQL */
    uint32_t replicas;     /* that a lock waits for */
    uint32_t hand_overs;   /* of a hold within its client (lk_options.local_handovers) */
    uint32_t max_hold_ms;  /* 0: ten leases */
    bool zookeeper;        /* there is one */
    bool memcached;        /* likewise */
    bool lanes, lock_queue, fence, fence_database, watchdog, sync_normal;
    bool alone; /* no lanes are served together (seams.h) */
    uint32_t steps_per_switch;
    uint32_t items, stock, per_user_limit, accounts, balance, clients;
    uint32_t deals, think_ms; /* of each client; before each deal at most */
    bool hot;                 /* most deals are orders of one item */
    bool late_writes;         /* many traps stand between look and write of a later turn */
    bool faults[SIM_EVENTS];  /* of the kinds that can be drawn */
    uint32_t n_faults;        /* at most, of each hand, before all is healed */
    uint32_t hands;           /* that do faults at a time */
    bool claims_safe;         /* no update may be lost */
};

void sim_settings_draw(struct sim_settings *ret, uint64_t seed);
/* Guard none, and whatever else makes it lose soon. */
void sim_settings_canary(struct sim_settings *ret, uint64_t seed);
/* Its lease ends by the clock of an instance. */
bool sim_settings_lease_by_clock(const struct sim_settings *settings);
/* "sqlite", "postgres", "cluster" (of Redis), or how the name of one of its guards begins. */
bool sim_settings_are_of(const struct sim_settings *settings, const char *what);
void sim_settings_print(const struct sim_settings *settings, FILE *out);

#endif
