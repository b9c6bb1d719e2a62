/*
 * lockkit: one interface over the locks that people really use.
 *
 *     lk_client *locks;
 *     lk_error error;
 *     if (lk_open("redis-token", "redis://127.0.0.1:6379", NULL, &locks, &error) != LK_OK)
 *         die(error.message);
 *
 *     lk_hold hold;
 *     lk_request request = {.key = "lock:item:1", .wait_ms = 10000};
 *     if (lk_acquire(locks, &request, &hold) == LK_OK) {
 *         ... read, decide, write with hold.fence, commit ...
 *         lk_release(&hold);
 *     }
 *
 * Threading: a client is shared by all threads of a process. A hold belongs to the thread that
 * acquired it; lk_check() alone may be called on it from any thread.
 * Ownership: the caller owns every struct; strings are copied unless said otherwise.
 * Times: durations in milliseconds (_ms), instants in microseconds on the monotonic clock (_us).
 */
#ifndef LOCKKIT_H
#define LOCKKIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define LK_VERSION "1.0.0"

enum {
    LK_KEY_MAX = 200,           /* bytes of a key, without the final NUL */
    LK_OWNER_MAX = 96,          /* bytes of an owner name */
    LK_TOKEN_MAX = 160,         /* bytes of a token */
    LK_MANY_MAX = 16,           /* requests of one lk_acquire_many() */
    LK_EACH_MAX = 32,           /* requests of one lk_try_each(), holds of one lk_release_each() */
    LK_MESSAGE_MAX = 512,       /* bytes of an error message with its NUL */
    LK_LEASE_MS_MIN = 10,       /* shortest lease accepted */
    LK_LEASE_MS_MAX = 86400000, /* longest lease accepted: a day */
    LK_SPIN_US_MAX = 1000       /* of lk_options.spin_us */
};

/* Every outcome. LK_OK is 0. Busy and timeout are answers; unknown is neither yes nor no. */
#define LK_STATUS_MAP(X)                                                                           \
    X(OK, "ok")                                                                                    \
    X(BUSY, "held by another")                    /* one attempt said no (providers only) */       \
    X(TIMEOUT, "not granted within wait_ms")      /* the deadline passed while others held it */   \
    X(LOST, "the lock is no longer ours")         /* expired, deleted, taken over, over-held */    \
    X(UNKNOWN, "the server's answer was lost")    /* it may or may not have been done */           \
    X(UNAVAILABLE, "the lock server is away")     /* not reached: certainly nothing was done */    \
    X(PROTOCOL, "the lock server talks nonsense") /* an answer that is none of the protocol's */   \
    X(INVALID, "invalid argument")                                                                 \
    X(UNSUPPORTED, "not offered by this guard")                                                    \
    X(NO_MEMORY, "out of memory or threads")

typedef enum lk_status {
#define LK_STATUS_ENUM(name, text) LK_##name,
    LK_STATUS_MAP(LK_STATUS_ENUM)
#undef LK_STATUS_ENUM
} lk_status;

/* What a provider claims. The conformance suite holds each to every bit it sets, and lets it show
 * the anomaly of every bit it leaves out. Names and descriptions: lk_cap_list(). */
#define LK_CAP_MAP(X)                                                                              \
    X(EXCLUSIVE, "exclusive", "at most one holder while no lease ends and no server is lost")      \
    X(DISTRIBUTED, "distributed", "excludes other processes")                                      \
    X(LEASE, "lease", "a dead holder's lock frees itself after the lease")                         \
    X(ATOMIC_LEASE, "atomic-lease", "no moment at which the lock exists without its lease")        \
    X(OWNER, "owner", "release never frees somebody else's lock")                                  \
    X(RENEW, "renew", "can be extended; the watchdog keeps a live holder's lease")                 \
    X(FENCE, "fence", "each grant carries a number that rises per key")                            \
    X(REENTRANT, "reentrant", "the same owner may acquire again; the server counts")               \
    X(FAIR, "fair", "granted in order of arrival")                                                 \
    X(WAKES, "wakes", "waiters are woken by release instead of polling")                           \
    X(SERVER_CLOCK, "server-clock",                                                                \
      "expiry is judged by the clocks of the servers alone, not by a client's")                    \
    X(SHARED, "shared", "offers shared (read) mode")                                               \
    X(PERMITS, "permits", "a counting semaphore: several may hold a key at once")                  \
    X(SESSION, "session", "frees itself when its holder's session ends, and not by time alone")

