/* One measurement of a lock: threads that lock and unlock as fast as they can. Behind lockkit bench
 * and tests/bench/bench_locks.c. */
#ifndef LOCKKIT_CMD_MEASURE_H
#define LOCKKIT_CMD_MEASURE_H

#include "lockkit.h"

#include <signal.h>

enum { MEASURE_THREADS_MAX = 256 };

struct measure_plan {
    const char *guard, *endpoints;
    int threads;
    int keys; /* thread i wants key i % keys; as many as threads: each has its own */
    int each; /* 0: one lock at a time, waiting for it. Else each thread takes so many at a time by
                 lk_try_each(), up to LK_EACH_MAX: its own, so that keys is threads * each */
    int64_t hold_us, duration_ms;
    lk_mode mode;
    uint32_t permits; /* 0: one */
    bool local_queue; /* lk_options of these names */
    int32_t local_handovers;
    int64_t spin_us;          /* lk_options.spin_us */
    const sigset_t *ended_by; /* signals that end it early, blocked by the caller; NULL: none */
};

struct measure_result {
    uint64_t pairs;          /* of acquire and release */
    uint64_t failures;       /* acquires that were not granted, releases that were not ours */
    lk_status first_failure; /* LK_OK: none */
    uint64_t overlaps;       /* grants of a key while more than `permits` others had it */
    int ended_by;            /* the signal, or 0 */
    double seconds;          /* it took, until the last lock was released */
    double pairs_per_s;
    double hand_overs_per_s; /* grants to another thread than the key's last one */
    double local_per_s;      /* those of which the server was told nothing */
    double jain;             /* fairness over threads: 1 all got as many, 1/threads one got all
                                (Jain, Chiu, Hawe: DEC-TR-301, 1984) */
    double wait_p50_us, wait_p99_us, wait_max_us; /* in lk_acquire() */
    double commands_per_pair;                     /* sent to lock servers */
};

/* Opens a client of its own, shared by all threads. Uses keys lock:bench:N, the same each time, as
 * fence counters stay for ever. Returns LK_OK, or as lk_open() or lk_ping() with the message in
 * *error; LK_NO_MEMORY. Once its time is over, or a signal of ended_by has ended it, those are
 * unblocked: another does what it always does. */
lk_status measure(const struct measure_plan *plan, struct measure_result *ret, lk_error *error);

#endif
