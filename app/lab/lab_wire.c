/* The wire to Redis: the page wishes it cut or whole, its keeper reports which it is. */
#include "answer.h"
#include "lab_private.h"
#include "point.h"

#include <pthread.h>

enum {
    KEEPER_SILENT_MAX_US = 5000000, /* after this silence there is no keeper */
    CUT_MAX_US = 90000000           /* a wish older than this ends: the page may be closed */
};

static struct {
    pthread_mutex_t mutex;
    bool wished, cut;
    int64_t wished_us; /* when */
    int64_t heard_us;  /* last report of the keeper; 0: never */
} wire = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* With the mutex. */
static bool is_kept(void)
{
    return wire.heard_us != 0 && now_us() - wire.heard_us <= KEEPER_SILENT_MAX_US;
}

/* With the mutex. */
static bool is_wished(void)
{
    return wire.wished && now_us() - wire.wished_us <= CUT_MAX_US;
}

/* With the mutex. */
static void answer(int status, struct op *op)
{
    op_answer(op, status, "{\"wished\":%s,\"cut\":%s}", is_wished() ? "true" : "false",
              !is_kept() ? "null"
              : wire.cut ? "true"
                         : "false");
}

void lab_wire_show(struct op *op)
{
    pthread_mutex_lock(&wire.mutex);
    answer(200, op);
    pthread_mutex_unlock(&wire.mutex);
}

void lab_wire_take(const char *body, size_t bytes, struct op *op)
{
    int wished = -1, cut = -1;
    json_t *json = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, NULL);
    const bool good = json_unpack_ex(json, NULL, JSON_STRICT, "{s?b, s?b}", "wished", &wished,
                                     "cut", &cut) == 0 &&
                      (wished < 0) != (cut < 0);
    json_decref(json);
    if (!good) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "the page says {\"wished\":true|false}, the wire's keeper {\"cut\":true|false}");
        return;
    }
    pthread_mutex_lock(&wire.mutex);
    if (cut >= 0) {
        wire.cut = cut;
        wire.heard_us = now_us();
    }
    if (wished >= 0 && !is_kept()) {
        op_problem(op, PROBLEM_UNAVAILABLE,
                   "nobody holds the wire between this service and Redis: `loadgen serve` does "
                   "(make serve)");
    } else {
        if (wished >= 0) {
            wire.wished = wished;
            wire.wished_us = now_us();
        }
        answer(201, op);
    }
    pthread_mutex_unlock(&wire.mutex);
}
