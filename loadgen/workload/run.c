#include "run.h"
#include "history_reads.h"
#include "progress.h"
#include "schedule.h"
#include "text.h"
#include "witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const struct workload *const workloads[] = {
#define WORKLOAD_ENTRY(name) &workload_##name,
    WORKLOAD_MAP(WORKLOAD_ENTRY)
#undef WORKLOAD_ENTRY
        NULL,
};

void run_key(const struct run *run, uint64_t origin, char ret[RUN_KEY_MAX])
{
    snprintf(ret, RUN_KEY_MAX, "%s-%s-%llu", run->workload->name, run->id,
             (unsigned long long)origin);
}

int64_t run_origin(const void *ctx, const char *key)
{
    const struct run *run = ctx;
    char expected[RUN_KEY_MAX];
    const char *number = strrchr(key, '-');
    uint64_t origin = number == NULL ? UINT64_MAX : strtoull(number + 1, NULL, 10);
    if (origin >= run->tally.n)
        return -1;
    run_key(run, origin, expected);
    return strcmp(key, expected) == 0 ? (int64_t)origin : -1;
}

bool run_stopped(const struct run *run)
{
    return options_stopped(run->options);
}

void run_add_verdict(struct run *run, struct verdict *into, const struct verdict *verdict,
                     const struct audit_row *audit)
{
    verdict_add(into, verdict);
    if (audit->has_fork && !run->has_counterexample) {
        run->has_counterexample = true;
        memcpy(run->counterexample, audit->fork, sizeof run->counterexample);
    }
}

/* The verdict of the load and the textbook's pairs together. */
static struct verdict whole_verdict(const struct run *run)
{
    struct verdict whole = run->verdict;
    verdict_add(&whole, &run->textbook.verdict);
    return whole;
}

bool run_is_safe(const struct run *run)
{
    struct verdict whole = whole_verdict(run);
    return run->judged && verdict_is_safe(&whole);
}

uint64_t run_dropped(const struct run *run)
{
    bool whole = run->has_load && !run->interrupted && run->aborted_by == NULL;
    return whole ? run->load.dropped_errors : 0;
}

bool run_is_well(const struct run *run)
{
    return run_is_safe(run) && run->failed == 0 && run_dropped(run) == 0;
}

char *run_verdict_text(const struct run *run, char *out, size_t size)
{
    bool load_is_safe = verdict_is_safe(&run->verdict);
    char count[TEXT_MAX];
    if (!run->judged)
        snprintf(out, size, "NOT JUDGED");
    else if (run->failed > 0 && run_is_safe(run))
        snprintf(out, size, "FAILED %s", text_count(count, (int64_t)run->failed));
    else if (run_dropped(run) > 0 && run_is_safe(run))
        snprintf(out, size, "DROPPED %s", text_count(count, (int64_t)run_dropped(run)));
    else /* the columns beside it show the losses of the load */
        verdict_text(load_is_safe ? &run->textbook.verdict : &run->verdict, out, size);
    return out;
}

bool run_as_claimed(const struct run *run)
{
    struct verdict whole = whole_verdict(run);
    return run->judged && run->failed == 0 && run_dropped(run) == 0 && !run->interrupted &&
           verdict_as_claimed(&whole, run->claims_safe);
}

bool run_cut_short(const struct run *run, char *out, size_t size)
{
    char most[TEXT_MAX];
    if (run->cut_short && out != NULL)
        snprintf(out, size,
                 "the load ended before its duration, after %s requests: one run remembers no more "
                 "until its verdict; give a shorter --duration, or --mode rate",
                 text_count(most, (int64_t)run->options->requests_max));
    return run->cut_short;
}

bool run_keeps_threshold(const struct run *run, int i, double *ret_value)
{
    struct verdict whole = whole_verdict(run);
    struct threshold_figures figures =
        threshold_figures_at_end(&run->load, run->judged ? &whole : NULL);
    bool kept = threshold_kept(&run->options->thresholds[i], &figures, ret_value);
    bool broke = run->aborted_by == &run->options->thresholds[i]; /* late answers mend nothing */
    return kept && !broke && run->has_load;
}

