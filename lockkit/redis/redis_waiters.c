#include "redis_waiters.h"
#include "doorbell.h"
#include "monotonic.h"
#include "table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct room {
    char name[LK_REDIS_ROOM_NAME_MAX];
    lk_redis_waiter *asleep; /* in order of arrival */
    int64_t n_waiters;       /* asleep or not */
    int64_t n_posts;         /* messages that found none asleep; at most n_waiters */
    lk_redis_gift gift;      /* not yet taken; fence 0: none */
    UT_hash_handle hh;
};

struct lk_redis_waiter {
    struct room *room;
    bool woken; /* and not yet used */
    lk_doorbell bell;
    lk_redis_waiter *prev, *next; /* of those asleep */
};

struct lk_redis_rooms {
    pthread_mutex_t mutex;
    struct room *by_name;
};

/* Returns who is to be woken, once the mutex is free, or NULL. */
static lk_redis_waiter *post(struct room *room)
{
    lk_redis_waiter *waiter = room->asleep;
    if (waiter != NULL) {
        DL_DELETE(room->asleep, waiter);
        waiter->woken = true;
        return lk_doorbell_ring(&waiter->bell) ? waiter : NULL;
    }
    if (room->n_posts < room->n_waiters)
        room->n_posts++;
    return NULL;
}

static void wake(const lk_redis_waiter *waiter)
{
    if (waiter != NULL)
        lk_doorbell_wake(&waiter->bell);
}

void lk_redis_rooms_post(lk_redis_rooms *rooms, const char *name)
{
    struct room *room;
    pthread_mutex_lock(&rooms->mutex);
    HASH_FIND_STR(rooms->by_name, name, room);
    const lk_redis_waiter *sleeper = room != NULL ? post(room) : NULL;
    pthread_mutex_unlock(&rooms->mutex);
    wake(sleeper);
}

void lk_redis_rooms_give(lk_redis_rooms *rooms, const char *name, const lk_redis_gift *gift)
{
    const lk_redis_waiter *sleeper = NULL;
    struct room *room;
    pthread_mutex_lock(&rooms->mutex);
    HASH_FIND_STR(rooms->by_name, name, room);
    if (room != NULL) {
        room->gift = *gift;
        sleeper = post(room);
    }
    pthread_mutex_unlock(&rooms->mutex);
    wake(sleeper);
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
        wake(post(room)); /* with the mutex held: there are more */
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
        if (room->hh.tbl == NULL) { /* no memory for the table */
            free(room);
            return NULL;
        }
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
    return waiter;
}

void lk_redis_rooms_sleep(lk_redis_rooms *rooms, lk_redis_waiter *waiter, int64_t wait_us)
{
    struct room *room = waiter->room;
    int64_t until_us = lk_monotonic_us() + wait_us;
    pthread_mutex_lock(&rooms->mutex);
    if (!waiter->woken && room->n_posts > 0) {
        room->n_posts--;
        waiter->woken = true;
    }
    if (!waiter->woken)
        DL_APPEND(room->asleep, waiter);
    while (!waiter->woken && wait_us > 0) {
        pthread_mutex_unlock(&rooms->mutex);
        lk_doorbell_wait(&waiter->bell, NULL, wait_us);
        wait_us = until_us - lk_monotonic_us();
        pthread_mutex_lock(&rooms->mutex);
    }
    if (!waiter->woken)
        DL_DELETE(room->asleep, waiter);
    pthread_mutex_unlock(&rooms->mutex);
}

void lk_redis_rooms_use(lk_redis_rooms *rooms, lk_redis_waiter *waiter)
{
    pthread_mutex_lock(&rooms->mutex);
    waiter->woken = false;
    pthread_mutex_unlock(&rooms->mutex);
}

void lk_redis_rooms_leave(lk_redis_rooms *rooms, lk_redis_waiter *waiter)
{
    struct room *room = waiter->room;
    pthread_mutex_lock(&rooms->mutex);
    room->n_waiters--;
    const lk_redis_waiter *heir = waiter->woken ? post(room) : NULL;
    if (room->n_waiters == 0) {
        HASH_DEL(rooms->by_name, room);
        free(room);
    } else if (room->n_posts > room->n_waiters) {
        room->n_posts = room->n_waiters;
    }
    pthread_mutex_unlock(&rooms->mutex);
    wake(heir);
    free(waiter);
}

lk_redis_rooms *lk_redis_rooms_open(void)
{
    lk_redis_rooms *rooms = calloc(1, sizeof *rooms);
    if (rooms == NULL)
        return NULL;
    pthread_mutex_init(&rooms->mutex, NULL);
    return rooms;
}

void lk_redis_rooms_close(lk_redis_rooms *rooms)
{
    assert(rooms->by_name == NULL);
    pthread_mutex_destroy(&rooms->mutex);
    free(rooms);
}
