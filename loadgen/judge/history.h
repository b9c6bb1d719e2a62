/*
 * The history of a run: what was asked when, and what came back when, as JSON lines. Written by the
 * load threads, read by the checkers (check.h), now or years later.
 *
 *   {"event":"run","format":1,"workload":"sale","guard":"none","run":"9f01c2aa","seed":1}
 *   {"event":"resource","resource":"item:sale-9f01c2aa","initial":100,"version":1,"limit":1}
 *   {"event":"invoke","at_us":1,"key":"sale-9f01c2aa-7","path":"/v1/items/...","body":{...}}
 *   {"event":"complete","at_us":9,"key":"sale-9f01c2aa-7","end":"answered","status":201,"body":{...}}
 *
 * at_us is the monotonic clock of the machine: an invocation's is taken before the request was
 * sent, a completion's after the answer had come, so that what lies between them certainly holds
 * the effect. A retry has lines of its own under the same key. A read, GET of an item or account,
 * has a key that no other line has. "end" is one of answered, abandoned, not-sent, broken,
 * timed-out, bad-answer; all but answered and not-sent leave the outcome unknown.
 *
 * An invocation is in the kernel's hands before its request is sent. A writer that was killed may
 * leave a last line without its end; the reader leaves it out and says so.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "load.h"

struct history_writer;

/* Creates the file. 0, or -1 with errno. */
int history_create(const char *path, struct history_writer **ret);
/* 0, or -1 with errno when not all of it could be written. NULL is allowed. */
int history_close(struct history_writer *writer);

/* Any thread; NULL for the writer: nothing is written. body is JSON text; NULL: it is left
 * out, as of a read. */
void history_run(struct history_writer *writer, const char *workload, const char *guard,
                 const char *run, uint64_t seed);
/* version: with which it began; limit: pieces per user, 0: none, accounts have none. */
void history_resource(struct history_writer *writer, const char *resource, int64_t initial,
                      int64_t version, int64_t limit);
void history_invoke(struct history_writer *writer, const char *key, const char *path,
                    const char *body);
/* To be called when the answer has come, or will not: it takes the time. */
void history_complete(struct history_writer *writer, const char *key,
                      const struct load_answer *answer);
/* To be called between history_invoke() and the sending: hands all that was written so far to the
 * kernel, so that a process that is killed leaves the invocation of every request that it sent. */
void history_hand_over(struct history_writer *writer);

/* "answered", "not-sent", ... */
const char *history_end_text(enum load_end end);

/* -- reading ----------------------------------------------------------------------------------- */

enum history_state {
    HISTORY_UNSENT,  /* certainly nothing happened */
    HISTORY_UNKNOWN, /* sent; perhaps done, perhaps not */
    HISTORY_ACCEPTED,
    HISTORY_REFUSED
};

enum history_kind {
    HISTORY_CHANGE, /* an order, a transaction, a transfer: its answer tells before and after */
    HISTORY_PAYMENT,
    HISTORY_CANCELLATION, /* both: the answer tells nothing of the number they change */
    HISTORY_READ          /* GET of an item or account */
};

/* Of version, fence and limit: none was told. */
#define HISTORY_NO_NUMBER INT64_MIN

/* All that is known of one idempotency key, or of one read. Text lives as long as the history; the
 * same text is the same pointer. */
struct history_op {
    enum history_kind kind;
    const char *key, *resource; /* "item:ID", "account:ID": what it changes or reads; "": neither */
    const char *other;          /* transfers: the account that gets the money; else "" */
    const char *user;           /* orders: who buys; else "" */
    const char *of_order;       /* payments, cancellations: the order's id; else "" */
    enum history_state state;
    int64_t invoked_us, completed_us; /* first asked; first decided (INT64_MAX: never) */
    int64_t delta;                    /* change of the resource, once accepted; other: -delta */
    uint64_t differing;               /* decided answers that are not the first one's */
    uint64_t answers;                 /* decided ones */
    uint64_t open;                    /* invocations without a completion */
    const char *problem;              /* of a refusal: "sold-out"; else "" */
    /* of an accepted one's answer */
    const char *order_id;          /* "": none */
    int64_t before, after;         /* a read: after */
    int64_t version, fence, price; /* price: of the whole order; NO_NUMBER: not told */
    int64_t other_version;         /* transfers: of the other account */
};

struct history_resource {
    const char *name;
    int64_t initial, version, limit; /* limit: pieces per user; NO_NUMBER: not told */
};

struct history {
    struct history_op *ops; /* in the order in which they were first asked */
    size_t n_ops;
    struct history_resource *resources; /* each once */
    size_t n_resources;
    size_t torn_line;           /* the last line, which ends in the middle; 0: none */
    struct history_text *texts; /* inside */
};

/* 0, or -1 with a message that names the line. *ret is to be freed with history_free(). */
int history_read(const char *path, struct history *ret, char *message, size_t size);
void history_free(struct history *history);
/* The resource of this name, which is a text of the history; NULL: the history does not say how it
 * began. */
const struct history_resource *history_resource_of(const struct history *history, const char *name);

#endif
