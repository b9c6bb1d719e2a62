#include "answer.h"
#include "format.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_STEP = 128 }; /* so that a body which is kept seldom has to grow */

void *(*answer_realloc)(void *at, size_t size) = realloc;

void op_answer_json(struct op *op, json_t *document)
{
    char *body = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
    json_decref(document);
    if (body == NULL) {
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
        return;
    }
    op_answer_text(op, body);
}

void op_answer_text(struct op *op, char *text)
{
    answer_take(&op->answer, text);
    op->answer.status = 200;
    op->answer.problem = PROBLEM_NONE;
    op->answer.version = 0;
}

/* A success has the row's entity tag. */
static void tag(struct op *op, int64_t version)
{
    if (op->answer.problem == PROBLEM_NONE)
        op->answer.version = version;
}

static bool grow(struct answer *answer, size_t needed)
{
    const size_t room = (needed + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
    char *body = answer_realloc(answer->body, room);
    if (body == NULL)
        return false;
    answer->body = body;
    answer->body_room = room;
    return true;
}

static bool vprint(struct answer *answer, const char *format, va_list args)
{
    va_list again;
    if (answer->body == NULL && !grow(answer, ROOM_STEP))
        return false;
    va_copy(again, args);
    const int length = format_text(answer->body, answer->body_room, format, args);
    assert(length >= 0 && length <= DB_BODY_MAX); /* which holds them all */
    bool whole = (size_t)length < answer->body_room;
    if (!whole && grow(answer, (size_t)length + 1)) {
        format_text(answer->body, answer->body_room, format, again);
        whole = true;
    }
    va_end(again);
    if (!whole)
        answer->body[0] = '\0';
    return whole;
}

void op_answer(struct op *op, int status, const char *format, ...)
{
    struct answer *answer = &op->answer;
    va_list args;
    va_start(args, format);
    const bool whole = vprint(answer, format, args);
    va_end(args);
    if (!whole) {
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
        return;
    }
    answer->status = status;
    answer->problem = PROBLEM_NONE;
    answer->decided = true;
    answer->version = 0;
}

bool answer_print(struct answer *answer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const bool whole = vprint(answer, format, args);
    va_end(args);
    return whole;
}

void answer_take(struct answer *answer, char *body)
{
    free(answer->body);
    answer->body = body;
    answer->body_room = strlen(body) + 1;
}

size_t answer_end_line(struct answer *answer)
{
    size_t length = answer->body != NULL ? strlen(answer->body) : 0;
    if (length == 0 || answer->body[length - 1] == '\n')
        return length;
    if (length + 1 < answer->body_room || grow(answer, length + 2)) {
        answer->body[length++] = '\n';
        answer->body[length] = '\0';
    }
    return length;
}

void answer_free(struct answer *answer)
{
    free(answer->body);
    answer->body = NULL;
    answer->body_room = 0;
}

void answer_item(struct op *op, const db_item *item, int64_t sold, const char *guard)
{
    op_answer(op, 200,
              "{\"id\":\"%s\",\"stock\":%" PRId64 ",\"initial_stock\":%" PRId64 ",\"sold\":%" PRId64
              ",\"price\":%" PRId64 ",\"per_user_limit\":%" PRId64 ",\"reserve_s\":%" PRId64
              ",\"guard\":\"%s\",\"fence\":%s,\"version\":%" PRId64 "}",
              item->id, item->stock, item->initial_stock, sold, item->price, item->per_user_limit,
              item->reserve_s, guard, item->fence ? "true" : "false", item->version);
    tag(op, item->version);
}

void answer_account(struct op *op, const db_account *account, const char *guard)
{
    op_answer(op, 200,
              "{\"id\":\"%s\",\"balance\":%" PRId64
              ",\"guard\":\"%s\",\"fence\":%s,\"version\":%" PRId64 "}",
              account->id, account->balance, guard, account->fence ? "true" : "false",
              account->version);
    tag(op, account->version);
}

void answer_order(struct op *op, const db_order *order)
{
    op_answer(op, 200,
              "{\"order_id\":\"%s\",\"item_id\":\"%s\",\"user_id\":\"%s\",\"quantity\":%" PRId64
              ",\"amount\":%" PRId64 ",\"state\":\"%s\",\"version\":%" PRId64
              ",\"created_us\":%" PRId64 ",\"expires_us\":%" PRId64 "}",
              order->id, order->item_id, order->user_id, order->quantity, order->amount,
              db_order_state_text(order->state), order->version, order->created_us,
              order->expires_us);
}

json_t *answer_order_json(const db_order *order)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:I}", "order_id", order->id,
                     "item_id", order->item_id, "user_id", order->user_id, "quantity",
                     order->quantity, "amount", order->amount, "state",
                     db_order_state_text(order->state), "version", order->version, "created_us",
                     order->created_us, "expires_us", order->expires_us);
}

size_t json_escape(char *out, size_t size, const char *text)
{
    size_t n = 0;
    assert(size > 0);
    for (; *text; text++) {
        bool escaped = *text == '"' || *text == '\\';
        if (n + 1 + escaped >= size)
            break;
        if (escaped)
            out[n++] = '\\';
        out[n++] = *text >= 0x20 && *text < 0x7f ? *text : '?';
    }
    out[n] = '\0';
    return n;
}
