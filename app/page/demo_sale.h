/*
 * Sales started from the live page, only in a service that was started with --demo: the load
 * generator beside this program's binary is run against this service, once per sale, one after the
 * other, each for DEMO_SECONDS_MAX at most. It ends with the service.
 *
 *   POST /v1/demo/sales  {"sales":[{"guard":"none"},{"guard":"redis-token","lease_ms":3000,
 *                        "watchdog":true,"fence":true,"lanes":false}],"buyers":2000,"stock":100,
 *                        "connections":64,"rate":0} -> 201 {"id":1}; rate 0: all at once; what a
 *                        sale leaves out is as this service is configured; lease_ms, watchdog and
 *                        lanes want --lab. 409 in-flight while one runs
 *   GET  /v1/demo/sales  {"id","state","message","reports"}: state is idle, running, done or
 * failed; message says why it failed; reports are what `loadgen sale --json -` wrote of each sale
 *
 * One per process; all of it for the HTTP side's thread.
 */
#ifndef DEMO_SALE_H
#define DEMO_SALE_H

#include "extra_routes.h"

enum {
    DEMO_SECONDS_MAX = 120,
    DEMO_SALES_MAX = 4,
    DEMO_BUYERS_MAX = 20000, /* and pieces */
    DEMO_CONNECTIONS_MAX = 256,
    DEMO_RATE_MAX = 100000,
    DEMO_REPORT_MAX = 1 << 20 /* bytes kept of what one writes */
};

/* For a service that was started with --demo. */
extern const struct extra_routes demo_routes;

#endif
