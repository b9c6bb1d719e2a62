/* What an answer of the service says went wrong: a problem document (RFC 9457). */
#ifndef ANSWER_PROBLEM_H
#define ANSWER_PROBLEM_H

#include <stddef.h>

enum { ANSWER_DETAIL_MAX = 200 };

/* The problem's name ("sold-out"), the last part of its type; "" in other bodies. */
void answer_problem_name(const char *body, char *out, size_t size);
/* Its "detail"; without one the beginning of body. */
void answer_problem_detail(const char *body, char out[ANSWER_DETAIL_MAX + 1]);

#endif
