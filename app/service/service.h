/*
 * The service behind the HTTP side: it takes operations and answers them.
 * Between the two stands nothing but this header and op.h.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "config.h"
#include "op.h"

#include <stdio.h>

struct service;

/* Opens store and guards, starts workers, readers and the scheduled task. config is borrowed until
 * service_close(). Returns 0, or -1 after printing why to stderr. */
int service_open(const struct config *config, struct service **ret);

/* Queues op. True: op->done(op) will be called once, from another thread. False: not taken;
 * op->answer holds the problem (overloaded, in-flight, draining) and done() is not called.
 * Never blocks. Any thread. */
bool service_submit(struct service *service, struct op *op);

/* No new operations from now on (service_submit answers draining); returns when all accepted ones
 * are done, or after timeout_ms: false. */
bool service_drain(struct service *service, int64_t timeout_ms);

/* For lessons, before service_open(): another way to do this kind of operation, which changes
 * something. */
struct operation;
void service_use(enum op_kind kind, const struct operation *operation);

/* Likewise: asked for each resource ("item:1") whether its operations are served in lanes: 1, 0, or
 * -1: as configured. Any thread. */
void service_set_lanes(int (*wanted)(const char *resource));

/* Stops the threads, closes guards and store. */
void service_close(struct service *service);

/* Appends the service's metrics in Prometheus text format. */
void service_metrics(struct service *service, FILE *out);

#endif
