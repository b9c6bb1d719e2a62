/* The service in the test's own process, on a real store and a private Redis. Operations are
 * submitted as the HTTP side does it. */
#ifndef SERVICE_RIG_H
#define SERVICE_RIG_H

#include "point.h"
#include "seams.h"
#include "service.h"
#include "sandbox.h"

#include <stddef.h>

/* One per test binary. */
extern struct service_rig {
    struct sandbox *sandbox;
    struct sandbox_server *redis;
    struct config config; /* config and seams: change them before rig_start() */
    struct seams seams;   /* at_point belongs to the rig, for gates and meetings */
    struct service *service;
    int databases; /* made so far */
} rig;

/* Group set-up and tear-down of cmocka: sandbox and Redis. */
int rig_open(void **state);
int rig_close(void **state);

/* Sets config to its defaults, with a new database and this default guard. */
void rig_reset(const char *guard);
int rig_start(void); /* 0 or -1 */
void rig_stop(void); /* waits for what was accepted */
/* Tear-down of a test: clears gates and meeting, stops the service. */
int rig_clear(void **state);

/* -- operations ------------------------------------------------------------------------------- */

/* Fills op with a request. The key is made from number, which must be unique within a test. */
struct op *op_make(struct op *op, enum op_kind kind, const char *id, const char *other,
                   int64_t amount, int number);
struct op *op_order(struct op *op, int number); /* of one piece of item "1", for user "u1" */
struct op *op_put_item(struct op *op, const char *id, int64_t stock, const char *guard);
struct op *op_put_account(struct op *op, const char *id, int64_t balance, const char *guard);

/* Submits all and waits until each is answered. A refusal by submit is an answer. */
void ops_run(struct service *service, struct op *ops, size_t n);
/* The same in two steps. */
void ops_submit(struct service *service, struct op *ops, size_t n);
void ops_wait(struct op *ops, size_t n);
int op_run(struct service *service, struct op *op); /* runs one; returns its HTTP status */

size_t ops_count(const struct op *ops, size_t n, int status);
size_t ops_count_problem(const struct op *ops, size_t n, enum problem problem);

/* -- results ----------------------------------------------------------------------------------- */

/* The integer of this name in the JSON body; INT64_MIN if there is none. */
int64_t answer_number(const struct op *op, const char *name);
/* Copies the text of this name to ret. */
bool answer_text(const struct op *op, const char *name, char *ret, size_t size);

/* A number in the service's answer to this read of id; the answer must be 200. rig_stock(): the
 * stock of item "1". */
int64_t rig_number(enum op_kind kind, const char *id, const char *name);
int64_t rig_stock(void);
bool rig_metrics_contain(const char *text);

/* A number of the audit's row of resource ("lost_updates"); "n_forks": how many forks it shows. */
int64_t audit_number(struct service *service, const char *resource, const char *name);
bool audit_is_clean(struct service *service); /* of all resources; prints it otherwise */

/* -- points ------------------------------------------------------------------------------------ */

/* Holds the operation with this request id at a point until gate_open(). */
enum { GATES = 3 };
void gate_set(int gate, enum op_point point, const char *request_id);
void gate_wait(int gate); /* until the operation stands there */
void gate_open(int gate);

/* Makes n operations wait for each other at a point, so that all have read before one writes. Only
 * for guards that let n operations be there at once. */
void meeting_set(enum op_point point, int n);
void points_clear(void);

#endif
