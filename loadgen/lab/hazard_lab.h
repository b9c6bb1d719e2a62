/* Talking to a service that runs with --lab: resources, pauses, traces, the audit. Each returns 0,
 * or -1 with what happened in message. */
#ifndef HAZARD_LAB_H
#define HAZARD_LAB_H

#include "hazard.h"
#include "load.h"
#include "verdict.h"

#include <jansson.h>

enum {
    LAB_MESSAGE_MAX = 512,
    LAB_KEY_MAX = 64,
    LAB_TIMEOUT_MS = 20000,
    LAB_POINT_MAX = 32,
    LAB_PATH_MAX = 256
};

int lab_put(const struct load_target *target, const struct hazard *hazard, const char *id,
            bool fence, char *message);
/* A buyer who can pay. */
int lab_put_buyer(const struct load_target *target, const char *id, char *message);

/* The balance of an account. */
int lab_value(const struct load_target *target, const char *id, int64_t *ret, char *message);

/* action: "hold" or "note". */
int lab_pause(const struct load_target *target, const char *point, const char *match,
              const char *action, int64_t count, int *ret_id, char *message);
int lab_let_go(const struct load_target *target, int id, char *message);
/* No pauses, no trace. */
int lab_reset(const struct load_target *target, char *message);

struct lab_pause_state {
    int64_t passed;
    int n_held;
};
int lab_look(const struct load_target *target, int id, struct lab_pause_state *ret, char *message);

/* One moment of a run, on the machine's monotonic clock. */
struct lab_event {
    int64_t t_us, value, fence;
    bool has_value;
    char key[LAB_KEY_MAX], lock[LAB_KEY_MAX], point[LAB_POINT_MAX];
};
/* Fills ret with the last max events at most, oldest first. */
int lab_trace(const struct load_target *target, struct lab_event *ret, int max, int *ret_n,
              char *message);

/* resource: "account:ID" */
int lab_audit(const struct load_target *target, const char *resource, struct audit_row *ret,
              char *message);
/* "reserved", "paid", "closed", ... */
enum { LAB_STATE_MAX = 16 };
int lab_order_state(const struct load_target *target, const char *id, char ret[LAB_STATE_MAX],
                    char *message);
/* Was a change with this key accepted? The answer that is stored. */
int lab_was_accepted(const struct load_target *target, const char *key, bool *ret, char *message);

#endif
