/*
 * The history of a run: what was asked when, and what came back when, as JSON lines. Written by the
 * load threads, read by the checkers (check.h), now or years later.
 *
 *   {"event":"run","format":1,"workload":"sale","guard":"none","run":"9f01c2aa","seed":1}
 *   {"event":"resource","resource":"item:sale-9f01c2aa","initial":100}
 *   {"event":"invoke","at_us":1,"key":"sale-9f01c2aa-7","path":"/v1/items/...","body":{...}}
 *   {"event":"complete","at_us":9,"key":"sale-9f01c2aa-7","end":"answered","status":201,"body":{...}}
 *
 * at_us is the monotonic clock of the machine: an invocation's is taken before the request was
 * sent, a completion's after the answer had come, so that what lies between them certainly holds
 * the effect. A retry has lines of its own under the same key. "end" is one of answered, abandoned,
 * not-sent, broken, timed-out, bad-answer; all but answered and not-sent leave the outcome unknown.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "load.h"

struct history_writer;

/* Creates the file. 0, or -1 with errno. */
int history_create(const char *path, struct history_writer **ret);
/* 0, or -1 with errno when not all of it could be written. NULL is allowed. */
int history_close(struct history_writer *writer);

/* Any thread; NULL for the writer: nothing is written. body is JSON text, or is left out. */
void history_run(struct history_writer *writer, const char *workload, const char *guard,
                 const char *run, uint64_t seed);
void history_resource(struct history_writer *writer, const char *resource, int64_t initial);
void history_invoke(struct history_writer *writer, const char *key, const char *path,
                    const char *body);
void history_complete(struct history_writer *writer, const char *key,
                      const struct load_answer *answer);

/* "answered", "not-sent", ... */
const char *history_end_text(enum load_end end);

/* -- reading ----------------------------------------------------------------------------------- */

enum history_state {
    HISTORY_UNSENT,  /* certainly nothing happened */
    HISTORY_UNKNOWN, /* sent; perhaps done, perhaps not */
    HISTORY_ACCEPTED,
    HISTORY_REFUSED
};

/* All that is known of one idempotency key. Text lives as long as the history. */
struct history_op {
    const char *key, *resource; /* "item:ID", "account:ID": what its version counts; "": neither */
    const char *other;          /* transfers: the account that gets the money; else "" */
    enum history_state state;
    int64_t invoked_us, completed_us; /* first asked; first decided (INT64_MAX: never) */
    int64_t amount;                   /* asked for: pieces, or money as signed in the request */
    uint64_t differing;               /* decided answers that are not the first one's */
    uint64_t answers;                 /* decided ones */
    uint64_t open;                    /* invocations without a completion */
    /* of an accepted one's answer */
    const char *order_id; /* "": none */
    int64_t before, after, version, fence;
};

struct history_resource {
    const char *name;
    int64_t initial;
};

struct history {
    struct history_op *ops; /* in the order in which they were first asked */
    size_t n_ops;
    struct history_resource *resources;
    size_t n_resources;
    struct history_text *texts; /* inside */
};

/* 0, or -1 with a message that names the line. *ret is to be freed with history_free(). */
int history_read(const char *path, struct history *ret, char *message, size_t size);
void history_free(struct history *history);

#endif
