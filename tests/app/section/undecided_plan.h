/*
 * For tests of unknown outcomes: a real store whose plan decides how a commit is executed, answered
 * and settled. Each release of a lock is counted before it is sent.
 */
#ifndef TESTS_APP_UNDECIDED_PLAN_H
#define TESTS_APP_UNDECIDED_PLAN_H

#include "engine.h"
#include "lockkit.h"
#include "service_private.h"
#include "service_rig.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* What happens after a commit that is not answered. */
#define OUTCOME_MAP(X)                                                                             \
    X(COMMITTED, "committed, found at once")                                                       \
    X(UNDONE, "undone, found at once")                                                             \
    X(LATE, "undecided, then committed")                                                           \
    X(NEVER, "undecided, then undone")                                                             \
    X(SILENT, "nobody to ask, then found committed")

enum outcome {
#define OUTCOME_ENUM(name, text) name,
    OUTCOME_MAP(OUTCOME_ENUM)
#undef OUTCOME_ENUM
        OUTCOMES
};

static const char *const outcome_texts[] = {
#define OUTCOME_TEXT(name, text) text,
    OUTCOME_MAP(OUTCOME_TEXT)
#undef OUTCOME_TEXT
};

static struct {
    const db_engine *real;
    db_engine engine;
    enum outcome outcome;
    atomic_bool armed, undecided;
    atomic_bool always;         /* every commit is unanswered, not only the next one */
    atomic_int releases, early; /* early: while the transaction was undecided */
    atomic_size_t jobs;         /* in the unanswered commit */
} plan;

static inline bool is_committed(enum outcome outcome)
{
    return outcome == COMMITTED || outcome == SILENT;
}

static inline void run(db *store, db_job *jobs, size_t n)
{
    if (!plan.always && !atomic_exchange(&plan.armed, false)) {
        plan.real->run(store, jobs, n);
        return;
    }
    atomic_store(&plan.jobs, n);
    atomic_store(&plan.undecided, plan.outcome >= LATE);
    if (is_committed(plan.outcome))
        plan.real->run(store, jobs, n);
    for (size_t i = 0; i < n; i++)
        jobs[i].status = DB_UNKNOWN;
}

static inline db_status settle(db *store, const db_commit_id *commit, int64_t wait_ms,
                               db_error *error)
{
    (void)store;
    (void)commit;
    (void)wait_ms;
    if (!atomic_load(&plan.undecided))
        return DB_OK;
    return db_fail(error, plan.outcome == SILENT ? DB_UNAVAILABLE : DB_BUSY, "planned");
}

static inline void watch_release(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    if (strcmp(point, LK_POINT_RELEASE) != 0 || strncmp(key, "lock:", 5) != 0)
        return;
    atomic_fetch_add(&plan.releases, 1);
    if (atomic_load(&plan.undecided))
        atomic_fetch_add(&plan.early, 1);
}

/* Call it before the service starts. */
static inline void watch_releases(void)
{
    static lk_env env;
    env = *lk_env_system();
    env.point = watch_release;
    rig.seams.env = &env;
}

/* The linker replaces db_open() by this function (Makefile). So the store follows the plan before
 * any thread of the service uses it. */
db_status __real_db_open(const db_options *options, db **ret, db_error *error);
db_status __wrap_db_open(const db_options *options, db **ret, db_error *error);
db_status __wrap_db_open(const db_options *options, db **ret, db_error *error)
{
    db_status status = __real_db_open(options, ret, error);
    if (status != DB_OK)
        return status;
    plan.real = (*ret)->engine;
    plan.engine = *plan.real;
    plan.engine.run = run;
    plan.engine.settle = settle;
    (*ret)->engine = &plan.engine;
    return DB_OK;
}

/* Call it before the plan is armed. */
static inline void plan_from_now(enum outcome outcome)
{
    plan.outcome = outcome;
    atomic_store(&plan.armed, false);
    atomic_store(&plan.jobs, 0);
    atomic_store(&plan.releases, 0);
    atomic_store(&plan.early, 0);
    atomic_store(&plan.undecided, false);
}

static inline void wait_until_given_back(void)
{
    while (!rig_metrics_contain("\nseckill_undecided_locks 0\n"))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

#endif
