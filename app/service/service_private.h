/* The service's own parts; for service*.c only. */
#ifndef SERVICE_PRIVATE_H
#define SERVICE_PRIVATE_H

#include "close_orders.h"
#include "attempt.h"
#include "inflight.h"
#include "lanes.h"
#include "seams.h"
#include "service.h"

struct service {
    const struct config *config;
    const struct seams *seams;
    db *db;
    struct guards *guards;
    struct keeper *keeper;
    struct inflight *inflight;
    struct lanes *writes; /* all that take locks */
    struct lanes *reads;  /* these never wait behind those */
    struct lanes *audits; /* minutes, where millions of resources are walked through */
    struct lanes *asks;   /* what asks lock servers: guards, the lab's look at a lock */
    struct lanes *probes; /* readiness: asked while all else is stuck */
    struct close_orders *task;
    struct counters counters;
    struct guarded_host host;

    atomic_bool draining, closing;
    atomic_size_t accepted; /* and not yet done */
    pthread_mutex_t mutex;
    pthread_cond_t idle;
};

bool service_is_business(const struct op *op); /* changes stock or balances */
/* The lane for what uses one resource only; NULL: none. */
const char *service_lane_name(const struct service *service, const struct op *op,
                              char name[DB_RESOURCE_MAX + 1]);
size_t service_batch_max(const struct service *service);
/* Takes an answered operation; ctx: the service. */
void service_finish(void *ctx, struct op *op);

/* service_threads.c: false without memory or threads; those that were started end with their lanes.
 */
bool service_open_threads(struct service *service);

#endif
