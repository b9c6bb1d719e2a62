/*
 * What the hazard lab can do to a service that was started with --lab: hold or kill it at a named
 * point, and see which points were passed. It reaches into the service through struct seams
 * (seams.h) and a table of routes (extra_routes.h), which main hands over. Without --lab the
 * service has neither. "make LAB=0" builds it without these files.
 *
 *   POST   /v1/lab/pauses       {"point":"read","match":"A-1","action":"hold","after":0,"count":1}
 *                               as application/json -> 201 {"id":1}
 *                               A request that matches and passes the point from now on is held
 *                               there ("hold", `count` of them, when `after` others have passed),
 *                               or ends the process ("kill": SIGKILL), or is counted ("note")
 *   GET    /v1/lab/pauses       {"pauses":[{"id","point","match","action","passed","n_held",
 *                               "held":["A-1"],"value","fence"}]}: value and fence of the request
 *                               that passed last
 *   POST   /v1/lab/pauses/{id}  lets the held requests go on; the next one is held again
 *   DELETE /v1/lab/pauses/{id}  the same, and forgets the pause; without id: all pauses
 *   POST   /v1/lab/terms        {"match":"A-1","lease_ms":3000,"watchdog":false,"wait_ms":600000,
 *                               "lanes":true} -> 201: the locks of requests with this
 *                               Idempotency-Key or X-Request-Id, or on this resource ("item:1"),
 *                               have this lease. It is renewed only with "watchdog":true. A request
 *                               waits at most so long from the point "waiting" on. 0 or left out:
 *                               as configured. "lanes", only of a resource: its requests are
 *                               served in batches, or one by one. The last 64 are kept
 *   GET    /v1/lab/locks/item:1 {"guard","key","holders","waiters","token","left_ms","fence",
 *                               "last_fence"}: as the lock server says ("key" is "" where the guard
 *                               is no lock, "left_ms" null where there is no lease), and the newest
 *                               fence that the row of the item or account has seen. 404: no row
 *   DELETE /v1/lab/locks/item:1 frees it, held or not, as a lock server that forgets:
 *                               {"was_held":true}. In the trace: lock.freed, without a key
 *   POST   /v1/lab/wire         {"wished":true} -> 201: asks for a cut of the connection to Redis;
 *                               false: for its repair. A proxy makes them (`loadgen serve`). It
 *                               posts {"cut":false} or {"cut":true} at least every 5 s, and reads
 *                               the wish in the answer. A wish ends after 90 s. 503 unavailable:
 *                               there is no proxy
 *   GET    /v1/lab/wire         {"wished","cut"}, as the POSTs answer; null: there is no proxy
 *   GET    /v1/lab/trace        {"instance","dropped","events":[{"t_us","point","key","lock",
 *                               "value","fence"}]}, t_us on the machine's monotonic clock
 *   DELETE /v1/lab/trace        forgets the events
 *
 * A pause matches by Idempotency-Key, X-Request-Id, user, the resource ("item:1", at an order's, a
 * stock change's and a balance's own points), or the key of the lock ("lock:item:1", at points of
 * the lock and in threads that run no request, such as the watchdog's); "" matches all. Points are
 * those of an operation ("read", see OP_POINT_MAP) and of the lock ("lock.renew", see LK_POINT_*).
 * No request can be held at "submitted": the thread that passes it serves these routes.
 */
#ifndef LAB_H
#define LAB_H

#include "config.h"
#include "extra_routes.h"

struct seams;

struct lab {
    const struct seams *seams; /* for service_open() */
    const struct extra_routes *routes;
};

/* False: this program was built without the lab (make LAB=0). */
extern const bool lab_is_built;
/* False, after printing why to stderr: the settings name an unknown mistake (--lab-slip), or this
 * program was built without the lab. */
bool lab_is_possible(const struct config *config);

/* For a service with config->lab: the points, the mistake config->lab_slip, and for the locks a
 * clock that is config->lab_clock_ms ahead. Once per process. config is borrowed. NULL: this
 * program was built without the lab. */
const struct lab *lab_open(const struct config *config);

#endif
