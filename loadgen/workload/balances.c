#include "witness.h"

#include <stdio.h>

void balances_account_id(const struct run *run, uint64_t account, char ret[80])
{
    snprintf(ret, 80, "%s-%s-%llu", run->workload->name, run->id, (unsigned long long)account);
}

int balances_create(struct run *run, int64_t balance)
{
    char id[80];
    int64_t version;
    for (int64_t i = 0; i < run->options->accounts; i++) {
        if (run_stopped(run)) { /* without all accounts there is nothing to judge */
            snprintf(run->message, sizeof run->message, "stopped before its load began");
            return -1;
        }
        balances_account_id(run, (uint64_t)i, id);
        if (remote_put_account(run->options, id, run->guard, balance, &version, run->message) != 0)
            return -1;
        char resource[100];
        snprintf(resource, sizeof resource, "account:%s", id);
        history_resource(run->history, resource, balance, version, 0);
    }
    return 0;
}

void balances_read(const struct run *run, uint64_t n, char path[REMOTE_PATH_MAX])
{
    char id[80];
    balances_account_id(run, n % (uint64_t)run->options->accounts, id);
    snprintf(path, REMOTE_PATH_MAX, "/v1/accounts/%s", id);
}

static void balances_name(const void *ctx, uint64_t i, char ret[100])
{
    char id[80];
    balances_account_id(ctx, i, id);
    snprintf(ret, 100, "account:%s", id);
}

static void balances_judged(void *ctx, uint64_t i, const struct audit_row *own,
                            const struct verdict *verdict, const struct client_count *client)
{
    struct run *run = ctx;
    (void)i;
    (void)verdict;
    run->initial += own->initial;
    run->expected += own->initial + client->accepted;
    run->actual += own->current;
}

int balances_judge(struct run *run, int64_t balance, balances_effect *effect)
{
    const struct witness witness = {.n = (uint64_t)run->options->accounts,
                                    .initial = balance,
                                    .tally = &run->tally,
                                    .name = balances_name,
                                    .origin = run_origin,
                                    .effect = effect,
                                    .judged = balances_judged,
                                    .ctx = run};
    return witness_judge(run, &witness, &run->verdict);
}