enum {
#define LK_CAP_INDEX(name, id, text) LK_CAP_INDEX_##name,
    LK_CAP_MAP(LK_CAP_INDEX)
#undef LK_CAP_INDEX
        LK_CAP_COUNT,
#define LK_CAP_BIT(name, id, text) LK_CAP_##name = 1 << LK_CAP_INDEX_##name,
    LK_CAP_MAP(LK_CAP_BIT)
#undef LK_CAP_BIT
};

/* Why a hold was lost, as told to the on-lost callback. */
#define LK_LOSS_MAP(X)                                                                             \
    X(EXPIRED, "lease ended before it could be renewed")                                           \
    X(DELETED, "lock vanished or changed owner on the server")                                     \
    X(SESSION, "session with the lock server ended, or showed no sign of life in time")            \
    X(MAX_HOLD, "held longer than the maximum hold time")

typedef enum lk_loss {
#define LK_LOSS_ENUM(name, text) LK_LOSS_##name,
    LK_LOSS_MAP(LK_LOSS_ENUM)
#undef LK_LOSS_ENUM
} lk_loss;

/* What becomes of a release that the lock server has not confirmed: see lk_options.on_pending. */
#define LK_PENDING_MAP(X)                                                                          \
    X(STARTED, "pending")   /* it will be repeated in the background until the server answers */   \
    X(DONE, "done")         /* the server has answered: nothing of the hold is left */             \
    X(GIVEN_UP, "given-up") /* not repeated: only the lease, if there is one, ends the lock */

typedef enum lk_pending {
#define LK_PENDING_ENUM(name, text) LK_PENDING_##name,
    LK_PENDING_MAP(LK_PENDING_ENUM)
#undef LK_PENDING_ENUM
} lk_pending;

/* Called from the thread that releases, and from the client's own. Must not block and must not call
 * lockkit on this client. pending_ms: how long it has been pending. */
typedef void lk_on_pending(void *arg, const char *key, lk_pending what, int64_t pending_ms);

typedef enum lk_mode { LK_EXCLUSIVE, LK_SHARED } lk_mode;

typedef struct lk_client lk_client;
typedef struct lk_hold lk_hold;

typedef struct lk_error {
    lk_status status;
    char message[LK_MESSAGE_MAX]; /* what happened, to what, and what to do */
} lk_error;

/* Everything the library takes from the world besides its servers. All members are required;
 * called from any thread. Tests give a virtual clock and a seeded random source; lessons stop or
 * kill a caller at a named point. */
typedef struct lk_env {
    int64_t (*now_us)(void *ctx);            /* monotonic */
    int64_t (*wall_us)(void *ctx);           /* Unix time; only redis-getset trusts it */
    void (*sleep_us)(void *ctx, int64_t us); /* at most this long */
    uint64_t (*random)(void *ctx);           /* uniform over all 64 bits, unpredictable */
    void (*point)(void *ctx, const char *point, const char *key); /* see LK_POINT_* */
    void *ctx;
} lk_env;

/* The named points at which env->point is called, in the caller's (or watchdog's) thread. */
#define LK_POINT_TRY       "lock.try"          /* before each attempt */
#define LK_POINT_WAIT      "lock.wait"         /* refused, before waiting */
#define LK_POINT_ACQUIRED  "lock.acquired"     /* granted, before the caller learns it */
#define LK_POINT_RENEW     "lock.renew"        /* renewal due; not sent if the lease has ended */
#define LK_POINT_RELEASE   "lock.release"      /* before the release is sent */
#define LK_POINT_RELEASED  "lock.released"     /* after it */
#define LK_POINT_CLEANUP   "lock.cleanup"      /* undoing an attempt of unknown outcome */
#define LK_POINT_LOST      "lock.lost"         /* loss found out */
#define LK_POINT_EXPIRE    "lock.setnx.expire" /* redis-setnx-expire: between SETNX and EXPIRE */
#define LK_POINT_SUBSCRIBE "lock.subscribe"    /* failed try done, SUBSCRIBE not yet sent */
#define LK_POINT_WOKEN     "lock.woken"        /* zk-*: what it waited for has happened */
#define LK_POINT_GETSET    "lock.getset" /* redis-getset: stamp seen to be over, GETSET next */
#define LK_POINT_VOTED     "lock.voted"  /* redlock: the nodes have answered, not yet counted */

