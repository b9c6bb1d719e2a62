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
    size_t op;       /* index + 1; 0: not a key */
    size_t resource; /* index + 1; 0: none is called so */
    size_t order;    /* index + 1 of the operation that was given this order id; 0: not one */
    char *answer;    /* of a key: its first decided answer, as text */
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

static int64_t number_or_none(const json_t *object, const char *name)
{
    const json_t *number = json_object_get(object, name);
    return json_is_integer(number) ? json_integer_value(number) : HISTORY_NO_NUMBER;
}

/* What a path asks for. A transfer counts on the account that pays; a payment and a cancellation on
 * what their order says, once all is read. */
static const struct route {
    const char *path; /* "*": the id */
    enum history_kind kind;
    const char *resource; /* what it changes; "": its order says */
    const char *amount;   /* in the body; "": none */
    int sign;
} routes[] = {
    {"/v1/items/*/orders", HISTORY_CHANGE, "item:", "quantity", -1},
    {"/v1/accounts/*/transactions", HISTORY_CHANGE, "account:", "amount", 1},
    {"/v1/transfers", HISTORY_CHANGE, "account:", "amount", -1},
    {"/v1/items/*", HISTORY_READ, "item:", "", 0},
    {"/v1/accounts/*", HISTORY_READ, "account:", "", 0},
    {"/v1/orders/*/payment", HISTORY_PAYMENT, "", "", 0},
    {"/v1/orders/*/cancellation", HISTORY_CANCELLATION, "", "", 0},
};

/* NULL: no route of these. */
static const struct route *route_of(const char *path, char ret_id[REMOTE_PATH_MAX])
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const char *star = strchr(routes[i].path, '*');
        size_t head = star == NULL ? strlen(routes[i].path) : (size_t)(star - routes[i].path);
        ret_id[0] = '\0';
        if (strncmp(path, routes[i].path, head) != 0)
            continue;
        size_t length = star == NULL ? 0 : strcspn(path + head, "/");
        if (length >= REMOTE_PATH_MAX || (star != NULL && length == 0) ||
            strcmp(path + head + length, star == NULL ? "" : star + 1) != 0)
            continue;
        memcpy(ret_id, path + head, length);
        ret_id[length] = '\0';
        return &routes[i];
    }
    return NULL;
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
    if (name->resource != 0)
        return fail(reader, "a resource that began before");
    grown[history->n_resources++] =
        (struct history_resource){.name = name->text,
                                  .initial = number_of(line, "initial"),
                                  .version = number_or_none(line, "version"),
                                  .limit = number_or_none(line, "limit")};
    name->resource = history->n_resources;
    return 0;
}

static int keep(struct reader *reader, const char *before, const char *id, const char **ret)
{
    char name[2 * REMOTE_PATH_MAX];
    snprintf(name, sizeof name, "%s%.300s", before, id);
    const struct history_text *text = intern(reader, name);
    if (text == NULL)
        return fail(reader, "out of memory");
    *ret = text->text;
    return 0;
}

/* What a request asks for, from its first invocation. */
static int describe(struct reader *reader, struct history_op *op, const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    char id[REMOTE_PATH_MAX];
    const struct route *route = route_of(text_of(line, "path"), id);
    op->resource = op->other = op->user = op->of_order = op->problem = op->order_id = "";
    if (route == NULL)
        return 0;
    op->kind = route->kind;
    if (route->resource[0] == '\0')
        return keep(reader, "", id, &op->of_order);
    bool transfer = strchr(route->path, '*') == NULL;
    if (keep(reader, route->resource, transfer ? text_of(body, "from") : id, &op->resource) != 0 ||
        (transfer && keep(reader, route->resource, text_of(body, "to"), &op->other) != 0) ||
        keep(reader, "", text_of(body, "user_id"), &op->user) != 0)
        return -1;
    op->delta = number_of(body, route->amount);
    if (route->sign < 0 && op->delta == INT64_MIN)
        return fail(reader, "an amount that no service takes");
    if (route->sign < 0)
        op->delta = -op->delta;
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
                       const char *problem, const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    bool item = strncmp(op->resource, "item:", 5) == 0;
    struct history_text *order = intern(reader, text_of(body, "order_id"));
    if (order == NULL || keep(reader, "", problem, &op->problem) != 0)
        return fail(reader, "out of memory");
    op->state = state;
    op->completed_us = number_of(line, "at_us");
    if (op->completed_us < op->invoked_us)
        return fail(reader, "an answer before its request");
    op->version = number_or_none(body, "version");
    op->fence = number_or_none(body, "fence");
    op->price = number_or_none(body, "amount");
    op->other_version = number_or_none(body, "to_version");
    if (op->kind == HISTORY_READ) {
        op->after = number_of(body, item ? "stock" : "balance");
    } else if (op->kind == HISTORY_CHANGE) {
        op->order_id = order->text;
        if (order->order == 0)
            order->order = (size_t)(op - reader->history.ops) + 1;
        op->before = number_of(body, item ? "stock_before" : "balance_before");
        op->after = number_of(body, item ? "stock_after" : "balance_after");
    }
    return 0;
}

static int read_answer(struct reader *reader, struct history_text *key, struct history_op *op,
                       const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    int64_t status = number_of(line, "status");
    const char *type = text_of(body, "type"), *slash = strrchr(type, '/');
    const char *problem = slash != NULL ? slash + 1 : type; /* "/problems/sold-out" */
    char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text == NULL)
        return fail(reader, "an answer without a body");
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
        result = note_answer(reader, op, state, problem, line);
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

/* What a payment or a cancellation changes: its order says so, once it is known. */
static int follow_order(struct reader *reader, struct history_op *op)
{
    const struct history_text *id;
    HASH_FIND_STR(reader->history.texts, op->of_order, id);
    if (id == NULL || id->order == 0)
        return 0;
    const struct history_op *order = &reader->history.ops[id->order - 1];
    if (op->kind == HISTORY_CANCELLATION) {
        op->resource = order->resource;
        op->user = order->user;
        op->delta = order->delta == INT64_MIN ? 0 : -order->delta;
    } else if (order->price != HISTORY_NO_NUMBER) {
        op->delta = -order->price;
        return keep(reader, "account:", order->user, &op->resource);
    }
    return 0;
}

/* A request without completion was sent for all one knows: the run may have been killed. */
static int settle(struct reader *reader)
{
    struct history *history = &reader->history;
    int result = 0;
    for (size_t i = 0; i < history->n_ops && result == 0; i++) {
        struct history_op *op = &history->ops[i];
        if (op->open > 0 && op->state == HISTORY_UNSENT)
            op->state = HISTORY_UNKNOWN;
        if (op->of_order[0] != '\0')
            result = follow_order(reader, op);
    }
    struct history_text *text, *next;
    HASH_ITER(hh, history->texts, text, next)
    {
        free(text->answer);
        text->answer = NULL;
    }
    return result;
}

/* One line of the file; the last may end in the middle, where its writer was killed. */
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
        result = fail(reader, "no JSON object");
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
