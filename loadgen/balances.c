#include "balances.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

enum { ONE_BY_ONE_MAX = 8 }; /* accounts: each question may read the whole ledger */

void balances_account_id(const struct run *run, uint64_t account, char ret[80])
{
    snprintf(ret, 80, "%s-%s-%llu", run->workload->name, run->id, (unsigned long long)account);
}

int balances_create(struct run *run, int64_t balance)
{
    char id[80];
    for (int64_t i = 0; i < run->options->accounts; i++) {
        if (run_stopped(run)) { /* without all its accounts there is nothing to judge */
            snprintf(run->message, sizeof run->message, "stopped before its load began");
            return -1;
        }
        balances_account_id(run, (uint64_t)i, id);
        if (remote_put_account(run->options, id, run->guard, balance, run->message) != 0)
            return -1;
        char resource[100];
        snprintf(resource, sizeof resource, "account:%s", id);
        history_resource(run->history, resource, balance);
    }
    return 0;
}

/* Adds up, per account, what the client was told. */
static void count_changes(const struct run *run, balances_effect *effect,
                          struct client_count *counts)
{
    for (uint64_t seq = 0; seq < tally_end(&run->tally); seq++) {
        enum tally_state state = run->tally.entries[seq].state;
        if ((state != TALLY_ACCEPTED && state != TALLY_UNKNOWN) ||
            tally_origin(&run->tally, seq) != seq)
            continue;
        struct balances_change changes[BALANCES_CHANGES_MAX] = {0};
        effect(run, seq, changes);
        for (int i = 0; i < BALANCES_CHANGES_MAX && changes[i].amount != 0; i++) {
            struct client_count *count = &counts[changes[i].account];
            if (state == TALLY_ACCEPTED) {
                count->accepted += changes[i].amount;
            } else {
                count->unknown += i == 0; /* a transfer is one request */
                count->unknown_amount += llabs(changes[i].amount);
            }
        }
    }
}

/* all: the audit of all resources; NULL: this one is asked for. */
static int judge_account(struct run *run, const json_t *all, uint64_t account,
                         const struct client_count *count)
{
    char id[80], resource[100];
    struct audit_row audit;
    struct verdict verdict;
    balances_account_id(run, account, id);
    snprintf(resource, sizeof resource, "account:%s", id);
    int found = all != NULL ? remote_audit_row(all, resource, &audit, run->message)
                            : remote_audit(run->options, resource, &audit, run->message);
    if (found != 0)
        return -1;
    verdict_of_account(&audit, count, &verdict);
    run_add_verdict(run, &run->verdict, &verdict, &audit);
    run->initial += audit.initial;
    run->expected += audit.initial + count->accepted;
    run->actual += audit.current;
    return 0;
}

int balances_judge(struct run *run, balances_effect *effect)
{
    uint64_t n = (uint64_t)run->options->accounts;
    struct client_count *counts = calloc(n, sizeof *counts);
    int result = counts == NULL ? -1 : 0;
    if (counts == NULL) {
        snprintf(run->message, sizeof run->message, "not enough memory for %llu accounts",
                 (unsigned long long)n);
        return -1;
    }
    count_changes(run, effect, counts);
    json_t *all = NULL;
    if (n > ONE_BY_ONE_MAX)
        result = remote_audit_all(run->options, &all, run->message);
    for (uint64_t i = 0; i < n && result == 0; i++)
        result = judge_account(run, all, i, &counts[i]);
    json_decref(all);
    free(counts);
    return result;
}
