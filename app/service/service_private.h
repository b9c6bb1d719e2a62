/* Between the files of the service. */
#ifndef SERVICE_PRIVATE_H
#define SERVICE_PRIVATE_H

#include "attempt.h"
#include "crowd.h"
#include "inflight.h"
#include "lanes.h"
#include "seams.h"
#include "service.h"

struct service {
    const struct config *config;
    const struct business *business;
    const struct seams *seams;
    db *db;
    struct guards *guards;
    struct keeper *keeper;
    struct inflight *inflight;
    struct crowd *crowd;
    struct lanes *writes; /* operations that take locks */
    struct lanes *reads;  /* operations that take none: they never wait behind the writes */
    struct lanes *audits; /* these take minutes for millions of resources */
    struct lanes *asks;   /* operations that ask lock servers: guards, the lab's look at a lock */
    struct lanes *probes; /* readiness, which must answer when everything else is stuck */
    struct tasks *tasks;
    struct counters counters;

    atomic_bool draining, closing;
    atomic_size_t accepted; /* and not yet done */
    atomic_size_t audits_accepted;
    pthread_mutex_t mutex;
    pthread_cond_t idle;
};

/* A thread that writes. */
struct writer {
    struct service *service;
    struct section *sections; /* the first one for single lanes and for operations without a lane */
    size_t n_sections;
};

bool service_is_business(const struct op *op); /* changes stock or balances */
/* The name of op's lane: its resource. NULL: lanes are off for it, or not for its kind (op.h).
 * Reads of an item always have one: to count what was sold may take long, so one item holds at most
 * one reader, and who waits meanwhile shares the next read. */
const char *service_lane_name(const struct service *service, const struct op *op,
                              char name[DB_RESOURCE_MAX + 1]);
size_t service_batch_max(const struct service *service);
/* Counts an answered operation and hands it back to its client. */
void service_finish(struct service *service, struct op *op);

/* service_threads.c. False: no memory or threads. Threads that were started end with their lanes.
 */
bool service_open_threads(struct service *service);

/* serve_lanes.c: n operations of one lane, and while more of them wait, further batches under the
 * same lock, --lane-turns in all, so that other instances get their turns. must_not_wait: it waits
 * for no lock. Returns how many operations are postponed, at the beginning of ops; none if it may
 * wait. */
size_t serve_lane(struct writer *writer, const char *lane, struct op **ops, size_t n,
                  bool must_not_wait);
/* serve_lanes.c: the operations of n lanes, each with its section of the writer's, operation set:
 * one snapshot, one round trip for the locks of one guard, one commit if the store can. It waits
 * for no lock; parts tell which operations are postponed. Fences must be the locks' own. */
void serve_lanes(struct writer *writer, struct lanes_part *parts, size_t n);

#endif