/* The real clock, nanosleep and getrandom(2); points do nothing. Static; never freed. */
const lk_env *lk_env_system(void);

typedef struct lk_options {
    int64_t lease_ms;           /* lease when a request names none; default 30000. Where locks live
                                   with a session (LK_CAP_SESSION): its timeout */
    bool watchdog_off;          /* default: renewable locks without an explicit lease are renewed */
    int64_t max_hold_ms;        /* so long after the grant or the last lk_extend() the watchdog
                                   stops renewing and reports LK_LOSS_MAX_HOLD, but not before a
                                   lease that lk_extend() has set is over. 0: ten leases, of the
                                   client or of the hold, whichever is longer. Not for
                                   LK_CAP_SESSION */
    int64_t retry_min_ms;       /* polling guards wait a random time in this range; default 1 */
    int64_t retry_max_ms;       /* default 16; the range doubles from min towards max */
    int64_t command_timeout_ms; /* one command to a lock server; default 1000 */
    int64_t spin_us;            /* so long a caller looks before it sleeps: one that waits for
                                   Redis, or the first of a local_queue. It sleeps sooner if
                                   another thread wants its processor, or if looking has not paid.
                                   Default 50, at most LK_SPIN_US_MAX, -1: not at all */
    int32_t replicas;           /* a grant counts only once so many replicas of the Redis node have
                                   it; else it is undone and LK_UNAVAILABLE. 0: not asked. Narrows
                                   the window in which a failover forgets a lock; does not close it:
                                   a replica without it may still be promoted, and renewals are not
                                   waited for */
    int64_t replicas_ms;        /* how long to wait for them; default 100 */
    bool local_queue;           /* the waiters of this client queue per key. Only the first asks the
                                   lock server; a release wakes it at once. Exclusion comes from
                                   the server's lock alone. For requests that may wait, without
                                   owner, shared mode and permits. Ignored for guards with
                                   LK_CAP_FAIR (their queue is on the server) and without
                                   LK_CAP_OWNER (it would hide their weakness). If a lock comes
                                   free without lk_release() by this client, that is noticed within
                                   retry_max_ms per waiter of the queue */
    int32_t local_handovers;    /* with local_queue and LK_CAP_LEASE: lk_release() may give the hold
                                   to the first waiter without telling the server. Token and fence
                                   stay the same. So does the lease: what is left of it is at least
                                   half of what the waiter asked for, and may be more than all of
                                   it. At most so many times in a row. Then the lock is released,
                                   and the first waiter pauses for retry_max_ms, so that other
                                   processes get their turn. If holds are short and this number is
                                   small, the pauses take most of the time. The fence does not stop
                                   a write of a caller that has already released. Default 0 */
    lk_on_pending *on_pending;  /* told of releases that the server did not confirm; may be NULL */
    void *on_pending_arg;
    const lk_env *env; /* borrowed until lk_close(); NULL: lk_env_system() */
} lk_options;

/* Called from the watchdog's thread, at most once per hold. lk_check() of the hold then returns
 * LK_LOST already. Must not block, and must not call lockkit on this hold except lk_check(). */
typedef void lk_on_lost(void *arg, const lk_hold *hold, lk_loss cause);

/* 1 to LK_KEY_MAX printable ASCII bytes, without spaces or braces. NULL is none. */
bool lk_key_valid(const char *key);

typedef struct lk_request {
    lk_client *client;   /* used by lk_acquire_many() only, when its own argument is NULL */
    const char *key;     /* lk_key_valid() */
    const char *owner;   /* identity for re-entry within this client; NULL: a new one each time */
    lk_mode mode;        /* default LK_EXCLUSIVE */
    uint32_t permits;    /* how many may hold the key at once; 0: one. All callers of a key must say
                            the same number. More than one wants LK_CAP_PERMITS */
    int64_t lease_ms;    /* 0: the client's default, renewed by the watchdog.
                            > 0: exactly this long, unless it is handed over within the client
                            (lk_options.local_handovers); the watchdog keeps off (as in Redisson),
                            unless renewed. Means nothing without LK_CAP_LEASE */
    bool renewed;        /* with lease_ms > 0: the watchdog renews it all the same */
    int64_t wait_ms;     /* 0: one attempt. Bound on the whole call */
    lk_on_lost *on_lost; /* may be NULL */
    void *on_lost_arg;
} lk_request;

