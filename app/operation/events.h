/*
 * The workers' side of GET /v1/events.
 *
 * While a client listens, each point that an operation passes is noted, and the outcomes are
 * counted per resource. While no client listens, a point costs one load and a comparison.
 * Everything is bounded: an operation is noted whole or not at all, and only as many per second as
 * a page can show. The counts are of all operations.
 *
 * One per process, like op_pass(). Workers call events_pass(); the HTTP thread calls the rest.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include "op.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    EVENTS_OPS_PER_S = 640,                  /* operations noted: with up to nine points each */
    EVENTS_OPS_BURST = EVENTS_OPS_PER_S / 2, /* of these at once */
    EVENTS_SENT_PER_S = 6400, /* to all listeners together: beyond 10 of them fewer are noted */
    EVENTS_PENDING_MAX = 8192,
    EVENTS_RESOURCES_MAX = 32,   /* counted at a time; the one untouched for longest makes room */
    EVENTS_LINGER_US = 15000000, /* it goes on without listeners: a client may reconnect */
    EVENTS_KEY_MAX = 63          /* bytes of a name, see events_show_keys() */
};

/* An operation at a point. */
struct event {
    int64_t t_us; /* monotonic */
    int64_t value, fence;
    enum op_point point;
    enum op_kind kind;
    enum problem problem; /* at rejected */
    bool has_value;
    char resource[DB_RESOURCE_MAX + 1]; /* "item:1"; of a transfer, the account that pays */
    char key[EVENTS_KEY_MAX + 1], request_id[65]; /* key: which operation */
};

/* Of one resource, since it was first seen or PUT while a client listened. */
struct event_counts {
    char resource[DB_RESOURCE_MAX + 1];
    int64_t initial; /* as PUT; -1: not seen */
    int64_t value;   /* as last committed */
    int64_t accepted, amount, decided_no,
        failed;                     /* amount: of the accepted, minor units, or pieces
                         ordered less those of stock changes;
                         decided_no: sold-out and the like; failed: 503 and the like */
    int64_t p50_us, p99_us, max_us; /* submitted to released; bucket's upper bound, 0: none yet */
};

extern _Atomic int64_t events_until_us; /* private to events.c: events are wanted until then */

/* How an operation is named: by its idempotency key, or by "#N", the Nth noted in this process.
 * Keys are shown only if this is set, before the first listener: a stranger with a key can read the
 * answer of that key, or use the key up before its owner retries. */
void events_show_keys(bool shown);

/* All of them pass a point at this time. */
void events_pass(struct op *const *ops, size_t n, enum op_point point, int64_t at_us);

static inline bool events_wanted(int64_t at_us)
{
    return at_us < atomic_load_explicit(&events_until_us, memory_order_relaxed);
}

/* The number of listeners from now on. */
void events_listen(int listeners, int64_t now_us);

/* The events since the last call, in order; *ret is valid until the next call. *ret_lost: events
 * that found no room. *ret_unnoted: operations beyond the ration. Both count from the start. */
size_t events_take(const struct event **ret, uint64_t *ret_lost, uint64_t *ret_unnoted);

/* The resources whose counts have changed since the last call; ret has EVENTS_RESOURCES_MAX. */
size_t events_counts(struct event_counts *ret);

/* "read", "item:1", ... */
const char *event_point_text(enum op_point point);
const char *event_kind_text(enum op_kind kind);

#endif
