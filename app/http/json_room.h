/*
 * Memory for a JSON document that lives only while a request is read: a piece of the reader's
 * stack, so that reading allocates nothing. What does not fit is malloc()ed.
 */
#ifndef JSON_ROOM_H
#define JSON_ROOM_H

#include <stddef.h>

enum { JSON_ROOM_BYTES = 4096 }; /* an order's document takes under 1 KB */

struct json_room {
    size_t used;
    int live; /* pieces not yet freed */
    _Alignas(max_align_t) char bytes[JSON_ROOM_BYTES];
};

/* Makes jansson ask here for memory, in the whole process; outside of a room it gets malloc()'s, so
 * that free() stays right for json_dumps(). Before other threads use jansson; may be repeated. */
void json_room_set_up(void);

/* From here on this thread's jansson takes its memory from room, until it leaves. All of it must be
 * freed before. */
void json_room_enter(struct json_room *room);
void json_room_leave(void);

#endif
