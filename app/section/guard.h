/*
 * The guards that a resource can name: none, every lock of lockkit, and the three ways in which the
 * store itself keeps changes apart.
 */
#ifndef GUARD_H
#define GUARD_H

#include "config.h"
#include "metric.h"
#include "seams.h"

#include <pthread.h>

enum guard_kind {
    GUARD_NONE,    /* read, decide, write, without protection */
    GUARD_LOCK,    /* the same, under a lock of lockkit */
    GUARD_ROW,     /* read for update, decide and write in one write transaction */
    GUARD_ATOMIC,  /* one conditional UPDATE */
    GUARD_VERSION, /* write only over the version that was read; else begin again */
};

/* The time of one command to a lock server. A request that gets no lock must be answered within a
 * second after its wait: one last attempt, its clean-up and leaving the queue fit (see seckilld.c).
 */
enum { GUARD_COMMAND_TIMEOUT_MS = 250 };
enum { GUARD_LOSSES = LK_LOSS_MAX_HOLD + 1, GUARDS_MAX = 32 };

struct guards;

struct guard {
    const lk_provider_info *info; /* name, claims, algorithm, guarantee, weakness, source */
    enum guard_kind kind;
    const char *endpoints; /* of its lock servers; NULL: none needed */
    struct guards *guards;
    _Atomic(lk_client *) client; /* NULL: not opened yet */
    struct metric_histogram wait_us, hold_us;
    atomic_uint_fast64_t lost[GUARD_LOSSES];
    atomic_bool abandoned; /* a lock of it must not be released: its client is never closed */
};

/* False: there is no guard of this name; the known ones are printed to stderr. */
bool guard_is_known(const char *name);
/* Opens the client of the default guard; the other clients are opened at their first use. config
 * and seams are borrowed; of seams it uses env, lease, one_by_one and providers. Returns 0, or -1
 * after printing why to stderr. */
int guards_open(const struct config *config, const struct seams *seams, struct guards **ret);
void guards_close(struct guards *guards);

/* The guard of this name; "" is the default. NULL: unknown. */
struct guard *guard_find(struct guards *guards, const char *name);
struct guard *guard_default(struct guards *guards);
struct guard *guard_at(struct guards *guards, size_t i); /* NULL past the last */
const struct seams *guard_seams(const struct guard *guard);

/* The client of a GUARD_LOCK, opened now if it is not open. NULL: error (may be NULL) says why. */
lk_client *guard_client(struct guard *guard, lk_error *error);
/* Whether many locks or many changes take about the time of one. False for GUARD_NONE, and for a
 * lock whose client is not open yet. */
bool guard_is_quick_with_many(const struct guard *guard);

/* The lease that a lock is asked for with. 0: the client's, which the watchdog renews. With the
 * watchdog off it is --lease-ms. */
struct guard_lease {
    int64_t lease_ms;
    bool renewed; /* by the watchdog, although lease_ms is not 0 */
};
struct guard_lease guard_lease(const struct guard *guard);

/* True: its rows are read inside the write transaction. False: from a snapshot before it. */
bool guard_reads_in_transaction(const struct guard *guard);

/* Whether the guard claims to lose no update while no lease ends and no server is lost: */
bool guard_claims_safe(const struct guard *guard);                /* with any number of instances */
bool guard_claims_safe_in_one_process(const struct guard *guard); /* with one instance */

#endif
