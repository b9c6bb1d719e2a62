/* A second reader of the recorded levels: judges a run from its events and ledger rows alone. */
#ifndef LEVELS_READER_H
#define LEVELS_READER_H

#include "tests.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static json_t *all; /* what was recorded */

static inline const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static inline json_int_t figure(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static inline const json_t *at(const json_t *array, size_t i)
{
    return json_array_get(array, i);
}

/* Levels that are made of others have no tree. */
static inline const json_t *tree_of(const json_t *level)
{
    return json_object_get(level, "tree");
}

/* -- a second reader of a run -------------------------------------------------------------------
 */

/* Events with these; *ret: the index of the last one. */
static inline size_t count(const json_t *run, const char *who, const char *point, size_t *ret)
{
    const json_t *events = json_object_get(run, "events");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(events); i++)
        if (strcmp(json_string_value(at(at(events, i), 1)), who) == 0 &&
            strcmp(json_string_value(at(at(events, i), 2)), point) == 0) {
            n++;
            *ret = i;
        }
    return n;
}

/* What the accepted requests leave, from the level's own amounts. */
static inline json_int_t expected(const json_t *level, const json_t *run)
{
    const json_t *subject =
        json_object_get(json_object_get(all, "subjects"), text_of(level, "subject"));
    const char *who;
    json_t *amount;
    json_int_t sum = figure(subject, "start");
    size_t ignored;
    json_object_foreach(json_object_get(subject, "amounts"), who, amount)
    {
        if (count(run, who, "answer 201", &ignored) > 0)
            sum += json_integer_value(amount);
    }
    return sum;
}

/* The value of the last ledger row: what the row of the account says. */
static inline json_int_t written(const json_t *level, const json_t *run)
{
    const json_t *rows = json_object_get(run, "rows"), *subject;
    subject = json_object_get(json_object_get(all, "subjects"), text_of(level, "subject"));
    if (json_array_size(rows) == 0)
        return figure(subject, "start");
    return json_integer_value(at(at(rows, json_array_size(rows) - 1), 2));
}

/* Moves, without ends of leases, up to the write that starts from a version which is no longer the
 * row's: -1: there is none. */
static inline int moves_to_loss(const json_t *run)
{
    const json_t *rows = json_object_get(run, "rows"), *ends = json_object_get(run, "ends");
    const char *moves = text_of(run, "moves");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        size_t event = 0;
        if (json_integer_value(at(at(rows, i), 3)) == (json_int_t)i + 1)
            continue; /* the creation makes version 1, and each row adds one */
        assert_true(count(run, json_string_value(at(at(rows, i), 0)), "committed", &event) > 0);
        int n = 0;
        for (size_t k = 0; k < strlen(moves); k++) {
            n += moves[k] != 'L';
            if (json_integer_value(at(ends, k)) > (json_int_t)event)
                return n;
        }
    }
    return -1;
}

#endif
