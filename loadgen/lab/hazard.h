/*
 * The hazard lab's catalogue. A hazard is one experiment, written as data: the requests, the points
 * at which they are held, the faults of the servers, and the expected outcome under each guard. The
 * rows stand in the folder rows. hazard_steps.c performs each verb and observes that it took
 * effect.
 */
#ifndef HAZARD_H
#define HAZARD_H

#include "lockkit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HAZARD_STEPS_MAX = 40,
    HAZARD_CASES_MAX = 24,
    HAZARD_LANGUAGES = 2,
    HAZARD_INSTANCES = 2,
    HAZARD_QUEUE_MAX = 20
};

enum hazard_language { EN, ZH };

/* A text in both languages. */
typedef const char *hazard_text[HAZARD_LANGUAGES];

/* Who acts in a step.
 *   A         sends to the first instance of the service
 *   B, C      send to the second one, if there are two
 *   LOCKS     the lock server
 *   CROWD     many buyers at once (hazard_crowd.h)
 *   TASKS     the instances' scheduled tasks; they close A's order when its time is over
 *   QUEUE     requests that arrive one after another while the lock is held (hazard_queue.h)
 *   READERS   two readers of the lab itself (hazard_readers.h) */
enum hazard_who {
    A,
    B,
    C,
    HAZARD_ACTORS,
    LOCKS = HAZARD_ACTORS,
    CROWD,
    TASKS,
    QUEUE,
    READERS,
    HAZARD_WHOS
};

#define HAZARD_VERB_MAP(X)                                                                         \
    X(SEND)        /* sends a request; later UNTIL steps hold it */                                \
    X(UNTIL)       /* waits until it is held at the point. One that loses its lock before it is    \
                      held anywhere is sent again: this machine is slower than the lease */        \
    X(AS_FAR_AS)   /* ... or waits for the lock, or has its answer: whichever comes first */       \
    X(PASSED)      /* waits until it was seen to pass the point */                                 \
    X(RELEASE)     /* the request goes on from its point; no lock is freed by this */              \
    X(ANSWER)      /* waits for its answer */                                                      \
    X(RUN)         /* SEND and ANSWER */                                                           \
    X(PAY)         /* pays for its own order; otherwise as SEND */                                 \
    X(RETRY)       /* after a refusal or no answer: the same request with the same key */          \
    X(SEND_AGAIN)  /* the same request with another key, as a client without keys does */          \
    X(REPEAT)      /* the same request with the same key, whatever the answer was */               \
    X(INSIST)      /* sends, again while the lock server is away, and goes AS_FAR_AS the point */  \
    X(KILL)        /* kill -9 of its instance */                                                   \
    X(RESTART)     /* starts its instance again */                                                 \
    X(STOP)        /* SIGSTOP of its instance */                                                   \
    X(CONTINUE)    /* SIGCONT */                                                                   \
    X(OUTLIVE)     /* LOCKS: waits out a lease: the key is gone, or a watchdog renewed it */       \
    X(GONE)        /* LOCKS: waits until the key is gone */                                        \
    X(STILL_THERE) /* LOCKS: the key must be there now */                                          \
    X(DELETE)      /* LOCKS: the lab deletes the key */                                            \
    X(EVICT)       /* LOCKS: memory runs out briefly; then the key is "gone" or "stays" */         \
    X(REBOOT)      /* LOCKS: kill -9 of the lock server, and a restart; the key as above */        \
    X(DOWN)        /* LOCKS: kill -9 of these nodes ("45") */                                      \
    X(UP)          /* LOCKS: these nodes start again, and do not have the key */                   \
    X(LEAP)        /* LOCKS: the clock of this node leaps beyond the lease */                      \
    X(CUT_REPLICA) /* LOCKS: replication from the master stops */                                  \
    X(FAIL_OVER)   /* LOCKS: kill -9 of the master; the replica is promoted */                     \
    X(DEPOSE)      /* LOCKS: kill -9 of the ensemble's leader; another is elected */               \
    X(NEED_COPY)   /* LOCKS: the master writes only while a replica follows */                     \
    X(SPLIT) /* LOCKS: the master keeps its connections, gets no new ones; the replica is promoted \
              */                                                                                   \
    X(LOSE)  /* the answer to its next lock command (from nodes N) will be lost */                 \
    X(LOST)  /* waits until that answer is lost */                                                 \
    X(LOSE_LEAVE)  /* its command to leave the lock's queue will not arrive */                     \
    X(SILENCE)     /* its subscription to the lock goes silent; the connection stays open */       \
    X(UNHEARD)     /* waits until a message was swallowed */                                       \
    X(LOSE_ASKING) /* its next lock command will not arrive */                                     \
    X(ASKING_LOST) /* waits until it is lost */                                                    \
    X(CUT)         /* its connections to the lock server are cut */                                \
    X(HOLD_COMMIT) /* its next COMMIT will be held on the way to the database */                   \
    X(COMMIT_HELD) /* waits until it is held; then the connection breaks */                        \
    X(LAND_COMMIT) /* the held COMMIT arrives; waits until no transaction is open */

