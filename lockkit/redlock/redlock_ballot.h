/* The answers of Redlock's nodes to one command, counted as votes. */
#ifndef LOCKKIT_REDLOCK_BALLOT_H
#define LOCKKIT_REDLOCK_BALLOT_H

#include "redlock_nodes.h"

enum lk_redlock_vote {
    LK_REDLOCK_YES,       /* OK, a number other than 0, the token itself, an array */
    LK_REDLOCK_NO,        /* nil, 0, another text, or a key of another type */
    LK_REDLOCK_NOT_ASKED, /* certainly not done there */
    LK_REDLOCK_NO_ANSWER
};

typedef struct lk_redlock_ballot {
    lk_redlock_call call; /* the caller fills needs_quorum and undo */
    enum lk_redlock_vote vote[LK_REDLOCK_NODES_MAX];
    int n, quorum;
    int yes, no, no_answer; /* the rest was not asked */
    bool nonsense;          /* one of no_answer has answered nonsense */
} lk_redlock_ballot;

/* Asks all nodes with n words. LK_OK: the ballot is counted; LK_NO_MEMORY. */
lk_status lk_redlock_ask(lk_redlock_nodes *nodes, lk_redlock_ballot *ballot, const char *token,
                         int n, const char **words);

/* True: even if all silent nodes said yes, there would be no majority. */
bool lk_redlock_surely_lost(const lk_redlock_ballot *ballot);
/* The status of an outcome without a majority: LK_UNAVAILABLE, LK_UNKNOWN, LK_PROTOCOL. */
lk_status lk_redlock_undecided(const lk_redlock_ballot *ballot);

#endif
