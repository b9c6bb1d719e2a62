/*
 * Private to the reader of histories:
 *
 * - history_read.c     the file: lines, events, keys
 * - history_asked.c    the meaning of a request, and of its answer
 * - history_reader.c   texts, and members of JSON objects
 */
#ifndef HISTORY_READER_H
#define HISTORY_READER_H

#include "history.h"
#include "hash_table.h"
#include "json_text.h"

#include <jansson.h>

enum { HISTORY_ID_MAX = 400 }; /* bytes of an id in a path, with its NUL */

/* A text of the file, stored once: keys and resources repeat. op: the key's operation. */
struct history_text {
    UT_hash_handle hh;
    size_t op;       /* index + 1; 0: not a key */
    size_t resource; /* index + 1; 0: not a resource */
    size_t order;    /* index + 1 of the operation with this order id; 0: not an order id */
    char *answer;    /* of a key: its first decided answer, as text */
    char text[];
};

struct reader {
    struct history history;
    size_t room_ops, room_resources, line;
    char *message;
    size_t size;
};

/* Writes the message with the line number. Returns -1. */
int history_fail(struct reader *reader, const char *what);
/* The stored copy of this text. NULL without memory. */
struct history_text *history_intern(struct reader *reader, const char *text);
/* Stores `before` and `id` as one text. Returns 0, or -1 with the message. */
int history_keep(struct reader *reader, const char *before, const char *id, const char **ret);

/* A number of a JSON object; 0 or HISTORY_NO_NUMBER if it has none of this name. */
int64_t history_number_of(const json_t *object, const char *name);
int64_t history_number_or_none(const json_t *object, const char *name);

/* Fills in op from the first invocation. Returns 0, or -1 with the message. */
int history_describe(struct reader *reader, struct history_op *op, const json_t *line);
/* Records the first deciding answer. Returns 0, or -1 with the message. */
int history_note_answer(struct reader *reader, struct history_op *op, enum history_state state,
                        const char *problem, const json_t *line);
/* Call it once all is read: takes the change of a payment or cancellation from its order. Returns
 * 0, or -1 with the message. */
int history_follow_order(struct reader *reader, struct history_op *op);

#endif
