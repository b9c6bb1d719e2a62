/* The JSON of answers: one writer per thing that is shown, so that every route shows it alike. */
#ifndef ANSWER_H
#define ANSWER_H

#include "op.h"

#include <stddef.h>

/* Makes op's answer a success: status and a JSON text. */
void op_answer(struct op *op, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void answer_item(struct op *op, const db_item *item, int64_t sold, const char *guard);
void answer_account(struct op *op, const db_account *account, const char *guard);
void answer_order(struct op *op, const db_order *order);

/* Makes op's answer the one that its key got before, to the byte. */
void op_replay(struct op *op, const db_answer *stored);

/* Writes text as the inside of a JSON string, NUL-terminated. What does not fit is cut between
 * characters; bytes that are not printable ASCII become '?'. Returns the length written. */
size_t json_escape(char *out, size_t size, const char *text);

/* "item:1" from its parts. */
void resource_name(char ret[DB_RESOURCE_MAX + 1], const char *kind, const char *id);

#endif