/* A granted lock. The caller owns the memory and must not move or free it before lk_release().
 * Fields are read-only for the caller. */
struct lk_hold {
    lk_client *client;
    char key[LK_KEY_MAX + 1];
    char token[LK_TOKEN_MAX + 1]; /* what the server stores to identify the holder */
    lk_mode mode;
    uint32_t permits;    /* at least 1 */
    uint64_t fence;      /* rises with every grant of the key (not with a local hand-over); 0: this
                            guard has none */
    int64_t lease_ms;    /* 0: no lease (mutex, redis-setnx). LK_CAP_SESSION: its timeout */
    int64_t acquired_us; /* when the grant was known */
    int64_t wait_us;     /* time spent in lk_acquire() */
    uint32_t attempts;   /* tries on the server; 0: it was handed over within the client */
    struct lk_hold_private {
        int64_t valid_until_us; /* counted from before the request was sent; atomic access */
        int32_t state;          /* enum hold_state of core/client.h; atomic access */
        bool watched;
        bool queues;       /* may wait in the local queue */
        int32_t handovers; /* in a row since the server's grant */
        int64_t renew_at_us;
        int64_t give_up_us;     /* maximum hold time ends */
        int64_t asked_until_us; /* of leases asked for besides lease_ms: the latest end */
        lk_on_lost *on_lost;
        void *on_lost_arg;
        lk_hold *prev, *next; /* the watchdog's list; without lease: the provider's */
        uint64_t slot;        /* for the provider: e.g. the getset stamp, a queue ticket */
    } private_;
};

/*
 * Opens a client of one provider.
 *
 * endpoints, ignored by in-process guards (NULL allowed):
 *   - redis-*: "redis://[[user]:password@]host[:port][/db]", "unix:///path/to/socket[?db=N]";
 *     "redis+sentinel://[[user]:password@]host[:port],host[:port].../NAME[/db]": the master that
 *     these Sentinels know as NAME, and its successors;
 *     "redis+cluster://[[user]:password@]host[:port],host[:port]...": the cluster that these nodes
 *     belong to. The login is that of the Redis nodes; reserved characters are percent-encoded.
 *     An endpoint without a login gets that of LOCKKIT_REDIS_AUTH in the environment, the
 *     Sentinels that of LOCKKIT_SENTINEL_AUTH: "user:password" or "password".
 *   - redlock: up to 9 of the first two forms, comma-separated, each an independent node.
 *   - zk-*: "host:port[,host:port...][/folder]", the servers of one ensemble. With
 *     LOCKKIT_ZOOKEEPER_AUTH in the environment, "user:password", nodes are created for that login
 *     (digest) alone; without it they are open to every client.
 *   - memcached: "host[:port]" or "unix:///path/to/socket", one server. Its login, if it wants one
 *     (--auth-file), is that of LOCKKIT_MEMCACHED_AUTH in the environment: "user:password".
 *   - guards in a database: "sqlite:FILE", "postgres://user@host:port/database" (sql_conn.h).
 *
 * The servers need not answer yet: their absence is reported by acquire. Redis hosts are best given
 * by address: the look-up of a name is bound by no timeout of ours, and holds up all threads.
 *
 * options: copied; NULL for defaults.
 *
 * Returns LK_OK, LK_INVALID (unknown provider, malformed endpoint, option out of range),
 * LK_NO_MEMORY. On failure *ret is untouched and error (may be NULL) says why.
 */
lk_status lk_open(const char *provider, const char *endpoints, const lk_options *options,
                  lk_client **ret, lk_error *error);

/* Closes the client. All its holds must have been released, and no call of it may be under way in
 * another thread: asserted of holds and of acquiring. NULL is allowed. */
void lk_close(lk_client *client);

/*
 * Acquires request->key, waiting at most wait_ms. On LK_OK *hold is filled and must be released.
 * On any other status nothing is held: an attempt of unknown outcome has been cleaned up. If the
 * server did not confirm that, the client repeats it in the background until the server answers
 * (lk_options.on_pending), or until the lease has ended. That holds for guards with LK_CAP_OWNER
 * that other processes see; without LK_CAP_OWNER what is left ends with its lease. Where there is
 * no lease either (redis-setnx), it stands until lk_force_release(). Returns LK_OK, LK_TIMEOUT,
 * LK_UNAVAILABLE, LK_UNKNOWN, LK_PROTOCOL, LK_INVALID, LK_UNSUPPORTED, LK_NO_MEMORY (the watchdog's
 * thread could not be started). A server that is away is retried until wait_ms ends only if it went
 * away during the wait; the first attempt's LK_UNAVAILABLE is answered at once.
 */
