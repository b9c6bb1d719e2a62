/* Between the lab's files. */
#ifndef LAB_PRIVATE_H
#define LAB_PRIVATE_H

#include "lab.h"
#include "seams.h"

#include <jansson.h>

enum {
    LAB_PAUSES_MAX = 128,
    LAB_TERMS_MAX = 64, /* the oldest make room */
    LAB_HELD_MAX = 16,  /* names shown of those held at one pause */
    LAB_EVENTS_MAX = 4096,
    LAB_POINT_MAX = 31,
    LAB_KEY_MAX = 63 /* bytes kept of a key, for showing */
};

/* A request, or a lock, at a point. */
struct lab_passage {
    const char *point, *key, *request_id, *user; /* "" where there is none */
    const char *lock;                            /* "" at an operation's points */
    const char *resource;                        /* "item:1"; "" where there is none */
    int64_t value, fence;                        /* value: only with has_value */
    bool has_value;
    struct section *section; /* of the operation; NULL at a lock's points */
};

/* lab_pause.c. A passage is counted, held until it is released, or ends the process. A held request
 * has no snapshot open: in a file of several processes that would stop all commits. */
void lab_pause_pass(const struct lab_passage *passage);
/* The pause's id, or 0 when there are too many. after: so many that match pass before it acts;
 * count: so many are held. */
enum lab_action { LAB_HOLD, LAB_KILL, LAB_NOTE };
int lab_pause_add(const char *point, const char *match, enum lab_action action, int64_t after,
                  int64_t count);
/* The requests held there go on. forget: the pause ends. id 0: all pauses. False: there is no such
 * pause. */
bool lab_pause_let_go(int id, bool forget);
json_t *lab_pause_list(void); /* array; NULL without memory */

/* lab_routes.c: config is borrowed. */
const struct extra_routes *lab_routes(const struct config *config);

/* lab.c: "read" of OP_READ. */
extern const char *const lab_point_names[OP_POINT_COUNT];

/* lab_terms.c */
struct lab_terms {
    char match[OP_KEY_MAX + 1];
    int64_t lease_ms, wait_ms; /* 0: as configured */
    bool watchdog;             /* renews lease_ms */
    int lanes;                 /* 1, 0; -1: as configured */
};
void lab_terms_set(const struct lab_terms *terms);
/* Of the first that has one of these names ("" is none); match "": nobody has set any. */
struct lab_terms lab_terms_of(const char *key, const char *request_id, const char *resource);

/* lab_wire.c: answers GET and POST of the wire. */
void lab_wire_show(struct op *op);
void lab_wire_take(const char *body, size_t bytes, struct op *op);

/* lab_lock.c: answers OP_GET_LOCK and OP_FREE_LOCK. */
struct queries;
void lab_query_lock(const struct queries *queries, struct op *op);

/* lab_trace.c */
void lab_trace_add(const struct lab_passage *passage);
void lab_trace_clear(void);
json_t *lab_trace_list(const char *instance); /* object; NULL without memory */

#endif
