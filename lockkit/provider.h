/*
 * The provider interface: the functions that a new lock has to offer. Installed as
 * <lockkit/provider.h>. It changes more often than lockkit.h. README.md has a recipe.
 *
 * A provider makes one attempt, one renewal, one release. It does not loop for the lock, sleep
 * between attempts, keep a deadline or make a token. The core (core/acquire.c) does that, and
 * back-off, clean-up and the watchdog.
 *
 * Required: open, close, try_acquire and release. Each other function may be NULL unless a claim
 * (LK_CAP_*) needs it: renew with LK_CAP_RENEW, wait with LK_CAP_WAKES, alive with LK_CAP_SESSION.
 *
 * Threads: the core calls the functions from several threads at the same time, also for one key.
 * renew() and release() of one hold never run at the same time; confirm() may run beside renew().
 * No function is called before open() or after close(), and close() runs alone. If open() fails,
 * close() is not called.
 *
 * Memory: a hold belongs to its caller, and an attempt lasts as long as its call. Unless the guard
 * is within one process or has LK_CAP_SESSION, the core may pass a copy of the hold to release(),
 * or hand the lock over to another hold of this client. So find the lock by hold->key, token and
 * private_.slot, not by the address of the hold.
 *
 * Time: each connect and each command ends within lk_options.command_timeout_ms. Only wait() waits
 * for other holders.
 *
 * Each provider file begins with algorithm, guarantee, known weakness and source. lk_provider_info
 * has the same four facts. GET /v1/guards and `lockkit guards` show them.
 */
#ifndef LOCKKIT_PROVIDER_H
#define LOCKKIT_PROVIDER_H

#include "lockkit.h"

#include <stdatomic.h>

#ifdef __cplusplus
#error "provider.h is C: it uses _Atomic"
#endif
#pragma GCC visibility push(default)

/* Given to open(). Lives as long as the client. */
typedef struct lk_context {
    lk_client *client;
    const lk_env *env;
    const lk_options *options;  /* defaults filled in */
    const char *endpoints;      /* may be NULL */
    char client_id[33];         /* random, 32 hex digits, unique to this client */
    _Atomic uint64_t *commands; /* add 1 for each command sent */
} lk_context;

/* One acquire call, from its first attempt to its end. The core sets hold->key, token, mode,
 * permits and lease_ms. With LK_CAP_SESSION try_acquire() sets lease_ms: how long a sign of life of
 * the session can be trusted; 0: until alive() returns false. The token is "client_id:owner" for a
 * request with an owner, else "client_id:random". try_acquire() may use hold->private_.slot: it is
 * 0 at the first attempt of a call, and again after the core has changed the token. */
typedef struct lk_attempt {
    lk_hold *hold;
    int64_t deadline_us; /* of the whole call */
    int64_t retry_us;    /* set by try_acquire() on LK_BUSY: an earlier retry is useless unless
                            woken; 0: not known */
    int64_t since_us;    /* when this try was sent. Set by try_acquire() on LK_OK: the lease may
                            run since then; earlier if an earlier try led to the grant */
    void *waiter;        /* for wait() and wait_end() of this call; NULL at first */
    bool last;           /* no further attempt follows this one */
    bool queued;         /* set by try_acquire(), stays until changed: the server has this call in
                            a queue and may grant it the lock. If the call fails, the core calls
                            release(), which leaves the queue or passes on the grant */
    int32_t replicas;    /* set by try_acquire() if provider->replicates: copies of the grant */
} lk_attempt;

