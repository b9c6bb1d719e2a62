#include "json_room.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 16384, STEP = _Alignof(max_align_t) };

struct json_chunk {
    struct json_chunk *next;
    size_t size, used;
    _Alignas(max_align_t) char bytes[];
};

static _Thread_local struct json_room *current; /* NULL: none is entered */

/* A piece of the newest chunk, which is a new one if it has no room. */
static void *take_from_chunks(struct json_room *room, size_t size)
{
    struct json_chunk *chunk = room->chunks;
    if (chunk == NULL || size > chunk->size - chunk->used) {
        size_t bytes = chunk == NULL ? CHUNK_BYTES : 2 * chunk->size;
        if (bytes < size)
            bytes = size;
        chunk = bytes <= SIZE_MAX - sizeof *chunk ? malloc(sizeof *chunk + bytes) : NULL;
        if (chunk == NULL)
            return NULL;
        *chunk = (struct json_chunk){.next = room->chunks, .size = bytes};
        room->chunks = chunk;
    }
    void *at = chunk->bytes + chunk->used;
    chunk->used += size;
    return at;
}

static void *take(size_t size)
{
    struct json_room *room = current;
    if (room == NULL || size > SIZE_MAX - STEP)
        return malloc(size);
    size = (size + STEP - 1) / STEP * STEP; /* JSON_ROOM_BYTES is a multiple of it */
    void *at = room->bytes + room->used;
    if (size <= JSON_ROOM_BYTES - room->used)
        room->used += size;
    else
        at = take_from_chunks(room, size);
    if (at == NULL && room->refused != NULL)
        longjmp(*room->refused, 1);
    room->live += at != NULL;
    return at;
}

static bool is_inside(const void *at, const char *bytes, size_t size)
{
    return (uintptr_t)at - (uintptr_t)bytes < size;
}

static bool is_of_room(const struct json_room *room, const void *at)
{
    bool found = is_inside(at, room->bytes, JSON_ROOM_BYTES);
    for (const struct json_chunk *chunk = room->chunks; chunk != NULL && !found;
         chunk = chunk->next)
        found = is_inside(at, chunk->bytes, chunk->size);
    return found;
}

static void give_back(void *at)
{
    if (current != NULL && is_of_room(current, at))
        current->live--; /* leaving the room frees all of it */
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
    room->chunks = NULL;
    room->refused = NULL;
    current = room;
}

void json_room_leave(void)
{
    struct json_room *room = current;
    assert(room != NULL && room->live == 0);
    current = NULL;
    for (struct json_chunk *chunk = room->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}

json_t *json_room_load(const char *text, size_t length, json_error_t *ret_error,
                       bool *ret_no_memory)
{
    jmp_buf refused;
    assert(current != NULL);
    current->refused = &refused;
    *ret_no_memory = setjmp(refused) != 0;
    json_t *json =
        *ret_no_memory ? NULL : json_loadb(text, length, JSON_REJECT_DUPLICATES, ret_error);
    current->refused = NULL;
    if (*ret_no_memory)
        current->live = 0; /* what was read is dropped */
    return json;
}
