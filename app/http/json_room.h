/*
 * Memory for a JSON document that lives only while a request is read: a piece of the reader's
 * stack, so that reading allocates nothing. What does not fit is in chunks of malloc().
 *
 * jansson 2.14 is not safe without memory: its reader overlooks a failed allocation, and reads
 * beyond the text (lex_save() in load.c). So an allocation in json_room_load() does not fail: it
 * ends the reading. Lab and demo read their documents outside of a room.
 */
#ifndef JSON_ROOM_H
#define JSON_ROOM_H

#include <jansson.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

enum { JSON_ROOM_BYTES = 4096 }; /* an order's document takes under 1 KB */

struct json_room {
    size_t used;
    int live; /* pieces not yet freed */
    struct json_chunk *chunks;
    jmp_buf *refused; /* NULL: nothing is being read */
    _Alignas(max_align_t) char bytes[JSON_ROOM_BYTES];
};

/* Makes jansson ask here for memory, in the whole process; outside of a room it gets malloc()'s, so
 * that free() stays right for json_dumps(). Before other threads use jansson; may be repeated. */
void json_room_set_up(void);

/* From here on this thread's jansson takes its memory from room, until it leaves. All of it must be
 * freed before. */
void json_room_enter(struct json_room *room);
void json_room_leave(void);

/* Reads a text in this thread's room; no name may stand twice. NULL: *ret_error says why not, or
 * there is no memory. */
json_t *json_room_load(const char *text, size_t length, json_error_t *ret_error,
                       bool *ret_no_memory);

#endif
