#include "service_private.h"

#include <inttypes.h>

static const char *const kind_names[OP_KIND_COUNT] = {
#define BUSINESS_NAME(kind, operation, metric, event) [OP_##kind] = metric,
#define OTHER_NAME(kind, metric)                      [OP_##kind] = metric,
    OP_BUSINESS_MAP(BUSINESS_NAME) OP_OTHER_MAP(OTHER_NAME)
#undef BUSINESS_NAME
#undef OTHER_NAME
};

static uint64_t get(atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void one(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    metric_print_head(name, type, help, out);
    fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static const char *outcome_name(int outcome)
{
    return outcome == PROBLEM_NONE        ? "ok"
           : outcome == OUTCOME_REPLAYED  ? "replayed"
           : outcome == OUTCOME_ABANDONED ? "abandoned"
                                          : problem_info((enum problem)outcome)->id;
}

static void print_operations(struct service *service, FILE *out)
{
    metric_print_head("seckill_operations_total", "counter",
                      "Operations answered, by kind and outcome: ok, the problem's name, replayed "
                      "from the idempotency table, or abandoned: the client had gone.",
                      out);
    for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
        for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
            uint64_t n = get(&service->counters.outcomes[kind][outcome]);
            if (n > 0)
                fprintf(out, "seckill_operations_total{kind=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                        kind_names[kind], outcome_name(outcome), n);
        }
    }
    one(out, "seckill_reruns_total", "counter",
        "Sections read and decided again because a row had changed.",
        get(&service->counters.reruns));
    one(out, "seckill_stale_fences_total", "counter", "Writes that the store refused by fence.",
        get(&service->counters.stale_fences));
    metric_print_head("seckill_fence_source", "gauge",
                      "Where the fences of locks come from: 1 for the one in use.", out);
    fprintf(out, "seckill_fence_source{source=\"lock\"} %d\n", !service->config->fence_database);
    fprintf(out, "seckill_fence_source{source=\"database\"} %d\n", service->config->fence_database);
    one(out, "seckill_fences_from_database_total", "counter", "Fences taken from the store.",
        get(&service->counters.fences));
    one(out, "seckill_orders_closed_total", "counter", "Orders closed by the scheduled task.",
        get(&service->counters.closed));
    one(out, "seckill_answers_pruned_total", "counter",
        "Stored answers pruned by the scheduled task.", get(&service->counters.pruned));
    one(out, "seckill_unknown_commits_total", "counter",
        "Commits that the store did not answer: their outcome had to be found out.",
        get(&service->counters.undecided));
    one(out, "seckill_undecided_locks", "gauge",
        "Sets of locks kept because their transaction is not known to be committed or undone.",
        get(&service->counters.kept));
    one(out, "seckill_undecided_locks_lost_total", "counter",
        "Sets of locks of which one ended before its transaction was decided.",
        get(&service->counters.kept_lost));
    metric_print_head("seckill_batch_operations", "histogram",
                      "Operations that shared one lock, one read and one commit.", out);
    metric_print(&service->counters.batch, "seckill_batch_operations", "", out);
}

static void print_steps(struct service *service, FILE *out)
{
    static const char *const names[] = {
        [OP_WAITING] = "queue",  [OP_ACQUIRED] = "lock", [OP_READ] = "read",
        [OP_DECIDED] = "decide", [OP_CHECKED] = "check", [OP_COMMITTED] = "write",
        [OP_RELEASED] = "unlock"};
    struct counters *counters = &service->counters;
    metric_print_head(
        "seckill_step_seconds", "summary",
        "Time of changes answered with success, step by step; tries that were repeated "
        "are within lock (a changed guard) and read (a changed row).",
        out);
    for (int point = OP_WAITING; point <= OP_RELEASED; point++) {
        fprintf(out, "seckill_step_seconds_sum{step=\"%s\"} %.6f\n", names[point],
                (double)get(&counters->step_us[point]) / 1e6);
        fprintf(out, "seckill_step_seconds_count{step=\"%s\"} %" PRIu64 "\n", names[point],
                get(&counters->stepped[point]));
    }
}

static void print_queues(struct service *service, FILE *out)
{
    const struct {
        const char *name;
        struct lanes *lanes;
    } queues[] = {{"writes", service->writes},
                  {"reads", service->reads},
                  {"audits", service->audits},
                  {"asks", service->asks},
                  {"probes", service->probes}};
    metric_print_head("seckill_queue_operations", "gauge", "Operations waiting for a thread.", out);
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++)
        fprintf(out, "seckill_queue_operations{queue=\"%s\"} %zu\n", queues[i].name,
                lanes_waiting(queues[i].lanes));
    one(out, "seckill_accepted_operations", "gauge", "Operations accepted and not yet answered.",
        atomic_load(&service->accepted));
}

