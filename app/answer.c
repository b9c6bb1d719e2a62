#include "answer.h"
#include "format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void op_answer(struct op *op, int status, const char *format, ...)
{
    struct answer *answer = &op->answer;
    va_list args;
    va_start(args, format);
    int length = format_text(answer->body, sizeof answer->body, format, args);
    va_end(args);
    assert(length >= 0 && (size_t)length < sizeof answer->body); /* DB_BODY_MAX holds them all */
    answer->status = status;
    answer->problem = PROBLEM_NONE;
    answer->decided = true;
}

void answer_item(struct op *op, const db_item *item, int64_t sold, const char *guard)
{
    op_answer(op, 200,
              "{\"id\":\"%s\",\"stock\":%" PRId64 ",\"initial_stock\":%" PRId64 ",\"sold\":%" PRId64
              ",\"price\":%" PRId64 ",\"per_user_limit\":%" PRId64 ",\"reserve_s\":%" PRId64
              ",\"guard\":\"%s\",\"fence\":%s,\"version\":%" PRId64 "}",
              item->id, item->stock, item->initial_stock, sold, item->price, item->per_user_limit,
              item->reserve_s, guard, item->fence ? "true" : "false", item->version);
}

void answer_account(struct op *op, const db_account *account, const char *guard)
{
    op_answer(op, 200,
              "{\"id\":\"%s\",\"balance\":%" PRId64
              ",\"guard\":\"%s\",\"fence\":%s,\"version\":%" PRId64 "}",
              account->id, account->balance, guard, account->fence ? "true" : "false",
              account->version);
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

void resource_name(char ret[DB_RESOURCE_MAX + 1], const char *kind, const char *id)
{
    int length = snprintf(ret, DB_RESOURCE_MAX + 1, "%s:%s", kind, id);
    assert(length > 0 && length <= DB_RESOURCE_MAX);
}
