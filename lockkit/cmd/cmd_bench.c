/* lockkit bench: what a lock costs on your servers. */
#include "cmd.h"
#include "cmd_measure.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_THREADS = 256,
    KEY_KEYS,
    KEY_EACH,
    KEY_HOLD,
    KEY_DURATION,
    KEY_SHARED,
    KEY_PERMITS,
    KEY_QUEUE,
    KEY_HANDOVERS,
    KEY_SPIN,
    KEY_JSON
};
enum { SECONDS_MAX = 86400, HOLD_US_MAX = 10000000, HANDOVERS_MAX = 1000000000, MS_PER_S = 1000 };

struct plan {
    struct cmd_target target;
    struct measure_plan measure;
    bool json;
};

static int64_t duration_of(struct argp_state *state, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0.01 && seconds <= SECONDS_MAX))
        argp_error(state, "--duration: '%s' is not a number of seconds from 0.01 to %d", text,
                   SECONDS_MAX);
    return (int64_t)(seconds * MS_PER_S);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct plan *plan = state->input;
    struct measure_plan *m = &plan->measure;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &plan->target;
        return 0;
    case KEY_THREADS:
        m->threads = (int)cmd_number(state, "--threads", arg, 1, MEASURE_THREADS_MAX);
        return 0;
    case KEY_KEYS:
        m->keys = strcmp(arg, "own") == 0   ? 0
                  : strcmp(arg, "one") == 0 ? 1
                                            : (int)cmd_number(state, "--keys", arg, 1, 1 << 20);
        return 0;
    case KEY_EACH:
        m->each = (int)cmd_number(state, "--each", arg, 1, LK_EACH_MAX);
        return 0;
    case KEY_HOLD:
        m->hold_us = cmd_number(state, "--hold-us", arg, 0, HOLD_US_MAX);
        return 0;
    case KEY_DURATION:
        m->duration_ms = duration_of(state, arg);
        return 0;
    case KEY_SHARED:
        m->mode = LK_SHARED;
        return 0;
    case KEY_PERMITS:
        m->permits = (uint32_t)cmd_number(state, "--permits", arg, 1, INT32_MAX);
        return 0;
    case KEY_HANDOVERS:
        m->local_handovers = (int32_t)cmd_number(state, "--handovers", arg, 1, HANDOVERS_MAX);
        m->local_queue = true;
        return 0;
    case KEY_QUEUE:
        m->local_queue = true;
        return 0;
    case KEY_SPIN:
        m->spin_us = cmd_number(state, "--spin-us", arg, 0, LK_SPIN_US_MAX);
        if (m->spin_us == 0)
            m->spin_us = -1; /* none, where 0 is the default */
        return 0;
    case KEY_JSON:
        plan->json = true;
        return 0;
    case ARGP_KEY_END:
        if (m->each > 0 && m->keys != 0)
            argp_error(state, "--each takes each thread's own keys: leave out --keys");
        if (m->keys == 0)
            m->keys = m->threads * (m->each > 0 ? m->each : 1);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_wait(const char *name, const struct measure_result *r, double wait_us)
{
    if (r->pairs > 0)
        printf("  %-28s %9.3f ms\n", name, wait_us / MS_PER_S);
    else
        printf("  %-28s %12s\n", name, "-");
}

static void print_text(const struct plan *plan, const struct measure_result *r)
{
    const struct measure_plan *m = &plan->measure;
    printf("%s, %d thread%s on %d key%s, held for %" PRId64 " us, %.1f s\n", m->guard, m->threads,
           m->threads == 1 ? "" : "s", m->keys, m->keys == 1 ? "" : "s", m->hold_us, r->seconds);
    if (m->each > 0)
        printf("  %-28s %12d\n", "locks at a time", m->each);
    printf("  %-28s %12.0f\n", "lock + unlock pairs/s", r->pairs_per_s);
    printf("  %-28s %12.0f\n", "hand-overs/s", r->hand_overs_per_s);
    if (m->local_handovers > 0)
        printf("  %-28s %12.0f\n", "within the process/s", r->local_per_s);
    printf("  %-28s %12.3f\n", "Jain's fairness index", r->jain);
    print_wait("wait p50", r, r->wait_p50_us);
    print_wait("wait p99", r, r->wait_p99_us);
    print_wait("wait max", r, r->wait_max_us);
    printf("  %-28s %12.2f\n", "commands per pair", r->commands_per_pair);
    printf("  %-28s %12" PRIu64 "%s%s\n", "failures", r->failures, r->failures > 0 ? ": " : "",
           r->failures > 0 ? lk_status_text(r->first_failure) : "");
    printf("  %-28s %12" PRIu64 "\n", "held by too many at once", r->overlaps);
}

static json_t *wait_or_null(const struct measure_result *r, double wait_us)
{
    return r->pairs > 0 ? json_real(wait_us) : json_null();
}