enum hazard_verb {
#define HAZARD_VERB_ENUM(name) name,
    HAZARD_VERB_MAP(HAZARD_VERB_ENUM)
#undef HAZARD_VERB_ENUM
        HAZARD_VERBS
};

struct hazard_step {
    enum hazard_who who;
    enum hazard_verb verb;
    const char *what; /* a point (OP_POINT_MAP of app/operation/op.h, LK_POINT_* of lockkit.h), or
                         a text; NULL where none is needed */
};

#define HAZARD_OUTCOME_MAP(X)                                                                      \
    X(SAFE, "safe")       /* nothing lost, every request served in the end */                      \
    X(UNSAFE, "unsafe")   /* the ledger shows a loss, or more was done than asked for */           \
    X(STUCK, "stuck")     /* a waiter never gets the lock */                                       \
    X(REFUSED, "refused") /* nothing lost, and a request was not served */                         \
    X(SLOW, "slow")       /* correct, but late: the measure is beyond the hazard's bound */

enum hazard_outcome {
#define HAZARD_OUTCOME_ENUM(name, text) HAZARD_##name,
    HAZARD_OUTCOME_MAP(HAZARD_OUTCOME_ENUM)
#undef HAZARD_OUTCOME_ENUM
        HAZARD_OUTCOMES
};

/* What became of an actor's request. */
enum hazard_answer {
    ANSWER_SERVED,   /* 201 */
    ANSWER_SOLD_OUT, /* the stock was 0; the ledger agrees */
    ANSWER_REFUSED,  /* the guard or the order's state said no: nothing is written */
    ANSWER_STUCK,    /* the lock was not had in time */
    ANSWER_NONE,     /* its instance was killed under it */
    ANSWER_FAILED    /* any other answer: no row expects one */
};

/* How the service and its servers are set up. 0 in a case: the hazard's value. 0 in a hazard: the
 * default, which is the first value that the member's comment names. */
enum hazard_switch { AS_IS, ON, OFF };
/* PLAIN: no persistence. DURABLE: AOF always. SMALL: a cache, which may evict. SENTINEL: a master,
 * a replica, three Sentinels. */
enum hazard_redis { REDIS_PLAIN, REDIS_DURABLE, REDIS_SMALL, REDIS_SENTINEL };

struct hazard_setting {
    int instances;                      /* 2, 1 */
    int64_t lease_ms, wait_ms;          /* HAZARD_LEASE_MS, HAZARD_WAIT_MS */
    enum hazard_switch watchdog, fence; /* ON */
    const char *fence_source;           /* lock, database */
    bool by_proxy;                      /* redlock's nodes are reached through proxies. A single
                                           lock server always is */
    bool store_by_proxy;                /* A's instance reaches the database through a proxy */
    int64_t workers;                    /* threads per instance that may wait; 16 */
    int64_t lane_turns;                 /* batches of a lane under one lock; 0: no lanes */
    const char *slip;                   /* mistake made on purpose (--lab-slip); none */
    int64_t clock_ms;                   /* the clock of A's instance is ahead by this; 0 */
    int64_t max_hold_ms;                /* of the watchdog; ten leases */
    int64_t close_ms;                   /* period of the scheduled task; seckilld's own */
    enum hazard_redis redis;
    int64_t servers;       /* of ZooKeeper: 1, 3 */
    int64_t replicas;      /* that must have a lock before it counts (--redis-replicas); 0 */
    const char *isolation; /* of the database; read-committed */
};

