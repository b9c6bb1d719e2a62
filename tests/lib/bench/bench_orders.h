/* Sends orders for the benchmarks, to the service or to a peer that takes the same requests. */
#ifndef TEST_BENCH_ORDERS_H
#define TEST_BENCH_ORDERS_H

#include "sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct order_run {
    const char *url;    /* of the service, with or without a slash at its end */
    const char *second; /* of another instance, for every other connection; may be NULL */
    const char *item;   /* its id; may have placeholders: "{{random 1 100}}" */
    int connections;
    int threads;         /* of the generator; 0: one */
    double per_s;        /* open load, orders per second; 0: closed load, as fast as answered */
    int64_t warmup_ms;   /* before the duration; not measured */
    int64_t duration_ms; /* 200 at least */
    bool may_refuse;     /* false: exits with 1 on any answer but 201 */
    bool random_keys;    /* keys are UUIDs; false: keys are numbered */
};

struct order_figures {
    double per_s;                    /* answered with 201 within the duration */
    double p50_us, p99_us, p99_9_us; /* of all answers, from the intended start */
    uint64_t accepted, others, dropped;
};

/* Makes one run. Each order has a new key and a random user, one of 10^9. */
void bench_orders(const struct order_run *run, struct order_figures *ret);

/* Makes the same run in a child process, so that two runs can overlap. bench_join_orders() waits
 * for its end, and exits with 1 if the run failed. */
pid_t bench_fork_orders(const struct order_run *run);
void bench_join_orders(pid_t child);

/* Opens a sandbox with a Redis in it. Exits with 1 on failure. */
struct sandbox_server *bench_redis(struct sandbox **ret);
/* Starts seckilld with further flags (NULL-terminated). store: the URL of a PostgreSQL, or a name
 * for a SQLite file in the sandbox. Exits with 1 on failure. */
struct sandbox_server *bench_service(struct sandbox *sandbox, const char *store,
                                     const char *const *flags);
/* Creates an item with enough stock for any run. per_user_limit: pieces, 0: no limit. */
void bench_put_item(const char *url, const char *id, const char *guard, int per_user_limit);
/* Exits with 1 unless the audit of the item (NULL: of everything) is ok. Returns how many pieces
 * were sold. */
int64_t bench_audit(const char *url, const char *id);
/* Returns the body of GET path; the caller frees it. Exits with 1 on any status but 200. */
char *bench_get(const char *url, const char *path);
/* Returns the value of a metric of GET /metrics, or of its text. name includes the labels. Exits
 * with 1 if there is no such metric. */
double bench_metric(const char *url, const char *name);
double bench_metric_of(const char *text, const char *name);
/* Waits until n requests are in flight in the service. Exits with 1 after 30 s. */
void bench_wait_for_waiters(const char *url, long n);
/* Waits until the service has at most this many connections besides ours and the cores were 90 %
 * idle for 100 ms. Then the previous run has ended, or its requests only wait. Exits with 1 after
 * 30 s. */
void bench_wait_until_quiet(const char *url, long connections);

#endif