lk_status lk_acquire(lk_client *client, const lk_request *request, lk_hold *hold);

/* lk_acquire() with one attempt and defaults for the rest: LK_TIMEOUT when another has the key. */
lk_status lk_try_acquire(lk_client *client, const char *key, lk_hold *hold);

/*
 * Acquires n (1..LK_MANY_MAX) distinct keys in ascending byte order of the key, whatever order they
 * are given in, so that no two callers can wait for each other in a circle. All or nothing:
 * on failure everything granted is released, in reverse order. holds[i] belongs to requests[i].
 * wait_ms of requests[0] bounds the whole call. client NULL: each request names its own client.
 * Returns as lk_acquire(); LK_INVALID for equal keys.
 */
lk_status lk_acquire_many(lk_client *client, const lk_request *requests, size_t n, lk_hold *holds);

/*
 * One attempt for each of n (0..LK_EACH_MAX) locks of one client, each on its own: no order, no all
 * or nothing, and no waiting for each other. For a thread that serves many resources: where the
 * guard can (redis-token, but not in a cluster) all are sent at once, and the call ends within the
 * time of one; elsewhere they are tried one after the other. Of the stack it takes some 100 KB.
 * statuses[i] becomes what lk_acquire(client, &requests[i], holds[i]) would return; where it is
 * LK_OK, holds[i] is to be released, alone or with others. LK_INVALID, besides: wait_ms is not 0,
 * or n is too large, then for each. A key that stands there twice is asked for twice.
 */
void lk_try_each(lk_client *client, const lk_request *requests, size_t n, lk_hold *const *holds,
                 lk_status *statuses);
/* Whether lk_try_each() of many takes about the time of one: they are sent at once, or no server is
 * asked. */
bool lk_tries_at_once(const lk_client *client);

/* LK_OK: still ours as far as this process can know. LK_LOST: the lease has ended, or the watchdog
 * found the lock gone. No server is asked. *ret_left_ms (may be NULL): what is left of the lease on
 * the monotonic clock, counted from before the request was sent; INT64_MAX without a lease. The
 * lease may end between this call and a write: only hold->fence protects that write. */
lk_status lk_check(const lk_hold *hold, int64_t *ret_left_ms);

/* Sets the lease to lease_ms from now on the server; a watched hold is renewed at this length from
 * then on, and its maximum time (max_hold_ms) begins anew. When the answer is lost, the shorter of
 * the two possible leases counts. A loss found out here is told by the return value, not by
 * on_lost. Returns LK_OK, LK_LOST (no longer ours), LK_UNSUPPORTED (no LK_CAP_RENEW),
 * LK_UNAVAILABLE, LK_UNKNOWN, LK_PROTOCOL, LK_INVALID. */
lk_status lk_extend(lk_hold *hold, int64_t lease_ms);

/* Releases. The watchdog has stopped for this hold when it returns, and on_lost will not be called
 * any more. The hold is finished whatever the status; releasing it again is LK_LOST.
 * Returns LK_OK (it was ours until now), LK_LOST (it had ended before; a provider without
 * LK_CAP_OWNER cannot tell), LK_UNAVAILABLE, LK_UNKNOWN, LK_PROTOCOL or LK_NO_MEMORY: it may still
 * stand on the server. The client then repeats the release in the background, as lk_acquire() says.
 */
lk_status lk_release(lk_hold *hold);

/* lk_release() of each of n (0..LK_EACH_MAX, asserted) holds of one client (asserted), at once
 * where lk_try_each() does. statuses[i] becomes what lk_release(holds[i]) would return; statuses
 * may be NULL. */
void lk_release_each(lk_hold *const *holds, size_t n, lk_status *statuses);

/* Tells the lock server that fence `seen` of this key has been seen at the resource, so that the
 * next grants rise above it. Heals a counter lost with its server; in Redis, where the clock stands
 * in for a lost counter, one whose clock is behind (redis_fence.h). Returns LK_OK, LK_INVALID (bad
 * key, or a fence so large that grants could not rise above it for long: more than 2^53 - 2^32 in
 * Redis, than 2^62 in a database), LK_UNSUPPORTED (no LK_CAP_FENCE, or a fence that nobody can
 * raise: ZooKeeper's own count of its changes), LK_UNAVAILABLE, LK_UNKNOWN, LK_PROTOCOL. */
