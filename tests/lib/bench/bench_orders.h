/* Orders as the benchmarks send them, to the service or to a peer that takes the same requests. */
#ifndef TEST_BENCH_ORDERS_H
#define TEST_BENCH_ORDERS_H

#include "sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct order_run {
    const char *url;    /* of the service, with or without a slash at its end */
    const char *second; /* of another instance, which gets every other connection; may be NULL */
    const char *item;   /* its id; may have placeholders: "{{random 1 100}}" */
    int connections;
    int threads;         /* of the generator; 0: one */
    double per_s;        /* open model; 0: closed, each connection as fast as it is answered */
    int64_t warmup_ms;   /* before the duration; not measured */
    int64_t duration_ms; /* 200 at least */
    bool may_refuse;     /* else anything but a 201 is the end */
    bool random_keys;    /* UUIDs, rather than keys that are counted up */
};

struct order_figures {
    double per_s;                    /* answered with 201 within the duration */
    double p50_us, p99_us, p99_9_us; /* of all answers, from the intended start */
    uint64_t accepted, others, dropped;
};

/* One run; each order has a new key and a user drawn from a thousand million. */
void bench_orders(const struct order_run *run, struct order_figures *ret);

/* The same in a child process, so that another run can go on beside it; and its end, which dies
 * unless it was a good one. */
pid_t bench_fork_orders(const struct order_run *run);
void bench_join_orders(pid_t child);

/* Opens a sandbox with a Redis in it. Dies rather than return NULL. */
struct sandbox_server *bench_redis(struct sandbox **ret);
/* seckilld with further flags (NULL-terminated); store: the URL of a PostgreSQL, or a name for a
 * SQLite file in the sandbox. Dies rather than return NULL. */
struct sandbox_server *bench_service(struct sandbox *sandbox, const char *store,
                                     const char *const *flags);
/* Its item, with stock enough for any run; per_user_limit: pieces, 0: no limit. */
void bench_put_item(const char *url, const char *id, const char *guard, int per_user_limit);
/* Dies unless the ledger of the item (NULL: of everything) is unharmed. Returns how many were
 * sold. */
int64_t bench_audit(const char *url, const char *id);
/* GET path -> the JSON body; dies on anything but 200. To be freed. */
char *bench_get(const char *url, const char *path);
/* The value of a metric of GET /metrics, or of its text; the name with its labels. Dies if it is
 * not there. */
double bench_metric(const char *url, const char *name);
double bench_metric_of(const char *text, const char *name);
/* Returns when so many requests are under way in the service; dies after half a minute. */
void bench_wait_for_waiters(const char *url, long n);
/* Returns when the service has so many connections at most besides ours, and all cores have been
 * idle for nine tenths of a tenth of a second: what a run has left behind is done with, or those
 * who wait do nothing else. Dies after half a minute. */
void bench_wait_until_quiet(const char *url, long connections);

#endif
