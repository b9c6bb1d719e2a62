/*
 * The lost update of the textbooks: an account has 1,000. A takes 200 and B takes 300 at the same
 * time. Both read 1,000, and the account ends at 700 or 800 instead of 500. Two requests overlap
 * only by chance. So fresh accounts are tried until a pair loses, up to a bound.
 */
#include "progress.h"
#include "witness.h"

#include <stdio.h>
#include <string.h>

enum { INITIAL = 1000, FIRST = -200, SECOND = -300, BATCH = 10 };

struct pairs {
    struct run *run;
    struct tally tally; /* of this batch: pair p is requests 2p and 2p + 1 */
    int first;          /* number of the batch's first pair */
};

static void account_of(const struct pairs *pairs, uint64_t seq, char ret[80])
{
    snprintf(ret, 80, "textbook-%s-%llu", pairs->run->id,
             (unsigned long long)((uint64_t)pairs->first + seq / 2));
}

static int amount_of(uint64_t seq)
{
    return seq % 2 == 0 ? FIRST : SECOND;
}

static void pair_key(const struct pairs *pairs, uint64_t seq, char ret[RUN_KEY_MAX])
{
    char id[80];
    account_of(pairs, seq, id);
    snprintf(ret, RUN_KEY_MAX, "%.50s%d", id, amount_of(seq));
}

static size_t write_request(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                            size_t size)
{
    const struct pairs *pairs = ctx;
    char id[80], key[RUN_KEY_MAX], body[80];
    if (seq >= pairs->tally.n)
        return 0;
    account_of(pairs, seq, id);
    pair_key(pairs, seq, key);
    snprintf(body, sizeof body, "{\"amount\":%d,\"reason\":\"textbook\"}", amount_of(seq));
    int length = snprintf(out, size,
                          "POST /v1/accounts/%s/transactions HTTP/1.1\r\nHost: %s\r\n"
                          "Content-Type: application/json\r\n%sContent-Length: %zu\r\n"
                          "Idempotency-Key: %s\r\n\r\n%s",
                          id, target->host, target->headers, strlen(body), key, body);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

static int64_t take_outcome(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct pairs *pairs = ctx;
    return tally_outcome(&pairs->tally, seq, answer);
}

static void pair_name(const void *ctx, uint64_t i, char ret[100])
{
    char id[80];
    account_of(ctx, 2 * i, id);
    snprintf(ret, 100, "account:%s", id);
}

/* A linear search: a batch is small. */
static int64_t pair_origin(const void *ctx, const char *key)
{
    const struct pairs *pairs = ctx;
    char own[RUN_KEY_MAX];
    for (uint64_t seq = 0; seq < pairs->tally.n; seq++) {
        pair_key(pairs, seq, own);
        if (strcmp(own, key) == 0)
            return (int64_t)seq;
    }
    return ROWS_FOREIGN;
}

static void pair_effect(const void *ctx, uint64_t origin,
                        struct balances_change ret[BALANCES_CHANGES_MAX])
{
    (void)ctx;
    ret[0] = (struct balances_change){.account = origin / 2, .amount = amount_of(origin)};
}

static void pair_judged(void *ctx, uint64_t i, const struct audit_row *own,
                        const struct verdict *verdict, const struct client_count *client)
{
    struct pairs *pairs = ctx;
    struct textbook *textbook = &pairs->run->textbook;
    (void)i;
    (void)client;
    if (textbook->lost == 0)
        textbook->final = own->current;
    textbook->lost += verdict->lost_updates > 0;
    textbook->pairs++;
}

static int judge_batch(struct pairs *pairs)
{
    struct run *run = pairs->run;
    const struct witness witness = {.n = pairs->tally.n / 2,
                                    .initial = INITIAL,
                                    .tally = &pairs->tally,
                                    .name = pair_name,
                                    .origin = pair_origin,
                                    .effect = pair_effect,
                                    .judged = pair_judged,
                                    .ctx = pairs};
    run->failed += tally_count(&pairs->tally, TALLY_FAILED);
    if (run->tally.failure[0] == '\0')
        memcpy(run->tally.failure, pairs->tally.failure, sizeof run->tally.failure);
    return witness_judge(run, &witness, &run->textbook.verdict);
}

static int try_batch(struct pairs *pairs)
{
    struct run *run = pairs->run;
    const struct options *options = run->options;
    struct load_result result;
    struct load_workload workload = {
        .request = write_request, .outcome = take_outcome, .ctx = pairs};
    /* Two connections, one per instance if there are two. Together they send one pair at a time. */
    struct load_options load = {.n_targets = options->n_targets < 2 ? 1 : 2,
                                .mode = LOAD_CLOSED,
                                .connections = 2,
                                .threads = 1,
                                .requests = pairs->tally.n,
                                .timeout_ms = options->timeout_ms,
                                .seed = options->seed,
                                .stop = options->stop};
    memcpy(load.targets, options->targets, sizeof load.targets);
    for (uint64_t seq = 0; seq < pairs->tally.n; seq += 2) {
        char id[80];
        account_of(pairs, seq, id);
        if (remote_put_account(options, id, run->guard, INITIAL, NULL, run->message) != 0)
            return -1;
    }
    if (load_run(&load, &workload, &result, run->message, sizeof run->message) != 0)
        return -1;
    load_result_free(&result);
    return judge_batch(pairs);
}

int textbook_try(struct run *run)
{
    struct pairs pairs = {.run = run};
    int bound = run->options->pairs, result = 0;
    run->textbook.initial = INITIAL;
    run->textbook.expected = INITIAL + FIRST + SECOND;
    while (pairs.first < bound && run->textbook.lost == 0 && result == 0 && !run_stopped(run)) {
        int batch = bound - pairs.first < BATCH ? bound - pairs.first : BATCH;
        progress_step(run->options, "accounts under %s: 1,000 - 200 - 300, pair %d of at most %d",
                      run->guard, pairs.first + 1, bound);
        if (tally_init(&pairs.tally, 2 * (uint64_t)batch, run->options->seed, 0,
                       run->options->patience_ms) != 0) {
            snprintf(run->message, sizeof run->message, "not enough memory");
            return -1;
        }
        pairs.tally.stop = run->options->stop;
        result = try_batch(&pairs);
        tally_free(&pairs.tally);
        pairs.first += batch;
    }
    return result;
}