enum { HAZARD_LEASE_MS = 700, HAZARD_WAIT_MS = 6000 };

struct hazard_case {
    const char *guard;
    enum hazard_outcome expected;
    struct hazard_setting with;
    hazard_text as;                  /* what is special: "fence on"; {NULL}: nothing */
    const struct hazard_step *steps; /* NULL: the hazard's */
};

/* What the requests change. */
enum hazard_subject {
    ACCOUNT,
    ITEM,
    TRANSFER /* A moves money from the first account to a second one, B back; the first counts */
};

/* Which guards a failure can strike. Said for those on which it is not tried. Lists of names are
 * separated by blanks; "zk-*" means all that begin so. */
struct hazard_reach {
    const char *only;  /* none but these; NULL: all */
    const char *never; /* not these, for want of what fails; NULL: nobody */
    uint32_t needs;    /* LK_CAP_*: none but those that claim one of these; 0: all */
    uint32_t holds;    /* LK_CAP_*: a guard that claims one of these holds against it */
};

/* Guards without a lock, and those whose lock is on no server: the row's own lock is the store's.
 */
#define HAZARD_NO_LOCK   "none sql-atomic sql-version"
#define HAZARD_NO_SERVER HAZARD_NO_LOCK " sql-row mutex"

struct hazard {
    const char *id;
    hazard_text title, story;
    hazard_text warning; /* a well-known text that warns of it, in our words */
    hazard_text fix;
    enum hazard_subject subject;
    int64_t initial;               /* balance or stock; 0: 1000 */
    int64_t deltas[HAZARD_ACTORS]; /* 0: -200, -300, -100; items: -1 */
    int64_t crowd;                 /* buyers of the crowd */
    int64_t queue;                 /* those of the QUEUE, HAZARD_QUEUE_MAX at most */
    int64_t reserve_s; /* items: until an order that is not paid is closed; seckilld's own */
    bool gives_up;     /* the holder is healthy: a waiter that times out is refused, not stuck */
    enum hazard_answer last[HAZARD_ACTORS]; /* last answers, if the guard holds; 0: served */
    /* A safe run is slow if it is above one of these; 0: not tested. */
    int64_t slow_ms;          /* time until B's answer; without B, A's */
    int64_t slow_wakes;       /* wake-ups of the CROWD per release */
    int64_t slow_overtakings; /* requests that overtook one of the QUEUE */
    struct hazard_reach reach;
    struct hazard_setting with;
    const struct hazard_step *steps; /* ends with HAZARD_END */
    const struct hazard_case *cases; /* ends with guard NULL */
};

/* Closes a list of steps. */
#define HAZARD_END                                                                                 \
    {                                                                                              \
        HAZARD_ACTORS, HAZARD_VERBS, NULL                                                          \
    }

extern const struct hazard *const hazard_list[]; /* NULL-terminated; hazard_list.c */
const struct hazard *hazard_find(const char *id);

const char *hazard_outcome_text(enum hazard_outcome outcome);

/* Why a failure is not tried on a guard. Each with its id and its sign. */
#define HAZARD_BLANK_MAP(X)                                                                        \
    X(UNTRIED, "untried", "·")   /* it could strike */                                             \
    X(CLAIMED, "claimed", "(✓)") /* the guard claims to hold; conformance tests the claim */       \
    X(NEVER, "never", "—")       /* it cannot strike: the guard does not have what fails */

enum hazard_blank {
#define HAZARD_BLANK_ENUM(name, id, sign) BLANK_##name,
    HAZARD_BLANK_MAP(HAZARD_BLANK_ENUM)
#undef HAZARD_BLANK_ENUM
        HAZARD_BLANKS
};

struct hazard_blank_text {
    const char *id, *sign;
};
extern const struct hazard_blank_text hazard_blank_texts[HAZARD_BLANKS];

/* Also of cases that the catalogue has: hazard_reach.c. */
enum hazard_blank hazard_blank(const struct hazard *hazard, const char *guard);

/* The case's setting with the hazard's and the defaults filled in. */
struct hazard_setting hazard_setting_of(const struct hazard *hazard, const struct hazard_case *one);
int64_t hazard_delta(const struct hazard *hazard, enum hazard_who who);
int64_t hazard_initial(const struct hazard *hazard);

#endif
