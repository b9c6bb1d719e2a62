/*
 * The sums of many rounds, which grow from run to run in a JSON file. Files of several machines can
 * be added up.
 */
#ifndef TORTURE_SUMS_H
#define TORTURE_SUMS_H

#include "torture_judge.h"
#include "torture_plan.h"

/* Name in the JSON, and in words. */
#define TORTURE_SUM_MAP(X)                                                                         \
    X(rounds, "rounds")                                                                            \
    X(seconds, "seconds")                                                                          \
    X(acknowledged, "acknowledged answers")                                                        \
    X(attempts, "requests sent")                                                                   \
    X(strikes, "faults that struck")                                                               \
    X(bitten, "faults that bit")                                                                   \
    X(service_kills, "kills of the service")                                                       \
    X(redis_kills, "kills of Redis")                                                               \
    X(zookeeper_kills, "kills of ZooKeeper")                                                       \
    X(memcached_kills, "kills of memcached")                                                       \
    X(postgres_kills, "kills of PostgreSQL")                                                       \
    X(double_kills, "double kills")                                                                \
    X(pauses, "instances paused")                                                                  \
    X(paused_holders, "of these while a lock stood")                                               \
    X(lost_locks, "locks flushed, deleted or evicted")                                             \
    X(sentinel_failovers, "failovers of Sentinel")                                                 \
    X(cluster_failovers, "failovers of a cluster")                                                 \
    X(zookeeper_failovers, "failovers of ZooKeeper")                                               \
    X(archives, "archives that ended")                                                             \
    X(archives_killed, "archives killed")                                                          \
    X(archives_failed, "archives that ended with an error: their server was disturbed")            \
    X(archives_resumed, "archives that finished a part of one before")                             \
    X(safe_rounds, "rounds in which no update may be lost")                                        \
    X(trusting_rounds, "of these by the lock alone, without a fence")                              \
    X(weak_rounds, "rounds of weak settings")                                                      \
    X(weak_lost, "of these lost an update")                                                        \
    X(undecided_checks, "checks of a history left undecided")                                      \
    X(violations, "violations")                                                                    \
    X(failed_rounds, "failed rounds")

struct torture_sums {
#define TORTURE_SUM_FIELD(name, text) int64_t name;
    TORTURE_SUM_MAP(TORTURE_SUM_FIELD)
#undef TORTURE_SUM_FIELD
    int64_t faults[TORTURE_FAULTS]; /* that bit, of each kind */
    uint64_t next_seed;
};

/* A file that is not there is empty. Returns 0, or -1 after a message on stderr. */
int torture_sums_add_file(struct torture_sums *sums, const char *path);
/* Returns 0, or -1 after a message. */
int torture_sums_write(const struct torture_sums *sums, const char *path);
/* The verdict first. */
void torture_sums_print(const struct torture_sums *sums, FILE *out);

void torture_sums_count(struct torture_sums *sums, const struct torture_settings *is,
                        enum torture_fault fault);
/* Leaders that were seen to be replaced. */
void torture_sums_failovers(struct torture_sums *sums, const struct torture_settings *is, int n);
void torture_sums_verdict(struct torture_sums *sums, const struct torture_settings *is,
                          const struct torture_verdict *verdict);

#endif
