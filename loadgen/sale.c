/* One item, many buyers, one piece each: the flash sale. */
#include "run.h"

#include <stdio.h>

static uint64_t sale_requests(const struct options *options)
{
    return (uint64_t)options->buyers;
}

static void item_id(const struct run *run, char ret[80])
{
    snprintf(ret, 80, "sale-%s", run->id);
}

static int sale_prepare(struct run *run)
{
    char id[80], resource[100];
    /* The limit is checked where it never turns a buyer away: each orders once. */
    bool once = run->tally.n <= (uint64_t)run->options->buyers;
    item_id(run, id);
    snprintf(resource, sizeof resource, "item:%s", id);
    if (remote_set_terms(run->options, resource, run->message) != 0 ||
        remote_put_item(run->options, id, run->guard, once ? 1 : 0, run->message) != 0)
        return -1;
    history_resource(run->history, resource, run->options->stock);
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

static int sale_judge(struct run *run)
{
    char id[80], resource[100];
    struct audit_row audit;
    struct verdict verdict;
    int64_t unknown = (int64_t)tally_count(&run->tally, TALLY_UNKNOWN);
    struct client_count client = {
        .accepted = (int64_t)run->accepted,
        .demand = (int64_t)(run->accepted + run->refused) + unknown,
        .unknown = unknown,
        .unknown_amount = unknown,
    };
    item_id(run, id);
    snprintf(resource, sizeof resource, "item:%s", id);
    if (remote_audit(run->options, resource, &audit, run->message) != 0)
        return -1;
    verdict_of_item(&audit, &client, &verdict);
    run_add_verdict(run, &run->verdict, &verdict, &audit);
    run->initial = audit.initial;
    run->expected = client.demand < audit.initial ? client.demand : audit.initial;
    run->actual = audit.sold;
    return 0;
}

const struct workload workload_sale = {
    .name = "sale",
    .unit = "requests",
    .mode = LOAD_BURST,
    .requests = sale_requests,
    .prepare = sale_prepare,
    .ask = sale_ask,
    .resource = sale_resource,
    .judge = sale_judge,
};
