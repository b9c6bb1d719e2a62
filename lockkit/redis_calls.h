/* Commands under way on a connection (redis_pipe.h), in a queue threaded through them. No locks. */
#ifndef LOCKKIT_REDIS_CALLS_H
#define LOCKKIT_REDIS_CALLS_H

#include "redis_pipe.h"

/* Calls in order of arrival. */
struct calls {
    lk_redis_call *head, **tail;
    size_t n;
};

static inline void calls_init(struct calls *calls)
{
    *calls = (struct calls){.tail = &calls->head};
}

static inline void calls_add(struct calls *calls, lk_redis_call *call)
{
    call->next = NULL;
    *calls->tail = call;
    calls->tail = &call->next;
    calls->n++;
}

static inline lk_redis_call *calls_take(struct calls *calls)
{
    lk_redis_call *call = calls->head;
    calls->head = call->next;
    if (calls->head == NULL)
        calls->tail = &calls->head;
    calls->n--;
    return call;
}

static inline void calls_append(struct calls *calls, struct calls *others)
{
    if (others->n == 0)
        return;
    *calls->tail = others->head;
    calls->tail = others->tail;
    calls->n += others->n;
    calls_init(others);
}

/* The first that a caller waits for; NULL: all were posted. */
static inline lk_redis_call *calls_first_waiting(const struct calls *calls)
{
    lk_redis_call *call = calls->head;
    while (call != NULL && call->answered != NULL)
        call = call->next;
    return call;
}

#endif
