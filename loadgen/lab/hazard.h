/*
 * The hazard lab's catalogue: each hazard is one experiment, written down as data. Who asks for
 * what, where he is held, what is done to the servers meanwhile, and what comes of it under which
 * guard. Reading a row in the folder rows from top to bottom tells its story; hazard_steps.c
 * says what each verb does and how its success is observed.
 */
#ifndef HAZARD_H
#define HAZARD_H

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

/* Who acts in a step. A's requests go to the first instance of the service, B's and C's to the
 * second, if there are two. TASKS are the instances' scheduled tasks, which close A's order once
 * its time is over. The QUEUE are those who come one after another while the lock is held. */
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
    X(SEND)        /* sends its request; its later UNTIL steps hold it */                          \
    X(UNTIL)       /* waits until it is held at the point */                                       \
    X(AS_FAR_AS)   /* ... or waits for the lock, or has its answer: whichever comes first */       \
    X(PASSED)      /* waits until it was seen to pass the point */                                 \
    X(RELEASE)     /* lets it go on from the point where it is held */                             \
    X(ANSWER)      /* waits for its answer */                                                      \
    X(RUN)         /* SEND and ANSWER */                                                           \
    X(PAY)         /* pays for the order that it placed; else as SEND */                           \
    X(RETRY)       /* refused or not answered: sends the same request with the same key again */   \
    X(SEND_AGAIN)  /* the same request with another key, as a client without keys does */          \
    X(REPEAT)      /* the same request with the same key, whatever the answer was */               \
    X(INSIST)      /* sends, again while the lock server is away, and goes AS_FAR_AS the point */  \
    X(KILL)        /* kill -9 of its instance */                                                   \
    X(RESTART)     /* starts its instance again */                                                 \
    X(STOP)        /* SIGSTOP of its instance */                                                   \
    X(CONTINUE)    /* SIGCONT */                                                                   \
    X(OUTLIVE)     /* LOCKS: a lease passes: the key is gone or, by a watchdog, was renewed */     \
    X(GONE)        /* LOCKS: the key must be gone */                                               \
    X(STILL_THERE) /* LOCKS: the key must be there */                                              \
    X(DELETE)      /* LOCKS: somebody deletes the key */                                           \
    X(EVICT)       /* LOCKS: memory runs out for a moment; the key must be "gone", or "stays" */   \
    X(REBOOT)      /* LOCKS: kill -9 of the lock server and a new start; the key as above */       \
    X(DOWN)        /* LOCKS: kill -9 of these nodes ("45") */                                      \
    X(UP)          /* LOCKS: these nodes start again, and do not have the key */                   \
    X(LEAP)        /* LOCKS: the clock of this node leaps beyond the lease */                      \
    X(CUT_REPLICA) /* LOCKS: the master's replica hears of nothing any more */                     \
    X(FAIL_OVER)   /* LOCKS: kill -9 of the master; the replica is promoted */                     \
    X(DEPOSE)      /* LOCKS: kill -9 of the ensemble's leader; another is elected */               \
    X(NEED_COPY)   /* LOCKS: the master writes only while a replica follows */                     \
    X(SPLIT)       /* LOCKS: only who is connected reaches the master; the replica is promoted */  \
    X(LOSE)        /* the answer to its next command on the lock (from nodes N) will be lost */    \
    X(LOST)        /* waits until it is (they are) */                                              \
    X(LOSE_LEAVE)  /* its leaving of the lock's queue will not arrive */                           \
    X(SILENCE)     /* it listens for the lock; from now on nothing arrives of what it hears so */  \
    X(UNHEARD)     /* waits until a message did not arrive */                                      \
    X(LOSE_ASKING) /* its next command on the lock will not arrive */                              \
    X(ASKING_LOST) /* waits until it is lost */                                                    \
    X(CUT)         /* its connections to the lock server are cut */                                \
    X(HOLD_COMMIT) /* its next COMMIT will be kept on its way to the database */                   \
    X(COMMIT_HELD) /* waits until it is, and its connection breaks */                              \
    X(LAND_COMMIT) /* what was kept arrives; waits until no transaction is under way */

enum hazard_verb {
#define HAZARD_VERB_ENUM(name) name,
    HAZARD_VERB_MAP(HAZARD_VERB_ENUM)
#undef HAZARD_VERB_ENUM
        HAZARD_VERBS
};

