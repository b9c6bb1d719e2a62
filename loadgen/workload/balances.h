/* Shared by accounts and transfers: creates the accounts of a run and judges each of them. */
#ifndef BALANCES_H
#define BALANCES_H

#include "run.h"

/* Creates options->accounts accounts with this balance. 0, or -1 with run->message. */
int balances_create(struct run *run, int64_t balance);
void balances_account_id(const struct run *run, uint64_t account, char ret[80]);

/* For workload.read: reads the accounts in turn. */
void balances_read(const struct run *run, uint64_t n, char path[REMOTE_PATH_MAX]);

/* The changes of one request: accounts and amounts. Amount 0 ends the list early. */
enum { BALANCES_CHANGES_MAX = 2 };
struct balances_change {
    uint64_t account;
    int64_t amount;
};
/* ctx: the run. */
typedef void balances_effect(const void *ctx, uint64_t origin,
                             struct balances_change ret[BALANCES_CHANGES_MAX]);

/* Judges the accounts, each created with this balance. Returns 0, or -1 with run->message. */
int balances_judge(struct run *run, int64_t balance, balances_effect *effect);

/* textbook.c: 1,000 - 200 - 300 at the same time, on fresh accounts, until a pair loses an update
 * or options->pairs are done. Fills run->textbook. Returns 0, or -1 with run->message. */
int textbook_try(struct run *run);

#endif
