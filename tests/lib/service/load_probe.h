/* A workload for tests: sends GET /SEQ and records the outcome of each sequence number. */
#ifndef LOAD_PROBE_H
#define LOAD_PROBE_H

#include "load.h"

enum { PROBE_BODY_MAX = 64 };

struct probe_entry {
    uint32_t requests, outcomes; /* calls of the workload's functions */
    enum load_end end;           /* of the last sending */
    int status, target;
    int64_t first_sent_us, sent_us, answered_us, retry_after_ms;
    size_t body_length;
    bool replayed;
    char body[PROBE_BODY_MAX]; /* its start */
};

struct probe {
    struct probe_entry *entries;
    uint64_t max;          /* number of entries; the workload sends no further requests */
    int64_t retry_ms;      /* > 0: send again after this time if the answer is not 200 ... */
    uint32_t sendings_max; /* ... up to this many times */
};

/* Asserts on failure. Any thread. */
void probe_init(struct probe *probe, uint64_t max);
void probe_free(struct probe *probe);
struct load_workload probe_workload(struct probe *probe);

/* Options for one target: closed, 1 thread, 4 connections, 5 s timeout, no bound. Asserts. */
struct load_options probe_options(const char *url);
/* load_run() that fails the process on error. */
struct load_result probe_run(const struct load_options *options, struct probe *probe);

#endif
