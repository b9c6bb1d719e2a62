/*
 * The history of a run as JSON lines: each request and each answer with its time. The load threads
 * write it. The checkers (check.h) read it, at once or years later.
 *
 *   {"event":"run","format":1,"workload":"sale","guard":"none","run":"9f01c2aa","seed":1}
 *   {"event":"resource","resource":"item:sale-9f01c2aa","initial":100,"version":1,"limit":1}
 *   {"event":"invoke","at_us":1,"key":"sale-9f01c2aa-7","path":"/v1/items/...","body":{...}}
 *   {"event":"complete","at_us":9,"key":"sale-9f01c2aa-7","end":"answered","status":201,"body":{...}}
 *
 * at_us is the machine's monotonic clock. An invocation takes it before the request is sent, a
 * completion after the answer has come. The effect of an answered request lies between the two. A
 * retry has its own lines under the same key. A read (GET of an item or account) has a key of its
 * own. "end" is one of answered, abandoned, not-sent, broken, timed-out, bad-answer. All but
 * answered and not-sent leave the outcome unknown.
 *
 * Each invocation is handed to the kernel before its request is sent. A killed writer may leave a
 * cut last line: the reader skips it and reports it.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "load.h"

struct history_writer;

/* Creates the file. 0, or -1 with errno. */
int history_create(const char *path, struct history_writer **ret);
/* Returns 0, or -1 with errno if not all could be written. NULL is allowed. */
int history_close(struct history_writer *writer);

/* Any thread. With a NULL writer nothing is written. body is JSON text; NULL (a read): left out. */
void history_run(struct history_writer *writer, const char *workload, const char *guard,
                 const char *run, uint64_t seed);
/* version: its first one. limit: pieces per user, 0: none. Accounts have no limit. */
void history_resource(struct history_writer *writer, const char *resource, int64_t initial,
                      int64_t version, int64_t limit);
void history_invoke(struct history_writer *writer, const char *key, const char *path,
                    const char *body);
/* Call it when the answer has come or will not come: it reads the clock. */
void history_complete(struct history_writer *writer, const char *key,
                      const struct load_answer *answer);
/* Call it between history_invoke() and the sending. It hands all buffered lines to the kernel, so
 * that even a killed process has recorded every request that it sent. */
void history_hand_over(struct history_writer *writer);

/* "answered", "not-sent", ... */
const char *history_end_text(enum load_end end);

/* -- reading ----------------------------------------------------------------------------------- */

enum history_state {
    HISTORY_UNSENT,  /* nothing happened */
    HISTORY_UNKNOWN, /* sent; perhaps done */
    HISTORY_ACCEPTED,
    HISTORY_REFUSED
};

enum history_kind {
    HISTORY_CHANGE, /* an order, a transaction, a transfer: its answer has the values before and
                       after */
    HISTORY_PAYMENT,
    HISTORY_CANCELLATION, /* payment and cancellation: the changed number is not in the answer */
    HISTORY_READ          /* GET of an item or account */
};

/* The value of version, fence, limit or price when it is not known. */
#define HISTORY_NO_NUMBER INT64_MIN

/* All that is known of one idempotency key or one read. Texts live as long as the history. Equal
 * texts have equal pointers. */
struct history_op {
    enum history_kind kind;
    const char *key, *resource; /* "item:ID", "account:ID": what it changes or reads; "": neither */
    const char *other;          /* transfers: the account that gets the money; else "" */
    const char *user;           /* orders: the buyer; else "" */
    const char *of_order;       /* payments, cancellations: the order's id; else "" */
    enum history_state state;
    int64_t invoked_us, completed_us; /* first asked; first decided (INT64_MAX: never) */
    int64_t delta;                    /* change of the resource, once accepted; other: -delta */
    uint64_t differing;               /* decided answers that differ from the first */
    uint64_t answers;                 /* decided ones */
    uint64_t open;                    /* invocations without a completion */
    const char *problem;              /* of a refusal: "sold-out"; else "" */
    /* from the answer of an accepted request */
    const char *order_id;          /* "": none */
    int64_t before, after;         /* a read: after */
    int64_t version, fence, price; /* price: of the whole order; NO_NUMBER: not known */
    int64_t other_version;         /* transfers: of the other account */
};

struct history_resource {
    const char *name;
    int64_t initial, version, limit; /* limit: pieces per user; NO_NUMBER: not known */
};

struct history {
    struct history_op *ops; /* in order of first invocation */
    size_t n_ops;
    struct history_resource *resources; /* each once */
    size_t n_resources;
    size_t torn_line;           /* number of a cut last line; 0: none */
    struct history_text *texts; /* private */
};

/* Returns 0, or -1 with a message that names the line. Free *ret with history_free(). */
int history_read(const char *path, struct history *ret, char *message, size_t size);
void history_free(struct history *history);
/* The resource of this name. NULL: the history has no "resource" line for it. */
const struct history_resource *history_resource_of(const struct history *history, const char *name);

#endif
