/* The meaning of a request, and of its answer. */
#include "history_reader.h"

#include <stdlib.h>
#include <string.h>

/* The meaning of a path. A transfer belongs to the paying account. The change of a payment or
 * cancellation is taken from its order, once all is read. */
static const struct route {
    const char *path; /* "*": the id */
    enum history_kind kind;
    const char *resource; /* what it changes; "": see its order */
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
static const struct route *route_of(const char *path, char ret_id[HISTORY_ID_MAX])
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const char *star = strchr(routes[i].path, '*');
        size_t head = star == NULL ? strlen(routes[i].path) : (size_t)(star - routes[i].path);
        ret_id[0] = '\0';
        if (strncmp(path, routes[i].path, head) != 0)
            continue;
        size_t length = star == NULL ? 0 : strcspn(path + head, "/");
        if (length >= HISTORY_ID_MAX || (star != NULL && length == 0) ||
            strcmp(path + head + length, star == NULL ? "" : star + 1) != 0)
            continue;
        memcpy(ret_id, path + head, length);
        ret_id[length] = '\0';
        return &routes[i];
    }
    return NULL;
}

int history_describe(struct reader *reader, struct history_op *op, const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    char id[HISTORY_ID_MAX];
    const struct route *route = route_of(json_text_of(line, "path"), id);
    op->resource = op->other = op->user = op->of_order = op->problem = op->order_id = "";
    if (route == NULL)
        return 0;
    op->kind = route->kind;
    if (route->resource[0] == '\0')
        return history_keep(reader, "", id, &op->of_order);
    bool transfer = strchr(route->path, '*') == NULL;
    if (history_keep(reader, route->resource, transfer ? json_text_of(body, "from") : id,
                     &op->resource) != 0 ||
        (transfer &&
         history_keep(reader, route->resource, json_text_of(body, "to"), &op->other) != 0) ||
        history_keep(reader, "", json_text_of(body, "user_id"), &op->user) != 0)
        return -1;
    op->delta = history_number_of(body, route->amount);
    if (route->sign < 0 && op->delta == INT64_MIN)
        return history_fail(reader, "an amount that no service takes");
    if (route->sign < 0)
        op->delta = -op->delta;
    return 0;
}

int history_note_answer(struct reader *reader, struct history_op *op, enum history_state state,
                        const char *problem, const json_t *line)
{
    const json_t *body = json_object_get(line, "body");
    bool item = strncmp(op->resource, "item:", 5) == 0;
    struct history_text *order = history_intern(reader, json_text_of(body, "order_id"));
    if (order == NULL || history_keep(reader, "", problem, &op->problem) != 0)
        return history_fail(reader, "out of memory");
    op->state = state;
    op->completed_us = history_number_of(line, "at_us");
    if (op->completed_us < op->invoked_us)
        return history_fail(reader, "an answer before its request");
    op->version = history_number_or_none(body, "version");
    op->fence = history_number_or_none(body, "fence");
    op->price = history_number_or_none(body, "amount");
    op->other_version = history_number_or_none(body, "to_version");
    if (op->kind == HISTORY_READ) {
        op->after = history_number_of(body, item ? "stock" : "balance");
    } else if (op->kind == HISTORY_CHANGE) {
        op->order_id = order->text;
        if (order->order == 0)
            order->order = (size_t)(op - reader->history.ops) + 1;
        op->before = history_number_of(body, item ? "stock_before" : "balance_before");
        op->after = history_number_of(body, item ? "stock_after" : "balance_after");
    }
    return 0;
}

int history_follow_order(struct reader *reader, struct history_op *op)
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
        return history_keep(reader, "account:", order->user, &op->resource);
    }
    return 0;
}
