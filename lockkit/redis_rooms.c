#include "redis_rooms.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>
#include <utlist.h>

enum { US_PER_S = 1000000 };

struct room {
    char name[LK_REDIS_ROOM_NAME_MAX];
    lk_redis_waiter *asleep; /* in order of arrival */
    int64_t n_waiters;       /* asleep or not */
    int64_t n_posts;         /* messages that found none asleep; at most n_waiters */
    lk_redis_gift gift;      /* not yet taken; fence 0: none */
    UT_hash_handle hh;
};

/* It sleeps on a mutex of its own: whoever wakes has the rooms' still, and must not be waited for.
 */
struct lk_redis_waiter {
    struct room *room;
    bool woken; /* and not yet used; written with both mutexes */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    lk_redis_waiter *prev, *next; /* of those asleep */
};

struct lk_redis_rooms {
    pthread_mutex_t mutex;
    pthread_condattr_t monotonic;
    struct room *by_name;
};

static void set_woken(lk_redis_waiter *waiter, bool woken)
{
    pthread_mutex_lock(&waiter->mutex);
    waiter->woken = woken;
    pthread_mutex_unlock(&waiter->mutex);
}

static void post(struct room *room)
{
    lk_redis_waiter *waiter = room->asleep;
    if (waiter != NULL) {
        DL_DELETE(room->asleep, waiter);
        set_woken(waiter, true);
        pthread_cond_signal(&waiter->wake);
    } else if (room->n_posts < room->n_waiters) {
        room->n_posts++;
    }
}

void lk_redis_rooms_post(lk_redis_rooms *rooms, const char *name)
{
    struct room *room;
    pthread_mutex_lock(&rooms->mutex);
    HASH_FIND_STR(rooms->by_name, name, room);
    if (room != NULL)
        post(room);
    pthread_mutex_unlock(&rooms->mutex);
}

void lk_redis_rooms_give(lk_redis_rooms *rooms, const char *name, const lk_redis_gift *gift)
{
    struct room *room;
    pthread_mutex_lock(&rooms->mutex);
    HASH_FIND_STR(rooms->by_name, name, room);
    if (room != NULL) {
        room->gift = *gift;
        post(room);
    }
    pthread_mutex_unlock(&rooms->mutex);
}

bool lk_redis_rooms_take(lk_redis_rooms *rooms, lk_redis_waiter *waiter, lk_redis_gift *ret)
{
    pthread_mutex_lock(&rooms->mutex);
    *ret = waiter->room->gift;
    waiter->room->gift.fence = 0;
    pthread_mutex_unlock(&rooms->mutex);
    return ret->fence != 0;
}

static void post_each(struct room *room)
{
    for (int64_t i = 0; i < room->n_waiters; i++)
        post(room);
}

void lk_redis_rooms_post_room(lk_redis_rooms *rooms, const char *name)
{
    struct room *room;
    pthread_mutex_lock(&rooms->mutex);
    HASH_FIND_STR(rooms->by_name, name, room);
    if (room != NULL)
        post_each(room);
    pthread_mutex_unlock(&rooms->mutex);
}

void lk_redis_rooms_post_all(lk_redis_rooms *rooms)
{
    pthread_mutex_lock(&rooms->mutex);
    for (struct room *room = rooms->by_name; room != NULL; room = room->hh.next)
        post_each(room);
    pthread_mutex_unlock(&rooms->mutex);
}

static struct room *find_or_add(lk_redis_rooms *rooms, const char *name)
{
    struct room *room;
    HASH_FIND_STR(rooms->by_name, name, room);
    if (room == NULL && (room = calloc(1, sizeof *room)) != NULL) {
        assert(strlen(name) < sizeof room->name);
        strcpy(room->name, name);
        HASH_ADD_STR(rooms->by_name, name, room);
    }
    return room;
}

lk_redis_waiter *lk_redis_rooms_enter(lk_redis_rooms *rooms, const char *name, bool *ret_is_first)
{
    lk_redis_waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter == NULL)
        return NULL;
    pthread_mutex_lock(&rooms->mutex);
    struct room *room = waiter->room = find_or_add(rooms, name);
    if (room != NULL && ret_is_first != NULL)
        *ret_is_first = room->n_waiters == 0;
    if (room != NULL)
        room->n_waiters++;
    pthread_mutex_unlock(&rooms->mutex);
    if (room == NULL) {
        free(waiter);
        return NULL;
    }
    pthread_mutex_init(&waiter->mutex, NULL);
    pthread_cond_init(&waiter->wake, &rooms->monotonic);
    return waiter;
}

void lk_redis_rooms_sleep(lk_redis_rooms *rooms, lk_redis_waiter *waiter, int64_t wait_us)
{
    struct room *room = waiter->room;
    bool woken;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t us = until.tv_nsec / 1000 + (wait_us > 0 ? wait_us : 0);
    until.tv_sec += us / US_PER_S;
    until.tv_nsec = us % US_PER_S * 1000;
    pthread_mutex_lock(&rooms->mutex);
    if (!waiter->woken && room->n_posts > 0) {
        room->n_posts--;
        set_woken(waiter, true);
    }
    woken = waiter->woken;
    if (!woken)
        DL_APPEND(room->asleep, waiter);
    pthread_mutex_unlock(&rooms->mutex);
    if (woken)
        return;
    pthread_mutex_lock(&waiter->mutex);
    while (!waiter->woken)
        if (pthread_cond_timedwait(&waiter->wake, &waiter->mutex, &until) == ETIMEDOUT)
            break;
    woken = waiter->woken;
    pthread_mutex_unlock(&waiter->mutex);
    if (woken)
        return;
    pthread_mutex_lock(&rooms->mutex);
    if (!waiter->woken)
        DL_DELETE(room->asleep, waiter);
    pthread_mutex_unlock(&rooms->mutex);
}

void lk_redis_rooms_use(lk_redis_rooms *rooms, lk_redis_waiter *waiter)
{
    pthread_mutex_lock(&rooms->mutex);
    set_woken(waiter, false);
    pthread_mutex_unlock(&rooms->mutex);
}

void lk_redis_rooms_leave(lk_redis_rooms *rooms, lk_redis_waiter *waiter)
{
    struct room *room = waiter->room;
    pthread_mutex_lock(&rooms->mutex);
    room->n_waiters--;
    if (waiter->woken)
        post(room);
    if (room->n_waiters == 0) {
        HASH_DEL(rooms->by_name, room);
        free(room);
    } else if (room->n_posts > room->n_waiters) {
        room->n_posts = room->n_waiters;
    }
    pthread_mutex_unlock(&rooms->mutex);
    pthread_cond_destroy(&waiter->wake);
    pthread_mutex_destroy(&waiter->mutex);
    free(waiter);
}

lk_redis_rooms *lk_redis_rooms_open(void)
{
    lk_redis_rooms *rooms = calloc(1, sizeof *rooms);
    if (rooms == NULL)
        return NULL;
    pthread_condattr_init(&rooms->monotonic);
    pthread_condattr_setclock(&rooms->monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&rooms->mutex, NULL);
    return rooms;
}

void lk_redis_rooms_close(lk_redis_rooms *rooms)
{
    assert(rooms->by_name == NULL);
    pthread_mutex_destroy(&rooms->mutex);
    pthread_condattr_destroy(&rooms->monotonic);
    free(rooms);
}
