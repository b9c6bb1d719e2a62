/*
 * The load engine sends a workload's requests to one or more targets from a few threads, each with
 * its own epoll. It measures from the INTENDED start of each request (no coordinated omission). It
 * knows HTTP only: the workload decides what to send and what an answer means.
 */
#ifndef LOAD_H
#define LOAD_H

#include "hist.h"
#include "series.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOAD_TARGETS_MAX = 16,
    LOAD_REQUEST_MAX = 32768, /* bytes of one request, head and body */
    LOAD_KEPT_MAX = 4096,     /* bytes of an answer's body that a workload sees */
    LOAD_THREADS_MAX = 64,
    LOAD_PIPELINE_MAX = 64,
    LOAD_CONNECTIONS_MAX = 65536,
    LOAD_STOPPED_MS = 5000 /* longest a blocking call may still take after a stop */
};

struct load_target {
    char host[256];   /* Host header */
    char address[64]; /* numeric; "" for a unix socket */
    int port;
    char socket_path[108]; /* "http+unix:///path"; "" for TCP */
    char path[512];        /* of the URL; "/" when it has none */
    /* Lines, each ending in \r\n, of every request of load_fetch() and of a workload's own; "" */
    char headers[300];
};
/* Parses "http://host:port/path" or "http+unix:///socket". Returns 0, or -1 with a message. */
int load_target_parse(const char *url, struct load_target *ret, char *message, size_t size);

enum load_mode {
    LOAD_BURST, /* all requests are due at once, at the start */
    LOAD_RATE,  /* open model: request i is due at start + i / rate, or see LOAD_POISSON */
    LOAD_RAMP,  /* open model: the rate changes evenly from ramp_from to rate over the duration */
    LOAD_CLOSED /* each connection sends its next request after the final answer to the last one */
};

/* How LOAD_RATE and LOAD_RAMP spread requests in time. */
enum load_arrivals {
    LOAD_EVEN,   /* at equal distances */
    LOAD_POISSON /* at random and independent, like many callers; some come close together. The same
                    seed gives the same instants with any number of threads */
};

/* The note of a report on the latencies of a closed load. */
#define LOAD_CLOSED_NOTE(between)                                                                  \
    "closed load: each connection waits for its answer, so a stall hides requests." between        \
    "--mode rate counts them."

/* How one sending ended. */
enum load_end {
    LOAD_ANSWERED,
    LOAD_ABANDONED,  /* sent, then dropped on purpose before the answer: outcome unknown */
    LOAD_NOT_SENT,   /* connection refused or broken before the first byte: nothing happened */
    LOAD_BROKEN,     /* reset or closed after sending: outcome unknown */
    LOAD_TIMED_OUT,  /* no whole answer in timeout_ms: outcome unknown */
    LOAD_BAD_ANSWER, /* not HTTP: outcome unknown */
    LOAD_END_COUNT
};

struct load_answer {
    enum load_end end;
    int status;             /* 0 unless answered */
    const char *body;       /* NUL-terminated, at most LOAD_KEPT_MAX bytes; valid for the call */
    size_t body_length;     /* of the kept part */
    bool replayed;          /* Idempotent-Replayed: true */
    int64_t retry_after_ms; /* from Retry-After; -1 without */
    int64_t sent_us, answered_us; /* monotonic */
    int target;
};

/* A workload. Any load thread calls its functions, but only one thread at a time for one sequence
 * number. Shared data goes into arrays indexed by it. */
struct load_workload {
    /* Writes request number seq (0, 1, 2, ...) into out: a whole HTTP/1.1 request, with Host of
     * the target. Returns its length, or 0 for "nothing more to send". Called once per sending,
     * before its outcome; size is LOAD_REQUEST_MAX. */
    size_t (*request)(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                      size_t size);
    /* Takes the outcome. Returns -1 (finished), or the delay in ms after which the same seq is
     * sent again: a client's retry with the same key, whose latency still counts from the intended
     * start. Must not block: it holds up its thread's other connections. */
    int64_t (*outcome)(void *ctx, uint64_t seq, const struct load_answer *answer);
    /* Called with the requests about to be sent, before request() is called for the first of them,
     * so that they can be recorded. request() may still return 0 for some. NULL: not called. With
     * it, a thread sends once per turn of its loop, so that one call announces many. */
    void (*announce)(void *ctx, const uint64_t *seqs, size_t n);
    void *ctx;
};

struct load_progress {
    int64_t elapsed_us; /* of the duration; stops at its end, though answers are awaited longer */
    uint64_t due, sent, completed, retries;
    uint64_t measured, answered, failed; /* as in load_result */
    uint64_t ends[LOAD_END_COUNT];
    uint64_t accepted;          /* answered with 2xx */
    const struct hist *latency; /* of the measured ones; valid for the call */
};
/* Sendings neither answered nor abandoned on purpose, plus requests that failed. At the end of a
 * run, load_result.dropped_errors comes on top. */
uint64_t load_errors(const uint64_t ends[LOAD_END_COUNT], uint64_t failed);

