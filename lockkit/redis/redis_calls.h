/* Commands under way on a connection (redis_mux.h), in a queue threaded through them; and who
 * waits for them. No locks. */
#ifndef LOCKKIT_REDIS_CALLS_H
#define LOCKKIT_REDIS_CALLS_H

#include "event_set.h"
#include "redis_mux.h"
#include "spin.h"

/* One command under way, on its caller's stack. */
typedef struct lk_redis_request {
    lk_redis_reply *reply;
    lk_status status; /* as lk_redis_mux_run() returns it */
    lk_redis_encoded command;
    int flags;
    struct lk_redis_caller *caller; /* who waits for it */
    struct lk_redis_request *next;
} lk_redis_request;

/* Calls in order of arrival. */
struct requests {
    lk_redis_request *head, **tail;
    size_t n;
};

static inline void requests_init(struct requests *requests)
{
    *requests = (struct requests){.tail = &requests->head};
}

static inline void requests_add(struct requests *requests, lk_redis_request *request)
{
    request->next = NULL;
    *requests->tail = request;
    requests->tail = &request->next;
    requests->n++;
}

static inline lk_redis_request *requests_take(struct requests *requests)
{
    lk_redis_request *request = requests->head;
    requests->head = request->next;
    if (requests->head == NULL)
        requests->tail = &requests->head;
    requests->n--;
    return request;
}

static inline void requests_append(struct requests *requests, struct requests *others)
{
    if (others->n == 0)
        return;
    *requests->tail = others->head;
    requests->tail = others->tail;
    requests->n += others->n;
    requests_init(others);
}

/* Waits for one request or several, all on its stack, until it is to combine or all are answered.
 */
struct lk_redis_caller {
    uint32_t bell;
    atomic_bool combine;
    _Atomic size_t unanswered;
};

/* The first caller of a batch is called alone, to combine, the others when they are answered; those
 * of the next batches queue up meanwhile. */
enum { BELL_FIRST = 1, BELLS_FIRST = 0x55555555 /* of sixteen batches */ };

static inline uint32_t bell_of_others(uint32_t bell)
{
    return bell & BELLS_FIRST ? bell << 1 : bell;
}

static inline uint32_t bell_of_next_first(uint32_t bell)
{
    uint32_t next = bell_of_others(bell) << 1;
    return next != 0 ? next : BELL_FIRST;
}

/* True: it is to combine. Whenever others are told, it will not be long: it spins anew. */
static inline bool caller_sleep(struct lk_redis_caller *caller, lk_event_set *bells, lk_spin *spin)
{
    uint32_t began = lk_event_set_count(bells);
    lk_spinning spinning = lk_spin_begin(spin);
    for (;;) {
        uint32_t rung = lk_event_set_count(bells);
        bool combine = atomic_load(&caller->combine);
        if (combine || atomic_load(&caller->unanswered) == 0) {
            lk_spin_found(&spinning);
            return combine;
        }
        if (rung != began)
            spinning = lk_spin_begin(spin);
        began = rung;
        if (!lk_spin_on(&spinning))
            lk_event_set_wait(bells, rung, caller->bell);
    }
}

#endif
