#include "pg_watch.h"
#include "thread.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS_MAX = 64 };
static const uint64_t stop_event = 0; /* no watch id */

struct place {
    lk_pg_conn *conn; /* NULL: free */
    _Atomic uint64_t watch_id;
    atomic_bool ended;
};

struct lk_pg_watch {
    const lk_context *context;
    pthread_mutex_t mutex; /* of all but the atomics */
    uint64_t n_watch_ids;
    struct place places[LK_PG_POOL_MAX];
    int epoll, stop;
    pthread_t thread;
};

static struct place *place_of(lk_pg_watch *watch, uint64_t watch_id)
{
    return &watch->places[watch_id % LK_PG_POOL_MAX];
}

/* -- the thread ------------------------------------------------------------------------------- */

/* The socket is not touched: its thread may be using it, and libpq closing it. */
static void note_end(lk_pg_watch *watch, uint64_t watch_id)
{
    struct place *place = place_of(watch, watch_id);
    pthread_mutex_lock(&watch->mutex);
    if (atomic_load(&place->watch_id) == watch_id)
        atomic_store(&place->ended, true);
    pthread_mutex_unlock(&watch->mutex);
}

static void *run(void *arg)
{
    lk_pg_watch *watch = arg;
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(watch->epoll, events, EVENTS_MAX, -1);
        assert(n > 0 || errno == EINTR);
        for (int i = 0; i < n; i++) {
            if (events[i].data.u64 == stop_event)
                return NULL;
            note_end(watch, events[i].data.u64);
        }
        if (n > 0)
            lk_session_ended(watch->context);
    }
}

/* -- watch ids -------------------------------------------------------------------------------- */

uint64_t lk_pg_watch_add(lk_pg_watch *watch, lk_pg_conn *conn)
{
    uint64_t index = 0, watch_id = 0;
    pthread_mutex_lock(&watch->mutex);
    while (watch->places[index].conn != NULL)
        index++;
    assert(index < LK_PG_POOL_MAX); /* the pool has no more connections */
    /* Told once, and only that the server hung up: it may send notices at any time. */
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT,
                                .data.u64 = ++watch->n_watch_ids * LK_PG_POOL_MAX + index};
    struct place *place = &watch->places[index];
    if (epoll_ctl(watch->epoll, EPOLL_CTL_ADD, lk_pg_socket(conn), &event) == 0) {
        watch_id = event.data.u64;
        place->conn = conn;
        atomic_store(&place->ended, false);
        atomic_store(&place->watch_id, watch_id);
    }
    pthread_mutex_unlock(&watch->mutex);
    return watch_id;
}

lk_pg_conn *lk_pg_watch_find(lk_pg_watch *watch, uint64_t watch_id)
{
    struct place *place = place_of(watch, watch_id);
    pthread_mutex_lock(&watch->mutex);
    lk_pg_conn *conn =
        watch_id != 0 && atomic_load(&place->watch_id) == watch_id ? place->conn : NULL;
    pthread_mutex_unlock(&watch->mutex);
    return conn;
}

void lk_pg_watch_remove(lk_pg_watch *watch, uint64_t watch_id)
{
    struct place *place = place_of(watch, watch_id);
    pthread_mutex_lock(&watch->mutex);
    assert(atomic_load(&place->watch_id) == watch_id);
    if (lk_pg_socket(place->conn) >= 0) /* closed, it has left of itself */
        epoll_ctl(watch->epoll, EPOLL_CTL_DEL, lk_pg_socket(place->conn), NULL);
    atomic_store(&place->watch_id, 0);
    place->conn = NULL;
    pthread_mutex_unlock(&watch->mutex);
}

bool lk_pg_watch_alive(lk_pg_watch *watch, uint64_t watch_id)
{
    struct place *place = place_of(watch, watch_id);
    return watch_id != 0 && atomic_load(&place->watch_id) == watch_id &&
           !atomic_load(&place->ended);
}

/* -- opening ---------------------------------------------------------------------------------- */

static void free_watch(lk_pg_watch *watch)
{
    if (watch->stop >= 0)
        close(watch->stop);
    if (watch->epoll >= 0)
        close(watch->epoll);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}

lk_status lk_pg_watch_open(const lk_context *context, lk_pg_watch **ret)
{
    lk_pg_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return LK_NO_MEMORY;
    watch->context = context;
    pthread_mutex_init(&watch->mutex, NULL);
    watch->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch->stop = eventfd(0, EFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = stop_event};
    if (watch->epoll < 0 || watch->stop < 0 ||
        epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watch->stop, &event) != 0 ||
        !lk_thread_start(&watch->thread, run, watch)) {
        free_watch(watch);
        return LK_NO_MEMORY;
    }
    *ret = watch;
    return LK_OK;
}

void lk_pg_watch_close(lk_pg_watch *watch)
{
    eventfd_write(watch->stop, 1);
    pthread_join(watch->thread, NULL);
    free_watch(watch);
}
