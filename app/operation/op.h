/*
 * One request on its way: the question, the answer, and when it passed each point. The HTTP side
 * fills the question and owns the memory. The service fills the answer.
 */
#ifndef OP_H
#define OP_H

#include "condition.h"
#include "db.h"
#include "problem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Operations that change stock or balances: kind, name in business.h, names in metrics and events.
 * The first two may be served in lanes. */
#define OP_BUSINESS_MAP(X)                                                                         \
    X(PLACE_ORDER, order, "place-order", "order")                                                  \
    X(CHANGE_BALANCE, account, "change-balance", "transaction")                                    \
    X(PAY_ORDER, payment, "pay-order", "payment")                                                  \
    X(CANCEL_ORDER, cancellation, "cancel-order", "cancellation")                                  \
    X(REFUND_ORDER, refund, "refund-order", "refund")                                              \
    X(CHANGE_STOCK, stock_change, "change-stock", "stock-change")                                  \
    X(TRANSFER, transfer, "transfer", "transfer")

/* All others. GET_ITEM and all after it take no lock. */
#define OP_OTHER_MAP(X)                                                                            \
    X(PUT_ITEM, "put-item")           /* admin */                                                  \
    X(PUT_ACCOUNT, "put-account")     /* admin */                                                  \
    X(PATCH_ITEM, "patch-item")       /* admin */                                                  \
    X(PATCH_ACCOUNT, "patch-account") /* admin */                                                  \
    X(GET_ITEM, "get-item")                                                                        \
    X(GET_ACCOUNT, "get-account")                                                                  \
    X(GET_ORDER, "get-order")                                                                      \
    X(GET_TRANSACTION, "get-transaction")                                                          \
    X(GET_LEDGER, "get-ledger")                                                                    \
    X(GET_ITEM_LEDGER, "get-item-ledger")                                                          \
    X(GET_ACCOUNT_LEDGER, "get-account-ledger")                                                    \
    X(GET_SHOP_LEDGER, "get-shop-ledger")                                                          \
    X(LIST_ORDERS, "list-orders")                                                                  \
    X(AUDIT, "audit")                                                                              \
    X(GUARDS, "guards")                                                                            \
    X(GET_LOCK, "get-lock")   /* in the lab: of op.resource */                                     \
    X(FREE_LOCK, "free-lock") /* likewise */                                                       \
    X(READY, "ready")         /* /readyz: store and default guard's server answer */

enum op_kind {
#define OP_KIND_ENUM(kind, ...) OP_##kind,
    OP_BUSINESS_MAP(OP_KIND_ENUM) OP_OTHER_MAP(OP_KIND_ENUM)
#undef OP_KIND_ENUM
        OP_KIND_COUNT
};

/* The named points of an operation, in order. "lost" may come earlier. */
#define OP_POINT_MAP(X)                                                                            \
    X(SUBMITTED, "submitted")                                                                      \
    X(WAITING, "waiting") /* a worker has it and asks for the lock */                              \
    X(ACQUIRED, "acquired")                                                                        \
    X(READ, "read")                                                                                \
    X(DECIDED, "decided")                                                                          \
    X(CHECKED, "checked") /* the locks are still held, as far as we know; the write is next */     \
    X(COMMITTED, "committed")                                                                      \
    X(RELEASED, "released") /* or the keeper has the locks */                                      \
    X(LOST, "lost")         /* the lock was lost, or its fence refused */                          \
    X(REJECTED, "rejected") /* the last point, if the answer is a problem */

enum op_point {
#define OP_POINT_ENUM(name, text) OP_##name,
    OP_POINT_MAP(OP_POINT_ENUM)
#undef OP_POINT_ENUM
        OP_POINT_COUNT
};

static inline bool op_is_patch(enum op_kind kind)
{
    return kind == OP_PATCH_ITEM || kind == OP_PATCH_ACCOUNT;
}
/* Of an OP_PUT_* or OP_PATCH_*. */
static inline bool op_is_of_account(enum op_kind kind)
{
    return kind == OP_PUT_ACCOUNT || kind == OP_PATCH_ACCOUNT;
}