typedef struct lk_provider {
    lk_provider_info info;
    bool replicates; /* supports lk_options.replicas; the core undoes a grant with too few */

    /* Makes *ret_self, which all other functions get. The server need not answer yet. After a
     * failure the message is in *error (may be NULL): lk_fail(). */
    lk_status (*open)(const lk_context *context, void **ret_self, lk_error *error);
    void (*close)(void *self);

    /* One attempt; does not sleep. LK_OK: sets hold->fence, with LK_CAP_FENCE above that of every
     * earlier grant of the key. A fence counter may expire if the next one begins higher
     * (redis_fence.h). LK_BUSY: another holder. LK_UNAVAILABLE: certainly nothing was done.
     * LK_UNKNOWN: sent, no answer. LK_PROTOCOL: the answer makes no sense. After these two the core
     * calls release() before it tries again or returns. It also does so after a grant that came too
     * late. LK_NO_MEMORY or any other status ends the call. */
    lk_status (*try_acquire)(void *self, lk_attempt *attempt);

    /* Optional: try_acquire() for n (2..LK_EACH_MAX) attempts in the time of one. Each is the last
     * of its call. NULL: the core tries one after the other. */
    void (*try_each)(void *self, lk_attempt *const *attempts, size_t n, lk_status *statuses);

    /* Optional, called after LK_BUSY: blocks until a retry makes sense, at most until until_us,
     * which is not after the deadline. NULL: the core sleeps with jitter. The first wait() of a
     * call may return as soon as it has subscribed, because the core then tries again: subscribe,
     * second try, bounded wait. LK_OK: the core tries at once. Any other status: it sleeps with
     * jitter first. */
    lk_status (*wait)(void *self, lk_attempt *attempt, int64_t until_us);

    /* Optional: unsubscribes, and frees attempt->waiter. Called once at the end of each
     * lk_acquire() that called wait(), whatever its outcome. */
    void (*wait_end)(void *self, lk_attempt *attempt);

    /* Optional (LK_CAP_RENEW): sets the lease to lease_ms from now if the lock is still ours. LK_OK
     * and LK_LOST are answers of the server. With LK_CAP_SESSION: a sign of life, asked for every
     * third of hold->lease_ms whatever the options say. LK_OK: the server answered that the hold
     * stands; that is trusted for lease_ms from before the question. */
    lk_status (*renew)(void *self, lk_hold *hold, int64_t lease_ms);

    /* Optional: the part of a lease that its holder may count on, from before the command was sent,
     * for locks that depend on several clocks. NULL: all of it. */
    int64_t (*valid_ms)(int64_t lease_ms);

    /* Required with LK_CAP_SESSION, otherwise NULL: false once this process knows that the hold's
     * session has ended, and false for ever after. Called from any thread, with locks of the core
     * held, even during release() of the same hold. So it must read only numbers and atomics that
     * outlive the hold, take no lock and call nothing of lockkit. */
    bool (*alive)(void *self, const lk_hold *hold);

    /* Frees the lock if it is ours; idempotent. Also called after an attempt of unknown outcome.
     * LK_LOST: the server says that it was not ours. After any status but LK_OK and LK_LOST the
     * core repeats it later, from another thread, with a copy of the hold, if the guard has
     * LK_CAP_OWNER and LK_CAP_DISTRIBUTED and no LK_CAP_SESSION (janitor.h). However late, it must
     * free this hold and no other. */
    lk_status (*release)(void *self, lk_hold *hold);

    /* Optional: release() of n (2..LK_EACH_MAX) holds in the time of one. */
    void (*release_each)(void *self, lk_hold *const *holds, size_t n, lk_status *statuses);

    /* Optional (LK_CAP_FENCE): the counter of key becomes at least seen. */
    lk_status (*raise_fence)(void *self, const char *key, uint64_t seen);

    /* Optional: one round trip to the server. */
    lk_status (*ping)(void *self);

    /* For providers that store their own message: see lk_last_error(). ret is "" already. NULL: the
     * last message of lk_note(). */
    void (*last_error)(void *self, char *ret, size_t size);

    /* Optional, for tools: see lk_confirm(), lk_inspect(), lk_list(), lk_force_release(). The core
     * has checked the arguments. *ret has its key, left_ms INT64_MAX, and zeros. list() must set
     * key and holders; it sets the rest if that takes no further question per key. */
    lk_status (*confirm)(void *self, const lk_hold *hold);
    lk_status (*inspect)(void *self, const char *key, lk_lock_info *ret);
    lk_status (*list)(void *self, const char *prefix,
                      int (*each)(void *arg, const lk_lock_info *info), void *arg);
    lk_status (*force_release)(void *self, const char *key);
} lk_provider;

/* lk_open() with a provider that is not in the list. It must outlive the client. */
lk_status lk_open_provider(const lk_provider *provider, const char *endpoints,
                           const lk_options *options, lk_client **ret, lk_error *error);

/* A provider that is built in, by its name; NULL: there is none. Another provider may call its
 * members, with the self that its open() has made: tests and the hazard lab change one member of a
 * copy. Besides hold->private_.slot such a wrapper may read these: hold->acquired_us is 0 until an
 * attempt of the call was granted, hold->fence until the server has given one. */
const lk_provider *lk_provider_builtin(const char *name);

/* For provider files whose locks are told apart by their token: makes hold->token differ from every
 * other of this client, once per acquire call, so that two calls of one owner cannot free each
 * other's lock. Takes hold->private_.slot but its lowest bit, which is the provider's; does nothing
 * when another bit of it is set. */
void lk_make_token_unique(_Atomic uint64_t *n_tokens, lk_hold *hold);
/* The same once per try. For providers with several servers: one of them may carry out the undoing
 * of a refused try after it has granted a later one, which it then must not free. */
void lk_make_token_anew(_Atomic uint64_t *n_tokens, lk_hold *hold);

/* For providers with sessions, when alive() has become false for a hold. The watchdog's thread then
 * calls on_lost with LK_LOSS_SESSION. Any thread, until close() has returned; does not block.
 * lk_check() calls alive() itself. */
void lk_session_ended(const lk_context *context);

/* For providers whose last_error is NULL: stores why a call failed, in words for an operator, with
 * the host and without a password. Returns status. Any thread, until close() has returned. */
lk_status lk_note(const lk_context *context, lk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For provider files: fills *error (may be NULL) and returns status. */
lk_status lk_fail(lk_error *error, lk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#pragma GCC visibility pop
#endif
