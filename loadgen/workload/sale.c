/* One item, many buyers, one piece each: the flash sale. */
#include "witness.h"

#include <stdio.h>

static uint64_t sale_requests(const struct options *options)
{
    return (uint64_t)options->buyers;
}

static void item_id(const struct run *run, char ret[80])
{
    snprintf(ret, 80, "sale-%s", run->id);
}

/* With at most one order per buyer, the limit is set: it never refuses an order. */
static bool limits_users(const struct run *run)
{
    return run->tally.n <= (uint64_t)run->options->buyers;
}

static int sale_prepare(struct run *run)
{
    char id[80], resource[100];
    int64_t version, limit = limits_users(run) ? 1 : 0;
    item_id(run, id);
    snprintf(resource, sizeof resource, "item:%s", id);
    if (remote_set_terms(run->options, resource, run->message) != 0 ||
        remote_put_item(run->options, id, run->guard, limit, &version, run->message) != 0)
        return -1;
    history_resource(run->history, resource, run->options->stock, version, limit);
    return 0;
}

static void sale_ask(const struct run *run, uint64_t origin, char path[REMOTE_PATH_MAX],
                     char body[RUN_BODY_MAX])
{
    char id[80];
    item_id(run, id);
    snprintf(path, REMOTE_PATH_MAX, "/v1/items/%s/orders", id);
    snprintf(body, RUN_BODY_MAX, "{\"user_id\":\"u%llu\",\"quantity\":1}",
             (unsigned long long)(origin % (uint64_t)run->options->buyers));
}

static void sale_resource(const struct run *run, char path[REMOTE_PATH_MAX])
{
    char id[80];
    item_id(run, id);
    snprintf(path, REMOTE_PATH_MAX, "/v1/items/%s", id);
}

static void sale_read(const struct run *run, uint64_t n, char path[REMOTE_PATH_MAX])
{
    (void)n;
    sale_resource(run, path);
}

static void sale_name(const void *ctx, uint64_t i, char ret[100])
{
    char id[80];
    (void)i;
    item_id(ctx, id);
    snprintf(ret, 100, "item:%s", id);
}

static void sale_effect(const void *ctx, uint64_t origin,
                        struct balances_change ret[BALANCES_CHANGES_MAX])
{
    (void)ctx;
    (void)origin;
    ret[0] = (struct balances_change){.amount = -1};
}

static void sale_judged(void *ctx, uint64_t i, const struct audit_row *own,
                        const struct verdict *verdict, const struct client_count *client)
{
    struct run *run = ctx;
    (void)i;
    (void)verdict;
    run->initial = own->initial;
    run->expected = client->demand < own->initial ? client->demand : own->initial;
    run->actual = own->sold;
}

static int sale_judge(struct run *run)
{
    const struct witness witness = {.n = 1,
                                    .initial = run->options->stock,
                                    .is_item = true,
                                    .one_each = limits_users(run),
                                    .tally = &run->tally,
                                    .name = sale_name,
                                    .origin = run_origin,
                                    .effect = sale_effect,
                                    .judged = sale_judged,
                                    .ctx = run};
    return witness_judge(run, &witness, &run->verdict);
}

const struct workload workload_sale = {
    .name = "sale",
    .unit = "requests",
    .heading = "The sale",
    .sells = true,
    .mode = LOAD_BURST,
    .requests = sale_requests,
    .prepare = sale_prepare,
    .ask = sale_ask,
    .resource = sale_resource,
    .read = sale_read,
    .judge = sale_judge,
};