lk_status lk_raise_fence(lk_client *client, const char *key, uint64_t seen);

/* -- looking from outside: for operators and tools --------------------------------------------- */

/* Like lk_check(), but asks the server: LK_OK, LK_LOST (it says that the hold is not ours),
 * LK_UNSUPPORTED, LK_UNAVAILABLE, LK_UNKNOWN, LK_PROTOCOL. Changes nothing. */
lk_status lk_confirm(const lk_hold *hold);

/* What the server knows of a key. */
typedef struct lk_lock_info {
    char key[LK_KEY_MAX + 1];
    uint32_t holders;             /* 0: free */
    uint32_t waiters;             /* that the server knows of; 0 where waiters poll */
    lk_mode mode;                 /* of the holders */
    char token[LK_TOKEN_MAX + 1]; /* of a holder, '?' for what is no printable ASCII; "": free, or
                                     the guard keeps none */
    int64_t left_ms;              /* of its lease, by the server's clock; INT64_MAX: no lease */
    uint64_t fence;               /* last one granted; 0: none, or not known */
} lk_lock_info;

/* LK_OK and *ret filled, whether the key is held or free; LK_UNSUPPORTED, LK_INVALID,
 * LK_UNAVAILABLE, LK_UNKNOWN, LK_PROTOCOL. */
lk_status lk_inspect(lk_client *client, const char *key, lk_lock_info *ret);

/* Calls each() for every key that is held now and begins with prefix, in no order; what changes
 * meanwhile may be told or not, and Redis may tell of a key twice. A non-zero return of each()
 * stops and is not an error. each() must not call lockkit on this client. Returns as lk_inspect().
 */
lk_status lk_list(lk_client *client, const char *prefix,
                  int (*each)(void *arg, const lk_lock_info *info), void *arg);

/* For operators: frees the key for all its holders. A holder is not asked. It finds out at its next
 * renewal (LK_LOSS_DELETED). Only a fence stops its writes. Returns
 * LK_OK, LK_LOST (nobody held it), else as lk_inspect(). */
lk_status lk_force_release(lk_client *client, const char *key);

/* LK_OK when the lock server answers now (one round trip); in-process guards always. */
lk_status lk_ping(lk_client *client);

/* What went wrong last between this client and its lock servers, in words for an operator:
 * "Sentinel 127.0.0.1:26379 knows no master named "mymastr"". Of whichever thread's call it was; ""
 * when nothing has. Names hosts, never passwords. size > 0. */
void lk_last_error(lk_client *client, char *ret, size_t size);

/* What is built in. Entries are static. */
typedef struct lk_provider_info {
    const char *name;
    uint32_t caps;         /* LK_CAP_* */
    const char *algorithm; /* one line each */
    const char *guarantee;
    const char *weakness;
    const char *source;
} lk_provider_info;

typedef struct lk_cap_info {
    uint32_t bit;
    const char *name, *text;
} lk_cap_info;

const lk_provider_info *lk_provider_at(size_t i);           /* NULL past the last */
const lk_provider_info *lk_provider_find(const char *name); /* NULL if unknown */
const lk_provider_info *lk_client_provider(const lk_client *client);
const lk_cap_info *lk_cap_list(void); /* LK_CAP_COUNT entries */

/* Counters since lk_open(); each is exact, the set is not one snapshot. */
typedef struct lk_stats {
    uint64_t attempts, grants, refusals, timeouts, releases, renewals, lost, cleanups;
    uint64_t handovers;    /* grants without the server: lk_options.local_handovers */
    uint64_t commands;     /* sent to lock servers */
    uint64_t pending;      /* releases that the server did not confirm, to be repeated */
    uint64_t pending_done; /* of these: the server has answered since */
} lk_stats;
void lk_client_stats(const lk_client *client, lk_stats *ret);

/* Bytes of the first URL of a comma-separated list of Redis URLs. A comma ends an URL only where
 * another one ("scheme://") follows: the hosts of one redis+sentinel:// or redis+cluster:// stay
 * together. redlock takes such a list, the other guards one URL. */
size_t lk_redis_url_span(const char *list);

const char *lk_status_text(lk_status status); /* static */
const char *lk_loss_text(lk_loss loss);       /* static */
const char *lk_pending_text(lk_pending what); /* static */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