static void print_json(const struct plan *plan, const struct measure_result *r)
{
    const struct measure_plan *m = &plan->measure;
    json_t *all = json_pack(
        "{s:s,s:i,s:i,s:i,s:I,s:I,s:f,s:I,s:f,s:f,s:f,s:f,s:o,s:o,s:o,s:f,s:I,s:s?,s:I}", "guard",
        m->guard, "threads", m->threads, "keys", m->keys, "each", m->each, "hold_us",
        (json_int_t)m->hold_us, "duration_ms", (json_int_t)m->duration_ms, "seconds", r->seconds,
        "pairs", (json_int_t)r->pairs, "pairs_per_s", r->pairs_per_s, "hand_overs_per_s",
        r->hand_overs_per_s, "local_per_s", r->local_per_s, "jain", r->jain, "wait_p50_us",
        wait_or_null(r, r->wait_p50_us), "wait_p99_us", wait_or_null(r, r->wait_p99_us),
        "wait_max_us", wait_or_null(r, r->wait_max_us), "commands_per_pair", r->commands_per_pair,
        "failures", (json_int_t)r->failures, "first_failure",
        r->failures > 0 ? lk_status_text(r->first_failure) : NULL, "overlaps",
        (json_int_t)r->overlaps);
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

static const struct argp_option own_options[] = {
    {NULL, 0, NULL, 0, "The load:", 2},
    {"threads", KEY_THREADS, "N", 0, "Threads that lock and unlock (default 1)", 2},
    {"keys", KEY_KEYS, "own|one|N", 0, "A key for each thread, one for all, or N (default own)", 2},
    {"each", KEY_EACH, "N", 0, "So many keys of each thread at a time, at once where the guard can",
     2},
    {"hold-us", KEY_HOLD, "N", 0, "Time between lock and unlock (default 0)", 2},
    {"duration", KEY_DURATION, "S", 0, "Seconds (default 3)", 2},
    {"shared", KEY_SHARED, NULL, 0, "As readers (redis-readwrite, zk-readwrite)", 2},
    {"permits", KEY_PERMITS, "N", 0, "So many at once (redis-semaphore)", 2},
    {"queue", KEY_QUEUE, NULL, 0, "Waiting threads queue, and only the first asks the server", 2},
    {"handovers", KEY_HANDOVERS, "N", 0,
     "With such a line: hand the lock on within the process so many times in a row at most", 2},
    {"spin-us", KEY_SPIN, "N", 0,
     "Look so long for Redis' answer, or as the first in line, before sleeping, while nobody else "
     "wants the processor; 0: sleep at once (default 50)",
     2},
    {"json", KEY_JSON, NULL, 0, "As JSON", 2},
    {0}};

static const struct argp_child children[] = {{&cmd_target_argp, 0, NULL, 0}, {0}};

static const struct argp bench_argp = {
    .options = own_options,
    .parser = parse,
    .doc =
        "Locks and unlocks as fast as it can and shows what it got.\v"
        "Examples:\n"
        "  lockkit bench -g redis-fair --threads 8 --keys one\n"
        "  lockkit bench -e redis://10.0.0.7:6379 --threads 64 --json\n"
        "\nINT and TERM end it early: it shows what it has measured until then.\n"
        "\nExit status: 0; 1 a lock was refused, lost, or held by too many at once; 64 usage, 69 "
        "the lock server is away, 70 other failures, 128+N ended early by signal N.",
    .children = children};

/* Unknown guards are told of by lk_open(). */
static bool offers(const char *guard, const struct measure_plan *measure)
{
    const lk_provider_info *info = lk_provider_find(guard);
    return info == NULL || ((measure->mode == LK_EXCLUSIVE || (info->caps & LK_CAP_SHARED)) &&
                            (measure->permits <= 1 || (info->caps & LK_CAP_PERMITS)));
}

/* Blocks them, too; those that are ignored stay so, as nohup(1) wants it. */
static sigset_t signals_that_end_it(void)
{
    static const int signals[] = {SIGINT, SIGTERM};
    sigset_t ret;
    sigemptyset(&ret);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&ret, signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &ret, NULL);
    return ret;
}

int cmd_bench(int argc, char **argv)
{
    struct plan plan = {.measure = {.threads = 1, .duration_ms = 3000}};
    struct measure_result result;
    lk_error error;
    cmd_parse(&bench_argp, argc, argv, &plan);
    plan.measure.guard = plan.target.guard;
    plan.measure.endpoints = plan.target.endpoints;
    if (!offers(plan.target.guard, &plan.measure))
        return cmd_fail(plan.target.guard, LK_UNSUPPORTED);
    const sigset_t ended_by = signals_that_end_it();
    plan.measure.ended_by = &ended_by;
    lk_status status = measure(&plan.measure, &result, &error);
    if (status != LK_OK)
        return cmd_fail_with(error.message, status);
    if (plan.json)
        print_json(&plan, &result);
    else
        print_text(&plan, &result);
    if (result.ended_by != 0)
        return CMD_SIGNALLED + result.ended_by;
    return result.failures == 0 && result.overlaps == 0 ? CMD_OK : CMD_FAILED;
}