enum { OP_UNCHANGED = -1 }; /* a number that a PATCH does not have */

struct answer {
    int status;           /* HTTP */
    enum problem problem; /* PROBLEM_NONE for a success */
    bool replayed;        /* Idempotent-Replayed: true */
    bool decided;         /* it is stored under the key, in the transaction of its effect */
    int64_t version;      /* ETag: the version of the item or account; 0: none */
    /* JSON, or what the route says. malloc()ed; answer.h grows it. An operation that waits needs
     * none. The owner of the operation frees it, or keeps it for the next operation. NULL or "":
     * nothing yet, or no memory for it. */
    char *body;
    size_t body_room;
};

struct section;
struct seams;

enum { OP_KEY_MAX = 255 }; /* bytes of an idempotency key, as a client sends it */

struct op {
    struct op *next;      /* the service's queues */
    struct op *same_hash; /* the service's table of running keys */
    enum op_kind kind;

    /* the question */
    char key[DB_KEY_MAX + 1];         /* see op_set_key(); "" where none applies */
    char request[DB_REQUEST_MAX + 1]; /* canonical text, see db_answer; "" where none applies */
    char request_id[65];
    char caller[DB_ID_MAX + 1];         /* whose token it came with; "": with none */
    bool own_only;                      /* the caller is a buyer, see op_may_see() */
    char id[DB_ID_MAX + 1];             /* item, account, order, or transfer's "from" */
    char resource[DB_RESOURCE_MAX + 1]; /* audit and lab: "item:1"; audit: "" for all */
    char other[DB_ID_MAX + 1];          /* buyer, also of a list; or transfer's "to" */
    char reason[DB_REASON_MAX + 1], reference[DB_REFERENCE_MAX + 1]; /* for the ledger; or "" */
    int64_t amount;            /* quantity, signed amount, delta, stock, balance */
    char after[DB_ID_MAX + 1]; /* lists: where the page begins, as the page before has it; "" */
    int64_t limit;             /* lists: rows at most */
    /* OP_PUT_* and OP_PATCH_*, otherwise unused */
    int64_t price, per_user_limit, reserve_s;
    char guard[DB_GUARD_MAX + 1];
    int8_t fence;               /* -1: the service's default */
    struct condition condition; /* on the row that it writes */

    /* the answer, written by the service before done() */
    struct answer answer;

    int64_t deadline_us;              /* monotonic: it waits for queue and lock until then */
    int64_t point_us[OP_POINT_COUNT]; /* monotonic; 0: not passed */
    /* For the trace: the value of the row that it is named after, as it was read or will be written
     * (an order has none), and the fence of its lock. */
    int64_t shown_value, shown_fence;
    bool key_found;            /* its key had an answer in the store at the look-up */
    int64_t bought;            /* pieces that its buyer had when the batch was decided */
    uint64_t crowds[2];        /* where the service counts it (crowd.h) */
    int8_t n_crowds;           /* of them */
    uint64_t noted;            /* its number among the operations noted (events.h); 0: not noted */
    struct section *section;   /* runs it; NULL: none yet */
    const struct seams *seams; /* the service's; NULL: none */

    /* Set by the HTTP side, also while the service has the operation: no client waits for the
     * answer. An operation that has not begun may be done with the status 0. One that has begun
     * goes on, unless it is an audit. */
    atomic_bool abandoned;
    void (*done)(struct op *op); /* called exactly once, from a worker, if submit succeeded */
    void *http;                  /* private to the HTTP side */
};

/* Keys belong to their caller. The key that service and store know is "CALLER<TAB>KEY", or KEY
 * alone without a caller. No name and no client's key has a tab. So the key of another caller
 * neither replays, nor tells that it was used, nor is in flight. Set op->caller before. */
void op_set_key(struct op *op, const char *key);
/* The key as the client sent it. */
const char *op_client_key(const struct op *op);

/* False: op must not learn of what belongs to this user. Answer as if it did not exist: 404,
 * because a 403 would tell that it exists. */
bool op_may_see(const struct op *op, const char *user_id);

#endif
