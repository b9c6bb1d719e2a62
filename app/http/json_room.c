#include "json_room.h"

#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

static _Thread_local struct json_room *current; /* NULL: none is entered */

static void *take(size_t size)
{
    struct json_room *room = current;
    if (room == NULL || size > JSON_ROOM_BYTES - room->used)
        return malloc(size);
    void *at = room->bytes + room->used;
    const size_t step = _Alignof(max_align_t);
    room->used += (size + step - 1) / step * step; /* JSON_ROOM_BYTES is a multiple of it */
    room->live++;
    return at;
}

static void give_back(void *at)
{
    struct json_room *room = current;
    if (room != NULL && (uintptr_t)at - (uintptr_t)room->bytes < JSON_ROOM_BYTES)
        room->live--; /* leaving the room frees all of it */
    else
        free(at);
}

void json_room_set_up(void)
{
    json_set_alloc_funcs(take, give_back);
}

void json_room_enter(struct json_room *room)
{
    assert(current == NULL);
    room->used = 0;
    room->live = 0;
    current = room;
}

void json_room_leave(void)
{
    assert(current != NULL && current->live == 0);
    current = NULL;
}
