/*
 * Seams: where the hazard lab and the tests reach into a service. One struct is handed to
 * service_open(). A service that sells has none: each member is then NULL or false, and nothing
 * here is called.
 *
 * Threading: any thread of the service calls the functions. Ownership: all of it is borrowed until
 * service_close().
 */
#ifndef SEAMS_H
#define SEAMS_H

#include "op.h"
#include "lockkit.h"

struct guard_lease;
struct lk_provider;
struct operation;
struct queries;

enum { SEAMS_PROVIDERS_MAX = 2 };

struct seams {
    /* Called at every point of every operation, by the thread that runs it. May hold that thread.
     */
    void (*at_point)(struct op *op, enum op_point point);
    /* Time, randomness and points of the lock clients. NULL: lk_env_system(). */
    const lk_env *env;
    /* The lease of a lock, asked by the thread that takes it. lease_ms 0: as configured. */
    struct guard_lease (*lease)(void);
    /* Whether the operations on a resource ("item:1") are served in lanes: 1, 0, or -1: as
     * configured. */
    int (*lanes)(const char *resource);
    /* Each lock is asked for and each lane is served alone, so that a lesson sees every one: no
     * local queue before a lock, no lanes served together. */
    bool one_by_one;
    /* The last look at the locks, and with it the point "checked", is before the write transaction
     * begins, so a request that is held there holds up nobody's write. Not where a row is read
     * inside the transaction. */
    bool looks_before;
    /* Answers OP_GET_LOCK and OP_FREE_LOCK. */
    void (*query)(const struct queries *queries, struct op *op);

    /* -- mistakes made on purpose: what takes the place of the right way. NULL: the right way -- */

    /* In the place of lk_acquire_many(). */
    lk_status (*acquire_many)(lk_client *client, const lk_request *requests, size_t n,
                              lk_hold *holds);
    /* In the place of the guards of the same names; the first NULL ends the list. */
    const struct lk_provider *providers[SEAMS_PROVIDERS_MAX + 1];
    /* In the place of the operation of that kind. */
    const struct operation *operations[OP_PUT_ITEM];
    /* A lock is released although its commit was not answered. The outcome is never asked for. */
    bool forgets_unknown;
};

/* Of a service without any. */
extern const struct seams seams_none;

#endif
