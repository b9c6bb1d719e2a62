/*
 * The judge of a round. It reads the clients' books and the rows of the database, and compares them
 * by SQL and by the checkers of histories. It asks nothing of the service.
 *
 * Two kinds of finding:
 * - a violation: no guard and no setting may do this
 * - a loss: an update was overwritten. It is a violation where guard and settings claim that none
 *   is; elsewhere it is what a weak guard is expected to do now and then.
 */
#ifndef TORTURE_JUDGE_H
#define TORTURE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TORTURE_FINDING_MAX = 1400 };

struct torture_verdict {
    int64_t violations, losses;
    int64_t asked, decided, undecided, attempts; /* keys of the books; their sendings */
    int64_t undecided_checks;                    /* of the checkers of histories */
    char first[TORTURE_FINDING_MAX];             /* the first violation, else the first loss */
};

/* books: a history file. store: "sqlite:FILE" or "postgres://...". archive: the file to which rows
 * of the ledger were moved; NULL: none were. All rules hold of both together. Returns 0, or -1 when
 * it could not judge, with a message in ret->first. */
int torture_judge(const char *books, const char *store, const char *archive, bool claims_safe,
                  struct torture_verdict *ret);
/* A violation that somebody else saw. */
void torture_verdict_violation(struct torture_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
