/* Reads a history line by line and collects the lines of each key. */
#include "history_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTH = 2, FIRST_ROOM = 1024 };

static int fail_to_read(struct reader *reader)
{
    snprintf(reader->message, reader->size, "cannot be read: %s", strerror(errno));
    return -1;
}

/* Room for one more of items; NULL without memory. */
static void *grow(void *items, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return items;
    size_t wanted = *room == 0 ? FIRST_ROOM : *room * GROWTH;
    void *grown = realloc(items, wanted * size);
    if (grown != NULL)
        *room = wanted;
    return grown;
}

/* -- the events -------------------------------------------------------------------------------- */

static int read_resource(struct reader *reader, const json_t *line)
{
    struct history *history = &reader->history;
    struct history_text *name = history_intern(reader, json_text_of(line, "resource"));
    struct history_resource *grown =
        grow(history->resources, history->n_resources, &reader->room_resources, sizeof *grown);
    if (grown != NULL) /* realloc() has freed the old array */
        history->resources = grown;
    if (name == NULL || grown == NULL)
        return history_fail(reader, "out of memory");
    if (name->resource != 0)
        return history_fail(reader, "a resource that began before");
    grown[history->n_resources++] =
        (struct history_resource){.name = name->text,
                                  .initial = history_number_of(line, "initial"),
                                  .version = history_number_or_none(line, "version"),
                                  .limit = history_number_or_none(line, "limit")};
    name->resource = history->n_resources;
    return 0;
}

static int read_invoke(struct reader *reader, struct history_text *key, const json_t *line)
{
    struct history *history = &reader->history;
    if (key->op != 0) { /* a retry */
        history->ops[key->op - 1].open++;
        return 0;
    }
    struct history_op *grown = grow(history->ops, history->n_ops, &reader->room_ops, sizeof *grown);
    if (grown == NULL)
        return history_fail(reader, "out of memory");
    history->ops = grown;
    struct history_op *op = &grown[history->n_ops++];
    key->op = history->n_ops;
    *op = (struct history_op){.key = key->text,
                              .invoked_us = history_number_of(line, "at_us"),
                              .completed_us = INT64_MAX,
                              .open = 1};
    return history_describe(reader, op, line);
}

/* 5xx, 429, 408 and a 409 "in-flight" decide nothing: see tally_decide(). */
static enum history_state state_of(int64_t status, const char *problem)
{
    if (status >= 200 && status < 300)
        return HISTORY_ACCEPTED;
    bool running = status == 409 && strcmp(problem, "in-flight") == 0;
    bool decided = status >= 400 && status < 500 && status != 429 && status != 408 && !running;
    return decided ? HISTORY_REFUSED : HISTORY_UNKNOWN;
}

static int read_answer(struct reader *reader, struct history_text *key, struct history_op *op,
                       const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    int64_t status = history_number_of(line, "status");
    const char *type = json_text_of(body, "type"), *slash = strrchr(type, '/');
    const char *problem = slash != NULL ? slash + 1 : type; /* "/problems/sold-out" */
    char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text == NULL)
        return history_fail(reader, "an answer without a body");
    enum history_state state = state_of(status, problem);
    int result = 0;
    if (state == HISTORY_UNKNOWN) {
        if (op->state == HISTORY_UNSENT)
            op->state = HISTORY_UNKNOWN;
        free(text);
        return 0;
    }
    op->answers++;
    if (key->answer != NULL) {
        op->differing += strcmp(key->answer, text) != 0 || state != op->state;
        free(text);
    } else {
        key->answer = text;
        result = history_note_answer(reader, op, state, problem, line);
    }
    return result;
}

static int read_complete(struct reader *reader, struct history_text *key, const json_t *line)
{
    if (key->op == 0)
        return history_fail(reader, "a completion without its invocation");
    struct history_op *op = &reader->history.ops[key->op - 1];
    const char *end = json_text_of(line, "end");
    op->open -= op->open > 0;
    if (strcmp(end, "answered") == 0)
        return read_answer(reader, key, op, line);
    if (strcmp(end, "not-sent") != 0 && op->state == HISTORY_UNSENT)
        op->state = HISTORY_UNKNOWN;
    return 0;
}

static int read_line(struct reader *reader, const json_t *line)
{
    const char *event = json_text_of(line, "event"), *key = json_text_of(line, "key");
    if (strcmp(event, "run") == 0)
        return history_number_of(line, "format") == 1
                   ? 0
                   : history_fail(reader, "a format other than 1");
    if (strcmp(event, "resource") == 0)
        return read_resource(reader, line);
    bool invoke = strcmp(event, "invoke") == 0;
    if (!invoke && strcmp(event, "complete") != 0)
        return history_fail(reader, "an event that is none of run, resource, invoke, complete");
    if (key[0] == '\0')
        return history_fail(reader, "no key");
    struct history_text *text = history_intern(reader, key);
    if (text == NULL)
        return history_fail(reader, "out of memory");
    return invoke ? read_invoke(reader, text, line) : read_complete(reader, text, line);
}

/* A request without a completion counts as sent: the run may have been killed. */
static int settle(struct reader *reader)
{
    struct history *history = &reader->history;
    int result = 0;
    for (size_t i = 0; i < history->n_ops && result == 0; i++) {
        struct history_op *op = &history->ops[i];
        if (op->open > 0 && op->state == HISTORY_UNSENT)
            op->state = HISTORY_UNKNOWN;
        if (op->of_order[0] != '\0')
            result = history_follow_order(reader, op);
    }
    struct history_text *text, *next;
    HASH_ITER(hh, history->texts, text, next)
    {
        free(text->answer);
        text->answer = NULL;
    }
    return result;
}

/* Reads one line. A killed writer may leave the last line cut. */
static int read_text(struct reader *reader, const char *text, size_t length)
{
    json_t *line = json_loads(text, 0, NULL);
    int result = 0;
    reader->line++;
    if (json_is_object(line))
        result = read_line(reader, line);
    else if (text[length - 1] != '\n')
        reader->history.torn_line = reader->line;
    else
        result = history_fail(reader, "no JSON object");
    json_decref(line);
    return result;
}

int history_read(const char *path, struct history *ret, char *message, size_t size)
{
    struct reader reader = {.message = message, .size = size};
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    int result = 0;
    if (file == NULL)
        return fail_to_read(&reader);
    while (result == 0 && (length = getline(&text, &room, file)) > 0)
        result = read_text(&reader, text, (size_t)length);
    if (result == 0 && !feof(file))
        result = fail_to_read(&reader);
    if (result == 0 && reader.history.n_ops == 0) {
        snprintf(message, size, "no invocation in the whole file");
        result = -1;
    }
    free(text);
    fclose(file);
    if (result == 0)
        result = settle(&reader);
    if (result == 0)
        *ret = reader.history;
    else
        history_free(&reader.history);
    return result;
}

const struct history_resource *history_resource_of(const struct history *history, const char *name)
{
    const struct history_text *text;
    HASH_FIND_STR(history->texts, name, text);
    return text == NULL || text->resource == 0 ? NULL : &history->resources[text->resource - 1];
}

void history_free(struct history *history)
{
    struct history_text *text, *next;
    HASH_ITER(hh, history->texts, text, next)
    {
        HASH_DEL(history->texts, text);
        free(text->answer);
        free(text);
    }
    free(history->ops);
    free(history->resources);
    *history = (struct history){0};
}