/* Instants are those of steady_us(). */
struct load_options {
    struct load_target targets[LOAD_TARGETS_MAX];
    int n_targets; /* connections are spread over them in turn */
    enum load_mode mode;
    enum load_arrivals arrivals;
    double rate;       /* per second, LOAD_RATE and LOAD_RAMP */
    double ramp_from;  /* per second, LOAD_RAMP: at the start */
    int64_t warmup_ms; /* requests due before this are sent and judged, but not measured */
    int connections, threads;
    int pipeline;        /* most requests under way on one connection; 0 or 1: no pipelining */
    uint64_t requests;   /* stop after this many; 0: no bound */
    int64_t duration_ms; /* stop starting new ones after this; 0: no bound */
    int64_t timeout_ms;  /* per sending, connecting included; also how long after the end of the
                            duration retries may still begin */
    bool allow_dropped;  /* requests due but never sent are no errors */
    double abandon_pct;  /* this share of first sendings is abandoned, chosen by seed and seq */
    uint64_t seed;
    atomic_bool *stop; /* a signal handler sets it: the duration ends, and answers are awaited for
                          at most LOAD_STOPPED_MS; may be NULL */
    /* Called about 5 times a second from the calling thread, with the figures of one moment a
     * little ago: time, requests due and counters belong together. Each thread adds what it did
     * until it copied them, just after. False ends the duration. May be NULL. */
    bool (*progress)(void *ctx, const struct load_progress *now);
    void *progress_ctx;
};

struct load_result {
    uint64_t sent;           /* sendings begun, retries included */
    uint64_t completed;      /* requests finished (seq numbers) */
    uint64_t dropped;        /* due but never sent before the end */
    uint64_t dropped_errors; /* the same, or 0 with allow_dropped */
    uint64_t unfinished;     /* sent, but the run ended before the retry that outcome() asked for */
    uint64_t retries;
    uint64_t measured;   /* completed requests due after the warm-up */
    uint64_t answered;   /* final answers within measured_us, whatever they say */
    uint64_t failed;     /* requests whose last answer was an error (5xx, 4xx except 409, which is a
                            decision), or whose retry after an answer the end cut off */
    int64_t measured_us; /* from the end of the warm-up to the end of the duration or the last
                            outcome, whichever came first */
    uint64_t ends[LOAD_END_COUNT];
    uint64_t status[600]; /* answered sendings by HTTP status */
    uint64_t bytes_in, bytes_out, connects;
    int64_t started_us, duration_us; /* first due to last outcome */
    /* us from the intended start to the final answer. A timed-out request counts with the time
     * until its timeout. Other failures count only in `ends`. */
    struct hist latency;
    struct hist service; /* us from each send to its answer */
    /* us from the intended start of a request to its first sending, in two parts: waiting for a
     * free connection, then the generator's own delay. Empty in closed mode. */
    struct hist no_connection, own_lag;
    struct series series; /* from the start, warm-up included */
};

/* Opens the connections, starts the clock, runs to the end. Returns 0, or -1 with a message
 * (option out of range, no memory, too few file descriptors). Free *ret with load_result_free(). A
 * server that cannot be reached is no error: its requests end as LOAD_NOT_SENT. */
int load_run(const struct load_options *options, const struct load_workload *workload,
             struct load_result *ret, char *message, size_t size);
/* A percentile of `latency` in us. Dropped requests (dropped_errors) count as slower than every
 * answer. LOAD_NO_FIGURE: the percentile falls among them, or there are too few answers
 * (hist_tells()). */
#define LOAD_FEW_NOTE " (p50 needs 5, p90 29, p99 299, p99.9 2,995)"
enum { LOAD_NO_FIGURE = -1 };
int64_t load_percentile(const struct load_result *result, double percentile);
/* "180,000 of 200,000 requests (90 %) were due and never sent; they count as errors". False, and
 * nothing is written, if no drop counts as an error. */
enum { LOAD_OVERLOAD_MAX = 200 };
bool load_overload(const struct load_result *result, char *out, size_t size);
/* Final answers per second of measured_us. Lost and unsent requests do not count. */
double load_rate(const struct load_result *result);
void load_result_free(struct load_result *result);

/* One request and its answer, blocking: for set-up, audit and resolving outcomes. Any thread.
 * - body: may be NULL; application/json unless headers say otherwise
 * - headers: further header lines, each ending in \r\n; may be ""
 * - *ret_body: the answer's body, malloc()ed, NUL-terminated; the caller frees it; NULL without
 *   memory
 *
 * Returns the HTTP status, or -1 with a message in *ret_body. */
int load_fetch(const struct load_target *target, const char *method, const char *path,
               const char *headers, const char *body, int64_t timeout_ms, char **ret_body);
/* The same. Once *stop is set, before or during the call, it takes at most LOAD_STOPPED_MS more.
 * stop may be NULL. */
int load_fetch_until(const atomic_bool *stop, const struct load_target *target, const char *method,
                     const char *path, const char *headers, const char *body, int64_t timeout_ms,
                     char **ret_body);
/* PUTs an item or account of the service: creates it, or resets it, whatever is there. So If-None-
 * Match: *, and after a 412 If-Match with the version that a GET shows; a few times, if others
 * change it. Otherwise as load_fetch_until(); 200 and 201 are good. */
int load_put(const atomic_bool *stop, const struct load_target *target, const char *path,
             const char *headers, const char *body, int64_t timeout_ms, char **ret_body);

#endif
