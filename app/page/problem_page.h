/* The page of each problem: what its `type` in an answer leads to. */
#ifndef PROBLEM_PAGE_H
#define PROBLEM_PAGE_H

#include "op.h"

/* What a problem means and what to do about it: sentences. NULL: nothing is written of it. */
const char *problem_advice(enum problem problem);

/* Answers GET /problems/NAME with plain text; 404 if no problem has the name. */
void problem_page(struct op *op, const char *name);

#endif
