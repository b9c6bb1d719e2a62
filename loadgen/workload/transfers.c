/* Moves money between accounts, in both directions at once. The sum must not change. */
#include "balances.h"

#include <stdio.h>

enum {
    INITIAL = 5000, /* so low that some transfers are refused for lack of money */
    AMOUNT_MAX = 500,
    TRANSFERS_PER_CONNECTION = 50
};

enum use { USE_FROM, USE_TO, USE_AMOUNT };

static uint64_t transfers_requests(const struct options *options)
{
    return (uint64_t)options->connections * TRANSFERS_PER_CONNECTION;
}

static int transfers_prepare(struct run *run)
{
    if (run->options->accounts < 2) {
        snprintf(run->message, sizeof run->message,
                 "transfers need at least two accounts: --accounts 2");
        return -1;
    }
    return balances_create(run, INITIAL);
}

static void transfers_effect(const void *ctx, uint64_t origin,
                             struct balances_change ret[BALANCES_CHANGES_MAX])
{
    const struct run *run = ctx;
    uint64_t n = (uint64_t)run->options->accounts;
    uint64_t from = tally_random(&run->tally, origin, USE_FROM) % n;
    uint64_t step = 1 + tally_random(&run->tally, origin, USE_TO) % (n - 1);
    int64_t amount = 1 + (int64_t)(tally_random(&run->tally, origin, USE_AMOUNT) % AMOUNT_MAX);
    ret[0] = (struct balances_change){.account = from, .amount = -amount};
    ret[1] = (struct balances_change){.account = (from + step) % n, .amount = amount};
}

static void transfers_ask(const struct run *run, uint64_t origin, char path[REMOTE_PATH_MAX],
                          char body[RUN_BODY_MAX])
{
    struct balances_change changes[BALANCES_CHANGES_MAX];
    char from[80], to[80];
    transfers_effect(run, origin, changes);
    balances_account_id(run, changes[0].account, from);
    balances_account_id(run, changes[1].account, to);
    snprintf(path, REMOTE_PATH_MAX, "/v1/transfers");
    snprintf(body, RUN_BODY_MAX, "{\"from\":\"%s\",\"to\":\"%s\",\"amount\":%lld}", from, to,
             (long long)changes[1].amount);
}

static int transfers_judge(struct run *run)
{
    return balances_judge(run, INITIAL, transfers_effect);
}

const struct workload workload_transfers = {
    .name = "transfers",
    .unit = "transfers",
    .heading = "Transfers",
    .mode = LOAD_CLOSED,
    .requests = transfers_requests,
    .prepare = transfers_prepare,
    .ask = transfers_ask,
    .read = balances_read,
    .judge = transfers_judge,
};
