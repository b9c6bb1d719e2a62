/* A private Redis Cluster for a test program, or for each of its tests. */
#ifndef TEST_CLUSTER_RIG_H
#define TEST_CLUSTER_RIG_H

#include "sandbox.h"

static struct sandbox *sandbox;
static struct sandbox_cluster cluster;

static inline int open_cluster(void **state)
{
    (void)state;
    return sandbox_open(&sandbox) == 0 ? sandbox_cluster(sandbox, false, &cluster) : -1;
}

/* Each master with a replica. */
static inline int open_replicated_cluster(void **state)
{
    (void)state;
    return sandbox_open(&sandbox) == 0 ? sandbox_cluster(sandbox, true, &cluster) : -1;
}

static inline int close_cluster(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

#endif
