/* Reading a history: one line after the other, gathered by key. */
#include "history.h"
#include "remote.h"
#include "table.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTH = 2, FIRST_ROOM = 1024 };

/* Text that was met, each once: keys and resources repeat. op: the key's operation. */
struct history_text {
    UT_hash_handle hh;
    size_t op;    /* index + 1; 0: not a key */
    char *answer; /* of a key: its first decided answer, as text */
    char text[];
};

struct reader {
    struct history history;
    size_t room_ops, room_resources, line;
    char *message;
    size_t size;
};

static int fail(struct reader *reader, const char *what)
{
    snprintf(reader->message, reader->size, "line %zu: %s", reader->line, what);
    return -1;
}

static int fail_to_read(struct reader *reader)
{
    snprintf(reader->message, reader->size, "cannot be read: %s", strerror(errno));
    return -1;
}

static struct history_text *intern(struct reader *reader, const char *text)
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

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static int64_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* "/v1/items/ID/orders" -> "item:ID"; "/v1/accounts/ID/transactions" -> "account:ID"; a transfer
 * counts on the account that pays. */
static void resource_of(const char *path, const json_t *body, char ret[REMOTE_PATH_MAX])
{
    char id[65]; /* as long as the service takes */
    ret[0] = '\0';
    if (sscanf(path, "/v1/items/%64[^/]/orders", id) == 1)
        snprintf(ret, REMOTE_PATH_MAX, "item:%.200s", id);
    else if (sscanf(path, "/v1/accounts/%64[^/]/transactions", id) == 1)
        snprintf(ret, REMOTE_PATH_MAX, "account:%.200s", id);
    else if (strcmp(path, "/v1/transfers") == 0)
        snprintf(ret, REMOTE_PATH_MAX, "account:%.200s", text_of(body, "from"));
}

/* -- the events -------------------------------------------------------------------------------- */

static int read_resource(struct reader *reader, const json_t *line)
{
    struct history *history = &reader->history;
    struct history_text *name = intern(reader, text_of(line, "resource"));
    struct history_resource *grown =
        grow(history->resources, history->n_resources, &reader->room_resources, sizeof *grown);
    if (grown != NULL) /* the old room is gone, whatever comes next */
        history->resources = grown;
    if (name == NULL || grown == NULL)
        return fail(reader, "out of memory");
    grown[history->n_resources++] =
        (struct history_resource){.name = name->text, .initial = number_of(line, "initial")};
    return 0;
}

/* What a request asks for, from its first invocation. */
static int describe(struct reader *reader, struct history_op *op, const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    const char *path = text_of(line, "path");
    char resource[REMOTE_PATH_MAX], other[REMOTE_PATH_MAX] = "";
    bool transfer = strcmp(path, "/v1/transfers") == 0;
    resource_of(path, body, resource);
    if (transfer)
        snprintf(other, sizeof other, "account:%.200s", text_of(body, "to"));
    const struct history_text *a = intern(reader, resource), *b = intern(reader, other);
    if (a == NULL || b == NULL)
        return fail(reader, "out of memory");
    op->resource = a->text;
    op->other = b->text;
    op->amount = number_of(body, "amount");
    if (transfer && op->amount == INT64_MIN)
        return fail(reader, "a transfer of an amount that no service takes");
    if (transfer)
        op->amount = -op->amount; /* of the account that pays */
    if (strncmp(resource, "item:", 5) == 0)
        op->amount = number_of(body, "quantity");
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
        return fail(reader, "out of memory");
    history->ops = grown;
    struct history_op *op = &grown[history->n_ops++];
    key->op = history->n_ops;
    *op = (struct history_op){.key = key->text,
                              .order_id = "",
                              .invoked_us = number_of(line, "at_us"),
                              .completed_us = INT64_MAX,
                              .open = 1};
    return describe(reader, op, line);
}

