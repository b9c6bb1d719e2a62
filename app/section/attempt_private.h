/* Between attempt.c and attempt_outcome.c. */
#ifndef ATTEMPT_PRIVATE_H
#define ATTEMPT_PRIVATE_H

#include "attempt.h"

/* The first of its operations' deadlines. */
int64_t attempt_deadline_us(const struct section *section);

/* Adds op, which has its answer, to those answered. The caller takes it out of the section. */
void attempt_finish(struct attempt *attempt, struct op *op);
/* answered() tests an operation, and may give it its answer. If it returns true, the operation is
 * finished. The others stay, in their order. */
void attempt_finish_if(struct attempt *attempt,
                       bool (*answered)(struct attempt *attempt, struct op *op));
/* The stored answer of op's key, or why it cannot be read, becomes op's answer. False: it has none.
 */
bool attempt_replay(struct attempt *attempt, struct op *op);

/* Gives the problem to all operations of the section. They stay in it. */
void attempt_fail(struct attempt *attempt, enum problem problem, const char *what, const char *why);
/* The same for a failure of the store. The log gets the store's own words, if it has any. */
void attempt_fail_store(struct attempt *attempt, db_status status, const char *told);
/* The same for section->lost, if a lock was lost, else for status. */
void attempt_refuse(struct attempt *attempt, db_status status);

#endif