static struct guard *next_used(struct service *service, size_t *i)
{
    struct guard *guard;
    while ((guard = guard_at(service->guards, (*i)++)) != NULL) {
        if (atomic_load(&guard->client))
            return guard;
    }
    return NULL;
}

static void print_lock_times(struct service *service, FILE *out)
{
    char labels[64];
    struct guard *guard;
    metric_print_head("seckill_lock_wait_seconds", "histogram", "Time until a lock was granted.",
                      out);
    for (size_t i = 0; (guard = next_used(service, &i)) != NULL;) {
        snprintf(labels, sizeof labels, "guard=\"%s\"", guard->info->name);
        metric_print(&guard->wait_us, "seckill_lock_wait_seconds", labels, out);
    }
    metric_print_head("seckill_lock_hold_seconds", "histogram", "Time that a lock was held.", out);
    for (size_t i = 0; (guard = next_used(service, &i)) != NULL;) {
        snprintf(labels, sizeof labels, "guard=\"%s\"", guard->info->name);
        metric_print(&guard->hold_us, "seckill_lock_hold_seconds", labels, out);
    }
    metric_print_head("seckill_locks_lost_total", "counter",
                      "Locks found lost while they were held, by cause.", out);
    for (size_t i = 0; (guard = next_used(service, &i)) != NULL;) {
        for (int cause = 0; cause < GUARD_LOSSES; cause++)
            fprintf(out, "seckill_locks_lost_total{guard=\"%s\",cause=\"%s\"} %" PRIu64 "\n",
                    guard->info->name, lk_loss_text((lk_loss)cause), get(&guard->lost[cause]));
    }
}

static void print_lock_counts(struct service *service, FILE *out)
{
    metric_print_head("seckill_locks_total", "counter",
                      "What lock clients did: attempts, grants, commands to servers ...", out);
    struct guard *guard;
    for (size_t i = 0; (guard = next_used(service, &i)) != NULL;) {
        lk_stats stats;
        lk_client_stats(atomic_load(&guard->client), &stats);
        const struct {
            const char *event;
            uint64_t n;
        } events[] = {{"attempt", stats.attempts},
                      {"grant", stats.grants},
                      {"refusal", stats.refusals},
                      {"timeout", stats.timeouts},
                      {"release", stats.releases},
                      {"renewal", stats.renewals},
                      {"lost", stats.lost},
                      {"cleanup", stats.cleanups},
                      {"command", stats.commands},
                      {"pending", stats.pending},
                      {"pending-done", stats.pending_done}};
        for (size_t j = 0; j < sizeof events / sizeof events[0]; j++)
            fprintf(out, "seckill_locks_total{guard=\"%s\",event=\"%s\"} %" PRIu64 "\n",
                    guard->info->name, events[j].event, events[j].n);
    }
}

static void print_store(struct service *service, FILE *out)
{
    db_stats stats;
    db_get_stats(service->db, &stats);
    one(out, "seckill_store_commits_total", "counter", "Groups committed.", stats.commits);
    one(out, "seckill_store_transactions_total", "counter", "Transactions run.", stats.runs);
    one(out, "seckill_store_rollbacks_total", "counter", "Transactions undone.", stats.rollbacks);
    one(out, "seckill_store_busy_retries_total", "counter",
        "Times that another process held the database.", stats.busy_retries);
    one(out, "seckill_store_checkpoints_total", "counter", "Checkpoints.", stats.checkpoints);
    one(out, "seckill_store_group_largest", "gauge", "Most transactions in one commit.",
        stats.group_largest);
    metric_print_head("seckill_store_commit_seconds_total", "counter", "Time spent in commits.",
                      out);
    fprintf(out, "seckill_store_commit_seconds_total %.6f\n", (double)stats.commit_us_total / 1e6);
}

void service_metrics(struct service *service, FILE *out)
{
    print_operations(service, out);
    print_steps(service, out);
    print_queues(service, out);
    print_lock_times(service, out);
    print_lock_counts(service, out);
    print_store(service, out);
}