/* 5xx, 429, 408 and a first request that still runs decide nothing: see tally_decide(). */
static enum history_state state_of(int64_t status, const char *problem)
{
    if (status >= 200 && status < 300)
        return HISTORY_ACCEPTED;
    bool running = status == 409 && strcmp(problem, "in-flight") == 0;
    bool decided = status >= 400 && status < 500 && status != 429 && status != 408 && !running;
    return decided ? HISTORY_REFUSED : HISTORY_UNKNOWN;
}

static int note_answer(struct reader *reader, struct history_op *op, enum history_state state,
                       const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    bool item = strncmp(op->resource, "item:", 5) == 0;
    const struct history_text *order = intern(reader, text_of(body, "order_id"));
    if (order == NULL)
        return fail(reader, "out of memory");
    op->state = state;
    op->completed_us = number_of(line, "at_us");
    op->order_id = order->text;
    op->before = number_of(body, item ? "stock_before" : "balance_before");
    op->after = number_of(body, item ? "stock_after" : "balance_after");
    op->version = number_of(body, "version");
    op->fence = number_of(body, "fence");
    return 0;
}

static int read_answer(struct reader *reader, struct history_text *key, struct history_op *op,
                       const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    int64_t status = number_of(line, "status");
    char problem[64], *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text == NULL)
        return fail(reader, "an answer without a body");
    remote_problem_name(text, problem, sizeof problem);
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
        result = note_answer(reader, op, state, line);
    }
    return result;
}

static int read_complete(struct reader *reader, struct history_text *key, const json_t *line)
{
    if (key->op == 0)
        return fail(reader, "a completion without its invocation");
    struct history_op *op = &reader->history.ops[key->op - 1];
    const char *end = text_of(line, "end");
    op->open -= op->open > 0;
    if (strcmp(end, "answered") == 0)
        return read_answer(reader, key, op, line);
    if (strcmp(end, "not-sent") != 0 && op->state == HISTORY_UNSENT)
        op->state = HISTORY_UNKNOWN;
    return 0;
}

static int read_line(struct reader *reader, const json_t *line)
{
    const char *event = text_of(line, "event"), *key = text_of(line, "key");
    if (strcmp(event, "run") == 0)
        return number_of(line, "format") == 1 ? 0 : fail(reader, "a format other than 1");
    if (strcmp(event, "resource") == 0)
        return read_resource(reader, line);
    bool invoke = strcmp(event, "invoke") == 0;
    if (!invoke && strcmp(event, "complete") != 0)
        return fail(reader, "an event that is none of run, resource, invoke, complete");
    if (key[0] == '\0')
        return fail(reader, "no key");
    struct history_text *text = intern(reader, key);
    if (text == NULL)
        return fail(reader, "out of memory");
    return invoke ? read_invoke(reader, text, line) : read_complete(reader, text, line);
}

/* A request without completion was sent for all one knows: the run may have been killed. */
static void settle(struct history *history)
{
    for (size_t i = 0; i < history->n_ops; i++)
        if (history->ops[i].open > 0 && history->ops[i].state == HISTORY_UNSENT)
            history->ops[i].state = HISTORY_UNKNOWN;
    struct history_text *text, *next;
    HASH_ITER(hh, history->texts, text, next)
    {
        free(text->answer);
        text->answer = NULL;
    }
}

int history_read(const char *path, struct history *ret, char *message, size_t size)
{
    struct reader reader = {.message = message, .size = size};
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    int result = 0;
    if (file == NULL)
        return fail_to_read(&reader);
    while (result == 0 && getline(&text, &room, file) > 0) {
        reader.line++;
        json_t *line = json_loads(text, 0, NULL);
        result = json_is_object(line) ? read_line(&reader, line) : fail(&reader, "no JSON object");
        json_decref(line);
    }
    if (result == 0 && !feof(file))
        result = fail_to_read(&reader);
    if (result == 0 && reader.history.n_ops == 0) {
        snprintf(message, size, "no invocation in the whole file");
        result = -1;
    }
    free(text);
    fclose(file);
    settle(&reader.history);
    if (result == 0)
        *ret = reader.history;
    else
        history_free(&reader.history);
    return result;
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
