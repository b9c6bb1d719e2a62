/* Many changes to few balances: first the textbook's pairs, then the load. */
#include "balances.h"

#include <stdio.h>

/* Withdrawals only: losses of deposits and withdrawals could cancel each other. */
enum { AMOUNT_MAX = 500, CHANGES_PER_CONNECTION = 50 };

enum use { USE_ACCOUNT, USE_AMOUNT };

static uint64_t accounts_requests(const struct options *options)
{
    return (uint64_t)options->connections * CHANGES_PER_CONNECTION;
}

/* So high that no withdrawal is refused for lack of money. */
static int64_t balance_of(const struct run *run)
{
    return (int64_t)run->tally.n * AMOUNT_MAX;
}

static int accounts_prepare(struct run *run)
{
    if (run->options->pairs > 0 && textbook_try(run) != 0)
        return -1;
    return balances_create(run, balance_of(run));
}

static void accounts_effect(const void *ctx, uint64_t origin,
                            struct balances_change ret[BALANCES_CHANGES_MAX])
{
    const struct run *run = ctx;
    ret[0].account =
        tally_random(&run->tally, origin, USE_ACCOUNT) % (uint64_t)run->options->accounts;
    ret[0].amount = -1 - (int64_t)(tally_random(&run->tally, origin, USE_AMOUNT) % AMOUNT_MAX);
}

static void accounts_ask(const struct run *run, uint64_t origin, char path[REMOTE_PATH_MAX],
                         char body[RUN_BODY_MAX])
{
    struct balances_change changes[BALANCES_CHANGES_MAX];
    char id[80];
    accounts_effect(run, origin, changes);
    balances_account_id(run, changes[0].account, id);
    snprintf(path, REMOTE_PATH_MAX, "/v1/accounts/%s/transactions", id);
    snprintf(body, RUN_BODY_MAX, "{\"amount\":%lld,\"reason\":\"load\"}",
             (long long)changes[0].amount);
}

static int accounts_judge(struct run *run)
{
    return balances_judge(run, balance_of(run), accounts_effect);
}

const struct workload workload_accounts = {
    .name = "accounts",
    .unit = "changes",
    .heading = "Balances",
    .mode = LOAD_CLOSED,
    .requests = accounts_requests,
    .prepare = accounts_prepare,
    .ask = accounts_ask,
    .read = balances_read,
    .judge = accounts_judge,
};
