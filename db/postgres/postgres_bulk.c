/*
 * Consecutive statements of one kind gather and are sent as one statement, with an array for each
 * argument. PostgreSQL then starts one statement instead of many.
 *
 * An array on the wire (src/backend/utils/adt/arrayfuncs.c, array_recv): number of dimensions,
 * whether it has NULLs, type of the elements, number of the elements, index of the first; then for
 * each element its length and its bytes. All numbers in network order.
 */
#include "postgres.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 20, LENGTH_BYTES = 4, ROOM_MIN = 1024 };

static void put_32(char *at, uint32_t number)
{
    number = htobe32(number);
    memcpy(at, &number, sizeof number);
}

/* Adds an element; false: no memory. */
static bool add_element(struct pg_column *column, const void *bytes, size_t n)
{
    size_t needed = column->used + LENGTH_BYTES + n;
    if (needed > column->room) {
        size_t room = needed < ROOM_MIN ? ROOM_MIN : 2 * needed;
        char *grown = realloc(column->bytes, room);
        if (!grown)
            return false;
        column->bytes = grown;
        column->room = room;
    }
    put_32(column->bytes + column->used, (uint32_t)n);
    memcpy(column->bytes + column->used + LENGTH_BYTES, bytes, n);
    column->used = needed;
    return true;
}

bool gather_add(struct gather *gather, const struct value *args, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pg_column *column = &gather->columns[i];
        uint64_t number = htobe64((uint64_t)args[i].number);
        const void *bytes = args[i].text ? args[i].text : (const char *)&number;
        size_t length = args[i].text ? strlen(args[i].text) : sizeof number;
        if (gather->n == 0)
            column->used = HEAD_BYTES;
        if (!add_element(column, bytes, length))
            return false;
    }
    gather->n++;
    return true;
}

void gather_one(const struct gather *gather, const char *types, const char **values, int *lengths)
{
    assert(gather->n == 1);
    for (size_t i = 0; types[i]; i++) {
        const struct pg_column *column = &gather->columns[i];
        values[i] = column->bytes + HEAD_BYTES + LENGTH_BYTES;
        lengths[i] = (int)(column->used - HEAD_BYTES - LENGTH_BYTES);
    }
}

void gather_arrays(struct gather *gather, const char *types, const char **values, int *lengths)
{
    for (size_t i = 0; types[i]; i++) {
        struct pg_column *column = &gather->columns[i];
        const uint32_t head[] = {1, 0, types[i] == 't' ? PG_TYPE_TEXT : PG_TYPE_BIGINT,
                                 (uint32_t)gather->n, 1};
        for (size_t j = 0; j < sizeof head / sizeof *head; j++)
            put_32(column->bytes + j * sizeof head[0], head[j]);
        values[i] = column->bytes;
        lengths[i] = (int)column->used;
    }
}

void gather_free(struct gather *gather)
{
    for (size_t i = 0; i < PG_ARGS_MAX; i++)
        free(gather->columns[i].bytes);
}
