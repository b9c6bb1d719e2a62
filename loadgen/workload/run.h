/*
 * One run: one workload under one guard, from creating its resources to the verdict. Every run has
 * its own resources and keys: a random run id is part of their names. So it neither disturbs nor
 * replays an earlier run on the same service.
 */
#ifndef RUN_H
#define RUN_H

#include "history.h"
#include "live.h"
#include "lock_times.h"
#include "options.h"
#include "remote.h"
#include "tally.h"
#include "verdict.h"

enum { RUN_DISAGREEMENTS_MAX = 8 };
enum { RUN_ID_MAX = OPTIONS_RUN_ID_MAX, RUN_BODY_MAX = 400, RUN_KEY_MAX = 64 };

/* The textbook's two withdrawals from one account at the same time, tried on fresh accounts. */
struct textbook {
    int pairs;        /* tried */
    int lost;         /* pairs that lost an update */
    int64_t initial;  /* 1000 */
    int64_t expected; /* 500 */
    int64_t final;    /* of the first pair that lost, else of the last pair */
    struct verdict verdict;
};

/* One figure of a resource: by the service's audit, and by the sum of its ledger rows. */
struct disagreement {
    char resource[80], figure[32];
    int64_t service, own;
};

struct run;

/* What a workload sends and how it is judged. */
struct workload {
    const char *name, *unit; /* "accounts", "changes" */
    const char *heading;     /* of the HTML report: "Balances" */
    bool sells;              /* sells pieces of one item; else it changes balances of accounts */
    enum load_mode mode;     /* unless --mode says otherwise */
    uint64_t (*requests)(const struct options *options); /* unless --requests or --duration do */
    /* Creates the resources. 0, or -1 with run->message. */
    int (*prepare)(struct run *run);
    /* Path and body of one request; a pure function of run and origin. */
    void (*ask)(const struct run *run, uint64_t origin, char path[REMOTE_PATH_MAX],
                char body[RUN_BODY_MAX]);
    /* Path of the item whose stock the live view shows. NULL: none. */
    void (*resource)(const struct run *run, char path[REMOTE_PATH_MAX]);
    /* Path of the n-th read for the history. Any thread. */
    void (*read)(const struct run *run, uint64_t n, char path[REMOTE_PATH_MAX]);
    /* Audit and verdict, after unknown outcomes are resolved. Returns 0, or -1 with message. */
    int (*judge)(struct run *run);
};

/* All workloads, in the order of the reports. */
#define WORKLOAD_MAP(X)                                                                            \
    X(sale)                                                                                        \
    X(accounts)                                                                                    \
    X(transfers)

#define WORKLOAD_DECLARE(name) extern const struct workload workload_##name;
WORKLOAD_MAP(WORKLOAD_DECLARE)
#undef WORKLOAD_DECLARE
extern const struct workload *const workloads[]; /* NULL-terminated */

enum { RUN_PLACE_MAX = 65 /* text of a place in the ledger */ };

struct run {
    const struct workload *workload;
    const struct options *options;
    char id[RUN_ID_MAX]; /* random, or --run-id: part of every name and key of this run */
    char guard[OPTIONS_GUARD_TEXT_MAX];
    bool claims_safe;
    int instances;
    bool lanes;
    bool interrupted;
    bool cut_short; /* a closed load reached options->requests_max before the end of its duration */

    struct history_writer *history;   /* NULL: none is kept */
    char ledger_start[RUN_PLACE_MAX]; /* the end of the ledger before the run; "": its start */
    enum load_mode mode;
    struct tally tally;
    struct load_result load;
    bool has_load;                /* load is filled */
    struct lock_times lock_times; /* of the guard, during the load; counts 0: it has no lock */

    /* the result */
    bool judged;            /* false: there is no audit; message says why */
    struct verdict verdict; /* zeros unless judged; the textbook's pairs have their own */
    bool has_counterexample;
    struct ledger_row counterexample[2];
    /* the first figures that differ between audit and rows; verdict.disagreements counts all */
    struct disagreement disagreements[RUN_DISAGREEMENTS_MAX];
    int n_disagreements;
    uint64_t accepted, refused, failed;
    int64_t initial, expected, actual;  /* sale: pieces; else: sum of all balances */
    struct textbook textbook;           /* pairs 0: not tried */
    const struct threshold *aborted_by; /* ended the load early; NULL: none */

    char message[REMOTE_MESSAGE_MAX]; /* why the run failed or is not judged */
    struct live live;
};

/* Performs a run. history may be NULL. Returns:
 * - 0: *ret has the result of the load and, if judged, a verdict; also when interrupted
 * - -1: there was no load; ret->message says why
 *
 * Free *ret with run_free() in both cases. */
int run_once(const struct options *options, const struct workload *workload,
             const struct remote_service *service, const char *guard,
             struct history_writer *history, struct run *ret);
void run_free(struct run *run);

/* For options->thresholds. False also if the load did not begin, or if this one ended it early. */
bool run_keeps_threshold(const struct run *run, int i, double *ret_value);
bool run_keeps_thresholds(const struct run *run);

/* Judged, and nothing was lost. */
bool run_is_safe(const struct run *run);
/* Requests that were due, never sent and count as errors (load_result.dropped_errors). 0 if the
 * load was interrupted or ended by a broken threshold: that is not the service's fault. */
uint64_t run_dropped(const struct run *run);
/* Safe, and no request failed or was dropped. Reports show it as good. */
bool run_is_well(const struct run *run);
/* "OK", "LOST 4,300", "FAILED 12", "DROPPED 9", "NOT JUDGED": the worst finding, in short. */
char *run_verdict_text(const struct run *run, char *out, size_t size);

/* Kept its claim in a complete run without failed or dropped requests. */
bool run_as_claimed(const struct run *run);

/* Did its load end too early, because it sent options->requests_max requests? Then out (may be
 * NULL) says so. The verdict is about what was sent. */
bool run_cut_short(const struct run *run, char *out, size_t size);

/* Certainly broke its claim, whatever else failed. */
bool run_broke_claim(const struct run *run);

/* "redis-token". A lock inside one process has its instances, on which its claim depends: "mutex
 * (2 instances)". */
char *run_label(const struct run *run, char *out, size_t size);

/* The options of its load. */
struct load_options run_load_options(const struct run *run);

/* For workloads. */
void run_key(const struct run *run, uint64_t origin, char ret[RUN_KEY_MAX]);
/* The request with this key; -1: none of the run. ctx: the run. */
int64_t run_origin(const void *ctx, const char *key);
/* Adds one resource's verdict to a verdict of the run. Keeps its first fork as the
 * counter-example. */
void run_add_verdict(struct run *run, struct verdict *into, const struct verdict *verdict,
                     const struct audit_row *audit);
bool run_stopped(const struct run *run);

/* resolve.c: finds out the unknown outcomes. It asks for the stored answer of the key. If nothing
 * happened, it sends the request again with the same key, until it is decided or patience ends. */
void resolve_unknown(struct run *run);

#endif
