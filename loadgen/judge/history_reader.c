#include "history_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int history_fail(struct reader *reader, const char *what)
{
    snprintf(reader->message, reader->size, "line %zu: %s", reader->line, what);
    return -1;
}

struct history_text *history_intern(struct reader *reader, const char *text)
{
    struct history_text *found;
    HASH_FIND_STR(reader->history.texts, text, found);
    if (found != NULL)
        return found;
    found = calloc(1, sizeof *found + strlen(text) + 1);
    if (found == NULL)
        return NULL;
    strcpy(found->text, text);
    HASH_ADD_STR(reader->history.texts, text, found);
    if (found->hh.tbl == NULL) { /* no memory for the table */
        free(found);
        return NULL;
    }
    return found;
}

int history_keep(struct reader *reader, const char *before, const char *id, const char **ret)
{
    char name[2 * HISTORY_ID_MAX];
    if (snprintf(name, sizeof name, "%s%s", before, id) >= (int)sizeof name)
        return history_fail(reader, "an id is longer than the service allows");
    const struct history_text *text = history_intern(reader, name);
    if (text == NULL)
        return history_fail(reader, "out of memory");
    *ret = text->text;
    return 0;
}

int64_t history_number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

int64_t history_number_or_none(const json_t *object, const char *name)
{
    const json_t *number = json_object_get(object, name);
    return json_is_integer(number) ? json_integer_value(number) : HISTORY_NO_NUMBER;
}
