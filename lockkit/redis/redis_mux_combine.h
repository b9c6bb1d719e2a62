/*
 * Inside the shared connection (redis_mux.h): what the callers (redis_mux.c) and the combiner
 * (redis_mux_combine.c) share.
 *
 * The combiner has one batch, which it has written and reads. Meanwhile another caller may write
 * the next batch ahead. It becomes the combiner's batch when the first one is answered. If it is
 * still being written at that moment, its writer becomes the combiner. So nobody waits for a
 * writer, and nobody closes a connection that another thread writes to.
 */
#ifndef LOCKKIT_REDIS_MUX_COMBINE_H
#define LOCKKIT_REDIS_MUX_COMBINE_H

#include "event_set.h"
#include "redis_mux.h"
#include "redis_topology.h"
#include "spin.h"

#include <pthread.h>

enum { LK_REDIS_WAIT_COMMAND_MAX = 64 };

/* A thread that waits for one request or several. All stand on its stack. */
struct lk_redis_caller {
    uint32_t event;
    atomic_bool combine; /* it is to combine */
    _Atomic size_t unanswered;
};

/* One command under way. */
typedef struct lk_redis_request {
    lk_redis_reply *reply;
    lk_status status; /* as lk_redis_mux_run() returns it */
    lk_redis_encoded command;
    int flags;
    struct lk_redis_caller *caller;
    struct lk_redis_request *next;
} lk_redis_request;

/* -- a list of requests, in order of arrival --------------------------------------------------- */

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

/* -- whom a wake-up is for -------------------------------------------------------------------- */

/* The first caller of a batch is woken alone, to combine. The others are woken when they are
 * answered. The bits of sixteen batches are told apart. */
enum { EVENT_FIRST = 1, EVENTS_FIRST = 0x55555555 };

static inline uint32_t event_of_others(uint32_t event)
{
    return event & EVENTS_FIRST ? event << 1 : event;
}

static inline uint32_t event_of_next_first(uint32_t event)
{
    uint32_t next = event_of_others(event) << 1;
    return next != 0 ? next : EVENT_FIRST;
}

/* -- the shared connection -------------------------------------------------------------------- */

/* Commands that are written together and answered in the same order. */
struct batch {
    struct requests requests;
    int64_t deadline_us; /* of its last answer */
    bool counting;       /* WAIT stands at its end */
    lk_status written;   /* as lk_redis_connection_write() returned it */
};

/* The batch that is written ahead. */
enum ahead {
    AHEAD_NONE,
    AHEAD_WRITING,
    AHEAD_WRITTEN,
    AHEAD_AWAITED /* being written; its writer then is the combiner */
};

struct lk_redis_mux {
    const lk_context *context;
    lk_redis_topology *topology; /* says where the connection goes */
    int64_t timeout_us, replicas_us;
    char wait_command[LK_REDIS_WAIT_COMMAND_MAX]; /* "WAIT replicas replicas_ms" */

    lk_event_set event_set; /* wake the callers */
    lk_spin spin;           /* of the callers, before they sleep */
    pthread_mutex_t mutex;  /* guards the next five */
    struct requests queue;  /* not yet written */
    uint32_t event;         /* of the next caller */
    bool busy;              /* there is a combiner */
    enum ahead ahead_is;
    char last_error[LK_MESSAGE_MAX];

    /* Owned by the thread that writes ahead, until ahead_is says that it has written. */
    struct batch ahead;
    lk_redis_connection ahead_connection; /* the same descriptor, with a message of its own */

    /* Owned by the combiner. */
    struct batch batch;       /* written, to be answered */
    _Atomic size_t under_way; /* commands of the batch. 0: nothing may be written ahead */
    bool demoted;             /* READONLY was answered */
    bool broken;              /* the connection is of no more use */
    lk_redis_connection connection;
};

/* Takes the first of the queue, as many as one write takes. The mutex is held. */
void lk_redis_mux_fill(lk_redis_mux *mux, struct batch *batch);

/* Spins, then sleeps, until the caller is to combine (true) or has all its answers (false). After a
 * wake-up for others it spins again: its own is near. */
bool lk_redis_caller_sleep(lk_redis_mux *mux, struct lk_redis_caller *caller);
/* Serves one batch with a request of mine in it: one that is written already if mine is to combine,
 * else the first of the queue. Then hands over the role of the combiner, or gives it up.
 * True: mine has all its answers, and no other thread will wake it. */
bool lk_redis_combine(lk_redis_mux *mux, struct lk_redis_caller *mine);
/* Writes the batch ahead. Returns as lk_redis_combine(). */
bool lk_redis_write_ahead(lk_redis_mux *mux, const struct lk_redis_caller *mine);

#endif