bool run_keeps_thresholds(const struct run *run)
{
    double value;
    bool all = true;
    for (int i = 0; i < run->options->n_thresholds; i++)
        all = run_keeps_threshold(run, i, &value) && all;
    return all;
}

bool run_broke_claim(const struct run *run)
{
    struct verdict whole = whole_verdict(run);
    return run->claims_safe && verdict_is_broken(&whole);
}

char *run_label(const struct run *run, char *out, size_t size)
{
    bool in_process = strcmp(run->guard, "mutex") == 0;
    snprintf(out, size, in_process ? "%s (%d instance%s)" : "%s", run->guard, run->instances,
             run->instances == 1 ? "" : "s");
    return out;
}

/* -- the load ---------------------------------------------------------------------------------- */

static size_t write_request(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                            size_t size)
{
    const struct run *run = ctx;
    char path[REMOTE_PATH_MAX], body[RUN_BODY_MAX], key[RUN_KEY_MAX];
    if (seq >= run->tally.n)
        return 0;
    uint64_t origin = tally_origin(&run->tally, seq);
    run_key(run, origin, key);
    run->workload->ask(run, origin, path, body);
    int length = snprintf(out, size,
                          "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                          "%sContent-Length: %zu\r\nIdempotency-Key: %s\r\n\r\n%s",
                          path, target->host, target->headers, strlen(body), key, body);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

/* Writes the requests into the history before the first is sent, in case this process dies. */
static void announce(void *ctx, const uint64_t *seqs, size_t n)
{
    const struct run *run = ctx;
    char path[REMOTE_PATH_MAX], body[RUN_BODY_MAX], key[RUN_KEY_MAX];
    for (size_t i = 0; i < n; i++) {
        if (seqs[i] >= run->tally.n)
            continue;
        uint64_t origin = tally_origin(&run->tally, seqs[i]);
        run_key(run, origin, key);
        run->workload->ask(run, origin, path, body);
        history_invoke(run->history, key, path, body);
    }
    history_hand_over(run->history);
}

static int64_t take_outcome(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct run *run = ctx;
    if (run->history != NULL) {
        char key[RUN_KEY_MAX];
        run_key(run, tally_origin(&run->tally, seq), key);
        history_complete(run->history, key, answer);
    }
    return tally_outcome(&run->tally, seq, answer);
}

/* How many requests a run may have. Each is kept in memory until the verdict. */
static uint64_t planned_requests(const struct run *run)
{
    const struct options *options = run->options;
    if (options->requests > 0)
        return options->requests;
    /* A burst is due at once: its number is bounded, even with a duration. */
    if (options->duration_ms == 0 || run->mode == LOAD_BURST)
        return run->workload->requests(options);
    const struct load_options load = run_load_options(run);
    return schedule_is_open(run->mode) ? schedule_planned(&load, options->requests_max)
                                       : options->requests_max;
}

static bool watch_load(void *ctx, const struct load_progress *now)
{
    struct run *run = ctx;
    const struct options *options = run->options;
    progress_load(run, now);
    if (options->abort_after_ms == 0 || now->elapsed_us < options->abort_after_ms * 1000)
        return true;
    struct threshold_figures figures = threshold_figures_now(now, options->warmup_ms);
    if (run->aborted_by == NULL)
        run->aborted_by =
            threshold_first_broken(options->thresholds, options->n_thresholds, &figures);
    return run->aborted_by == NULL;
}

struct load_options run_load_options(const struct run *run)
{
    struct load_options load = options_load(run->options, run->mode);
    load.requests = run->tally.n;
    return load;
}

static int send_load(struct run *run)
{
    struct load_options load = run_load_options(run);
    load.progress = watch_load;
    load.progress_ctx = run;
    struct load_workload workload = {.request = write_request,
                                     .outcome = take_outcome,
                                     .announce = run->history != NULL ? announce : NULL,
                                     .ctx = run};
    progress_clear(run->options);
    int result = load_run(&load, &workload, &run->load, run->message, sizeof run->message);
    progress_load_done(run);
    if (result != 0)
        return -1;
    run->has_load = true;
    return 0;
}

/* -- the whole --------------------------------------------------------------------------------- */

static void choose_id(struct run *run)
{
    uint32_t dice = 0;
    if (getrandom(&dice, sizeof dice, 0) != sizeof dice)
        dice = (uint32_t)(uintptr_t)run;
    if (run->options->run_id[0] != '\0')
        strcpy(run->id, run->options->run_id);
    else
        snprintf(run->id, sizeof run->id, "%08x", dice);
}

static bool expected_safe(const struct options *options, const char *guard, bool claimed)
{
    for (int i = 0; i < options->n_expectations; i++)
        if (strcmp(options->expectations[i].guard, guard) == 0)
            return options->expectations[i].safe;
    return claimed;
}

/* Without an audit the run keeps the figures of the load and is not judged. */
static void judge(struct run *run)
{
    progress_step(run->options, "%s under %s: audit", run->workload->name, run->guard);
    run->judged =
        remote_is_there(run->options, run->message) == 0 && run->workload->judge(run) == 0;
    if (run->judged) {
        run->verdict.replay_mismatch += (int64_t)tally_differing(&run->tally);
    } else { /* discard partial results */
        run->verdict = (struct verdict){0};
        run->n_disagreements = 0;
        run->initial = run->expected = run->actual = 0;
    }
}

static int perform(struct run *run)
{
    if (tally_init(&run->tally, planned_requests(run), run->options->seed,
                   run->options->duplicates_pct, run->options->patience_ms) != 0) {
        snprintf(run->message, sizeof run->message, "not enough memory for %llu requests",
                 (unsigned long long)planned_requests(run));
        return -1;
    }
    struct lock_times before;
    run->tally.stop = run->options->stop;
    witness_begin(run);
    if (run->workload->prepare(run) != 0)
        return -1;
    bool timed = lock_times_read(run->options, run->guard, &before) == 0;
    struct history_reads *reads;
    if (history_reads_start(run, &reads) != 0)
        return -1;
    int sent = run_stopped(run) ? 0 : send_load(run);
    history_reads_stop(reads);
    if (sent != 0)
        return -1;
    if (timed && lock_times_read(run->options, run->guard, &run->lock_times) == 0)
        lock_times_since(&run->lock_times, &before);
    tally_settle(&run->tally);
    resolve_unknown(run);
    run->accepted = tally_count(&run->tally, TALLY_ACCEPTED);
    run->refused = tally_count(&run->tally, TALLY_REFUSED);
    run->failed += tally_count(&run->tally, TALLY_FAILED); /* prepare() may have counted some */
    run->interrupted = run_stopped(run);
    run->cut_short = run->mode == LOAD_CLOSED && run->options->requests == 0 &&
                     run->options->duration_ms > 0 &&
                     tally_end(&run->tally) >= run->options->requests_max;
    judge(run);
    return 0;
}

int run_once(const struct options *options, const struct workload *workload,
             const struct remote_service *service, const char *guard,
             struct history_writer *history, struct run *ret)
{
    struct run *run = ret;
    bool claimed;
    *run = (struct run){.workload = workload, .options = options, .history = history};
    snprintf(run->guard, sizeof run->guard, "%s", guard);
    if (remote_claims_safe(service, guard, &claimed, run->message) != 0)
        return -1;
    run->claims_safe = expected_safe(options, guard, claimed);
    run->instances = service->instances;
    run->lanes =
        options->terms.lanes == CHOICE_NONE ? service->lanes : options->terms.lanes == CHOICE_ON;
    run->mode = options->mode_given ? options->mode : workload->mode;
    choose_id(run);
    history_run(history, workload->name, guard, run->id, options->seed);
    int result = perform(run);
    progress_clear(options);
    return result;
}

void run_free(struct run *run)
{
    tally_free(&run->tally);
    if (run->has_load)
        load_result_free(&run->load);
    run->has_load = false;
}
