/*
 * Sales started from the live page, in a service that was started with --demo. Each sale runs the
 * load generator beside this program's binary against this service, for at most DEMO_SECONDS_MAX.
 * The sales of one request run one after the other, or together. They end with the service.
 *
 *   POST /v1/demo/sales  {"sales":[{"guard":"none"},{"guard":"redis-token","run_id":"my-run",
 *                        "lease_ms":3000,"watchdog":true,"fence":true,"lanes":false}],
 *                        "buyers":2000,"stock":100,"connections":64,"rate":0,
 *                        "together":false,"spread":false} -> 201 {"id":1}
 *                        409 in-flight while a sale runs
 *
 *   GET  /v1/demo/sales  {"id","state","message","instances","together","spread","buyers","stock",
 *                        "sales":[{"guard",...,"state","message"}],"reports","terms"}
 *
 *   DELETE /v1/demo/sales  ends the load generators that run; their sales have failed
 *
 * - rate 0: all buyers at once.
 * - run_id: the item is sale-RUN_ID. If it is missing, loadgen makes one.
 * - lease_ms, watchdog and lanes need --lab. A missing value is as the service is configured.
 * - together: all sales start at once. If not, a sale that fails is the last one.
 * - spread: over this instance and those of --demo-peers. instances: how many these are.
 * - state: idle, running, done or failed; of one sale also queued. message says why it failed.
 * - terms: of the sale that runs, as the POST has them; missing when sales run together.
 * - reports: the output of `loadgen sale --json -`, for each sale that is done.
 *
 * One per process. Only the HTTP thread uses it.
 */
#ifndef DEMO_SALE_H
#define DEMO_SALE_H

#include "extra_routes.h"

enum {
    DEMO_SECONDS_MAX = 120,
    DEMO_SALES_MAX = 24,
    DEMO_BUYERS_MAX = 20000, /* and pieces */
    DEMO_CONNECTIONS_MAX = 256,
    DEMO_RATE_MAX = 100000,
    DEMO_REPORT_MAX = 1 << 20 /* bytes of one report */
};

/* For a service that was started with --demo. peers: URLs of further instances on the same store,
 * separated by commas; borrowed. */
const struct extra_routes *demo_open(const char *peers);

#endif
