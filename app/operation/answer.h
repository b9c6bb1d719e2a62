/* The JSON of answers. Each kind of thing has one writer, so that every route shows it alike. */
#ifndef ANSWER_H
#define ANSWER_H

#include "op.h"

#include <stddef.h>

/* Makes op's answer a success: status and a JSON text of at most DB_BODY_MAX bytes. Without memory
 * for the text the answer becomes PROBLEM_OVERLOADED. */
void op_answer(struct op *op, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with status 200 and a document of any length. Takes over the document; NULL: there was
 * no memory for it. */
struct json_t;
void op_answer_json(struct op *op, struct json_t *document);
/* The same with a malloc()ed text. Takes over the text. */
void op_answer_text(struct op *op, char *text);

void answer_item(struct op *op, const db_item *item, int64_t sold, const char *guard);
void answer_account(struct op *op, const db_account *account, const char *guard);
void answer_order(struct op *op, const db_order *order);
/* The same as a member of a list; NULL: no memory. */
struct json_t *answer_order_json(const db_order *order);

/* problem.c: makes op's answer the stored answer of its key, byte for byte. */
void op_replay(struct op *op, const db_answer *stored);

/* Writes the body, printf-style, at most DB_BODY_MAX bytes. Its room grows if needed, and stays.
 * False: no memory, and the body is empty. */
bool answer_print(struct answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Takes over a malloc()ed body. */
void answer_take(struct answer *answer, char *body);
/* Ends the body, if there is one, with a newline: a terminal's prompt then begins a line. Not
 * before the body is stored. Returns its length. Without memory it stays as it is. */
size_t answer_end_line(struct answer *answer);
void answer_free(struct answer *answer); /* the body */

/* For tests: the function that grows a body. It returns NULL without memory. */
extern void *(*answer_realloc)(void *at, size_t size);

/* Writes text as the inside of a JSON string, NUL-terminated. It is cut between characters if it
 * does not fit. Bytes that are not printable ASCII become '?'. Returns the length written. */
size_t json_escape(char *out, size_t size, const char *text);

#endif