struct hazard_step {
    enum hazard_who who;
    enum hazard_verb verb;
    const char *what; /* point or text; NULL where none is needed */
};

#define HAZARD_OUTCOME_MAP(X)                                                                      \
    X(SAFE, "safe")       /* nothing lost, everybody served in the end, as the row has it */       \
    X(UNSAFE, "unsafe")   /* the ledger shows a loss, or more was done than asked for */           \
    X(STUCK, "stuck")     /* a waiter never gets the lock */                                       \
    X(REFUSED, "refused") /* the guard says no, and nothing is written */                          \
    X(SLOW, "slow")       /* right, but late: the measure is beyond the hazard's bound */

enum hazard_outcome {
#define HAZARD_OUTCOME_ENUM(name, text) HAZARD_##name,
    HAZARD_OUTCOME_MAP(HAZARD_OUTCOME_ENUM)
#undef HAZARD_OUTCOME_ENUM
        HAZARD_OUTCOMES
};

/* What became of an actor's request. */
enum hazard_answer {
    ANSWER_SERVED,   /* 201 */
    ANSWER_SOLD_OUT, /* there was nothing left, as the ledger says too */
    ANSWER_REFUSED,  /* the guard or the order's state said no: nothing is written */
    ANSWER_STUCK,    /* the lock was not had in time */
    ANSWER_NONE,     /* its instance was killed under it */
    ANSWER_FAILED    /* anything else: no row has a use for it */
};

/* How the service and its servers are set up. In a case 0 means: as the hazard says; in a hazard:
 * the first of the values named. */
enum hazard_switch { AS_IS, ON, OFF };
/* AOF always; a cache, which may evict; a master, a replica, three Sentinels */
enum hazard_redis { REDIS_PLAIN, REDIS_DURABLE, REDIS_SMALL, REDIS_SENTINEL };

struct hazard_setting {
    int instances;                      /* 2, 1 */
    int64_t lease_ms, wait_ms;          /* HAZARD_LEASE_MS, HAZARD_WAIT_MS */
    enum hazard_switch watchdog, fence; /* ON */
    const char *fence_source;           /* lock, database */
    bool by_proxy;                      /* redlock's nodes, as single servers are anyway */
    bool store_by_proxy;                /* A's way to the database */
    int64_t workers;                    /* threads per instance that may wait; 16 */
    int64_t lane_turns;                 /* lanes that keep a lock so long; 0: no lanes */
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

/* What they fight over. */
enum hazard_subject {
    ACCOUNT,
    ITEM,
    TRANSFER /* A moves money from the first account to a second one, B back; the first counts */
};

struct hazard {
    const char *id;
    hazard_text title, story;
    hazard_text warning; /* which well-known text warns of it, in our words */
    hazard_text fix;
    enum hazard_subject subject;
    int64_t initial;               /* balance or stock; 0: 1000 */
    int64_t deltas[HAZARD_ACTORS]; /* 0: -200, -300, -100; items: -1 */
    int64_t crowd;                 /* buyers of the crowd */
    int64_t queue;                 /* those of the QUEUE, HAZARD_QUEUE_MAX at most */
    int64_t reserve_s; /* items: until an order that is not paid is closed; seckilld's own */
    bool gives_up;     /* the holder is well: who does not get the lock in time is refused,
                          not stuck */
    enum hazard_answer last[HAZARD_ACTORS]; /* answers, where the guard holds; all are served */
    int64_t slow_ms;                        /* B's wait beyond this is slow; 0: not asked */
    int64_t slow_wakes;       /* and more wake-ups per release, of a crowd that waits */
    int64_t slow_overtakings; /* and more who came later and were served before one of the QUEUE */
    struct hazard_setting with;
    const struct hazard_step *steps; /* ends with {0, 0, NULL} after the first: see HAZARD_END */
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

/* The case's setting with the hazard's and the defaults filled in. */
struct hazard_setting hazard_setting_of(const struct hazard *hazard, const struct hazard_case *one);
int64_t hazard_delta(const struct hazard *hazard, enum hazard_who who);
int64_t hazard_initial(const struct hazard *hazard);

#endif
