/* The JSON of answers: one writer per thing that is shown, so that every route shows it alike. */
#ifndef ANSWER_H
#define ANSWER_H

#include "op.h"

#include <stdarg.h>
#include <stddef.h>

/* Makes op's answer a success: status and a JSON text of DB_BODY_MAX bytes at most. Without memory
 * for it, it becomes PROBLEM_OVERLOADED. */
void op_answer(struct op *op, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, status 200, with a document of any length, which is consumed; NULL: there was no memory
 * for it. */
struct json_t;
void op_answer_json(struct op *op, struct json_t *document);
/* The same with a malloc()ed text, which is taken over. */
void op_answer_text(struct op *op, char *text);

void answer_item(struct op *op, const db_item *item, int64_t sold, const char *guard);
void answer_account(struct op *op, const db_account *account, const char *guard);
void answer_order(struct op *op, const db_order *order);

/* Makes op's answer the one that its key got before, to the byte. */
void op_replay(struct op *op, const db_answer *stored);

/* Writes the body, printf-style, DB_BODY_MAX bytes at most; its room grows when it has to and is
 * kept. False: no memory, and the body is empty. */
bool answer_print(struct answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool answer_vprint(struct answer *answer, const char *format, va_list args);
/* Takes over a malloc()ed body. */
void answer_take(struct answer *answer, char *body);
void answer_free(struct answer *answer); /* the body */

/* For tests: what grows a body; NULL: no memory. */
extern void *(*answer_realloc)(void *at, size_t size);

/* Writes text as the inside of a JSON string, NUL-terminated. What does not fit is cut between
 * characters; bytes that are not printable ASCII become '?'. Returns the length written. */
size_t json_escape(char *out, size_t size, const char *text);

#endif
