/*
 * The service behind the HTTP side: it takes operations and answers them. The HTTP side knows only
 * this header and op.h.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "config.h"
#include "op.h"

#include <stdio.h>

struct service;

/* Opens store and guards; starts workers, readers and the scheduled task. business is what the
 * operations do. seams is NULL except in the lab and in tests. All three are borrowed until
 * service_close(). Returns 0, or -1 after printing why to stderr. */
struct business;
struct seams;
int service_open(const struct config *config, const struct business *business,
                 const struct seams *seams, struct service **ret);

/* Queues op. True: op->done(op) will be called once, from another thread. False: not taken;
 * op->answer holds the problem (overloaded, in-flight, draining) and done() is not called.
 * Never blocks. Any thread. */
bool service_submit(struct service *service, struct op *op);

/* Ends what waits for clients that have gone: operations with op->abandoned that no thread has
 * taken yet are done at once, without effect; a running audit ends soon. It walks through all that
 * wait. Any thread, after op->abandoned was set. */
void service_withdraw(struct service *service);

/* No new operations from now on (service_submit answers draining); returns when all accepted ones
 * are done. Audits get a second beyond the last other operation. After timeout_ms and two seconds
 * at most: false; what no thread has taken by then is answered draining, audits end. */
bool service_drain(struct service *service, int64_t timeout_ms);

/* Stops the threads, closes guards and store. No service_submit() may run any more, not even one
 * that is refused: the HTTP side stops first. Asserted. */
void service_close(struct service *service);

/* Appends the service's metrics in Prometheus text format. */
void service_metrics(struct service *service, FILE *out);

#endif
