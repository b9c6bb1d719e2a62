/* load_run: checks the options, starts the threads, reports progress, sums up. */
#include "load_thread.h"
#include "text.h"
#include "steady.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    PROGRESS_MS = 200,
    FILES_SPARE = 64 /* descriptors for other use */
};

struct load {
    const struct load_options *options;
    struct target_address addresses[LOAD_TARGETS_MAX];
    struct schedule schedule;
    struct load_gate gate;
    struct load_thread *threads[LOAD_THREADS_MAX];
    int n_threads; /* prepared */
    int n_running;
    struct hist latency; /* for the progress report */
    int64_t asked_us;    /* when the threads were last asked for copies; 0: not yet */
};

static const char *wrong_option(const struct load_options *options)
{
    if (options->n_targets < 1 || options->n_targets > LOAD_TARGETS_MAX)
        return "between 1 and 16 targets are needed";
    if (options->threads < 1 || options->threads > LOAD_THREADS_MAX)
        return "threads must be between 1 and 64";
    if (options->connections < options->threads || options->connections > LOAD_CONNECTIONS_MAX)
        return "connections must be between the number of threads and 65536";
    if (options->pipeline < 0 || options->pipeline > LOAD_PIPELINE_MAX)
        return "at most 64 requests may be pipelined";
    if (options->pipeline > 1 && options->abandon_pct > 0)
        return "a pipelined request cannot be abandoned alone";
    if (options->timeout_ms < 1)
        return "the timeout must be at least 1 ms";
    if (schedule_is_open(options->mode) && !(options->rate > 0 && options->rate <= 1e9))
        return "the rate must be between 0 and 1e9 per second";
    if (options->mode == LOAD_RAMP && !(options->ramp_from >= 0 && options->ramp_from <= 1e9))
        return "the rate at the start must be between 0 and 1e9 per second";
    if (options->mode == LOAD_RAMP && options->duration_ms <= 0)
        return "a ramp needs a duration";
    if (options->warmup_ms < 0 || (options->warmup_ms > 0 && options->mode == LOAD_BURST))
        return "a burst has no warm-up: all of it is due at once";
    if (options->duration_ms > 0 && options->warmup_ms >= options->duration_ms)
        return "the warm-up must be shorter than the duration";
    if (options->mode == LOAD_BURST && options->requests == 0)
        return "a burst needs a number of requests";
    if (options->requests == 0 && options->duration_ms <= 0 && options->stop == NULL)
        return "a number of requests or a duration is needed";
    if (!(options->abandon_pct >= 0 && options->abandon_pct <= 100))
        return "the share of abandoned requests must be between 0 and 100 percent";
    return NULL;
}

/* Raises the soft limit of open files as far as needed. */
static int allow_files(int connections, char *message, size_t size)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)connections + FILES_SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return 0;
    if (limit.rlim_max < needed) {
        snprintf(message, size,
                 "%d connections need %llu open files, the limit is %llu: raise it (ulimit -Hn) or "
                 "use fewer connections",
                 connections, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
        return -1;
    }
    limit.rlim_cur = needed;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

static int prepare(struct load *load, const struct load_workload *workload)
{
    const struct load_options *options = load->options;
    for (int i = 0; i < options->n_targets; i++)
        target_address(&options->targets[i], &load->addresses[i]);
    schedule_init(&load->schedule, options);
    for (int i = 0; i < options->threads; i++) {
        struct load_thread *thread = calloc(1, sizeof *thread);
        if (thread == NULL)
            return -1;
        load->threads[load->n_threads++] = thread;
        thread->options = options;
        thread->workload = workload;
        thread->gate = &load->gate;
        if (load_thread_init(thread, i, &load->schedule, load->addresses) != 0)
            return -1;
    }
    return 0;
}

uint64_t load_errors(const uint64_t ends[LOAD_END_COUNT], uint64_t failed)
{
    return ends[LOAD_NOT_SENT] + ends[LOAD_BROKEN] + ends[LOAD_TIMED_OUT] + ends[LOAD_BAD_ANSWER] +
           failed;
}

int64_t load_percentile(const struct load_result *result, double percentile)
{
    const struct hist *latency = &result->latency;
    if (!hist_tells(latency, percentile))
        return LOAD_NO_FIGURE;
    double answered = (double)latency->count;
    double of_answered = percentile * (answered + (double)result->dropped_errors) / answered;
    return of_answered > 100 ? LOAD_NO_FIGURE : hist_percentile(latency, of_answered);
}

bool load_overload(const struct load_result *result, char *out, size_t size)
{
    char dropped[TEXT_MAX], due[TEXT_MAX];
    uint64_t all = result->sent - result->retries + result->dropped;
    if (result->dropped_errors == 0)
        return false;
    snprintf(out, size, "%s of %s requests (%.3g %%) were due and never sent; they count as errors",
             text_count(dropped, (int64_t)result->dropped), text_count(due, (int64_t)all),
             100 * (double)result->dropped / (double)all);
    return true;
}

double load_rate(const struct load_result *result)
{
    return result->measured_us > 0 ? (double)result->answered * 1e6 / (double)result->measured_us
                                   : 0;
}

/* Have all threads made the copies that they were last asked for? Under the gate's mutex. */
static bool are_copied(const struct load *load)
{
    for (int i = 0; i < load->n_running; i++) {
        const struct load_thread *thread = load->threads[i];
        if (!thread->has_ended && thread->copied != atomic_load(&load->gate.wanted))
            return false;
    }
    return load->asked_us > 0;
}

/* Adds up the threads' last copies, under the gate's mutex. */
static void add_copies(struct load *load, struct load_progress *ret)
{
    hist_reset(&load->latency);
    for (int i = 0; i < load->n_running; i++) {
        const struct load_result *copy = &load->threads[i]->copy;
        ret->sent += copy->sent;
        ret->completed += copy->completed;
        ret->measured += copy->measured;
        ret->answered += copy->answered;
        ret->failed += copy->failed;
        ret->retries += copy->retries;
        for (int end = 0; end < LOAD_END_COUNT; end++)
            ret->ends[end] += copy->ends[end];
        for (int status = 200; status < 300; status++)
            ret->accepted += copy->status[status];
        hist_add(&load->latency, &copy->latency);
    }
    ret->latency = &load->latency;
}

/* Reports the copies of the moment when the threads were last asked, and asks for new ones. Without
 * all copies there is no report. */
static void report(struct load *load)
{
    const struct load_options *options = load->options;
    const int64_t at_us = load->asked_us, end_us = atomic_load(&load->schedule.end_us);
    struct load_progress now = {.elapsed_us =
                                    (at_us < end_us ? at_us : end_us) - load->schedule.start_us};
    pthread_mutex_lock(&load->gate.mutex);
    const bool all = are_copied(load);
    if (all)
        add_copies(load, &now);
    pthread_mutex_unlock(&load->gate.mutex);
    if (all) {
        now.due = schedule_due(&load->schedule, at_us, now.sent - now.retries);
        if (!options->progress(options->progress_ctx, &now))
            schedule_stop(&load->schedule, steady_us());
    }
    if (all || at_us == 0) {
        load->asked_us = steady_us();
        atomic_fetch_add(&load->gate.wanted, 1);
    }
}

/* Waits until *counter reaches the number of running threads. If `reporting`, it calls report()
 * five times a second. */
static void await(struct load *load, const int *counter, bool reporting)
{
    struct load_gate *gate = &load->gate;
    pthread_mutex_lock(&gate->mutex);
    while (*counter < load->n_running) {
        if (!reporting) {
            pthread_cond_wait(&gate->changed, &gate->mutex);
            continue;
        }
        int64_t until_us = steady_us() + PROGRESS_MS * 1000;
        while (*counter < load->n_running &&
               steady_wait_until(&gate->changed, &gate->mutex, until_us))
            continue;
        pthread_mutex_unlock(&gate->mutex);
        report(load);
        pthread_mutex_lock(&gate->mutex);
    }
    pthread_mutex_unlock(&gate->mutex);
}

static void open_gate(struct load *load, int state)
{
    pthread_mutex_lock(&load->gate.mutex);
    schedule_begin(&load->schedule, steady_us(), load->options->duration_ms);
    load->gate.state = state;
    pthread_cond_broadcast(&load->gate.changed);
    pthread_mutex_unlock(&load->gate.mutex);
}

static int run_threads(struct load *load)
{
    int error = 0;
    for (int i = 0; i < load->n_threads && error == 0; i++) {
        error = pthread_create(&load->threads[i]->id, NULL, load_thread_run, load->threads[i]);
        load->n_running += error == 0;
    }
    await(load, &load->gate.ready, false);
    open_gate(load, error == 0 ? GATE_OPEN : GATE_CANCELLED);
    await(load, &load->gate.finished, error == 0 && load->options->progress != NULL);
    for (int i = 0; i < load->n_running; i++)
        pthread_join(load->threads[i]->id, NULL);
    errno = error;
    return error == 0 ? 0 : -1;
}

static void add(struct load_result *into, struct load_result *from)
{
    into->sent += from->sent;
    into->completed += from->completed;
    into->unfinished += from->unfinished;
    into->retries += from->retries;
    into->measured += from->measured;
    into->answered += from->answered;
    into->failed += from->failed;
    for (size_t i = 0; i < sizeof into->ends / sizeof into->ends[0]; i++)
        into->ends[i] += from->ends[i];
    for (size_t i = 0; i < sizeof into->status / sizeof into->status[0]; i++)
        into->status[i] += from->status[i];
    series_add(&into->series, &from->series);
    hist_add(&into->latency, &from->latency);
    hist_add(&into->service, &from->service);
    hist_add(&into->no_connection, &from->no_connection);
    hist_add(&into->own_lag, &from->own_lag);
}

static void sum_up(struct load *load, struct load_result *into)
{
    int64_t start_us = load->schedule.start_us;
    into->started_us = start_us;
    for (int i = 0; i < load->n_threads; i++) {
        struct load_thread *thread = load->threads[i];
        add(into, &thread->result);
        into->bytes_in += thread->io.bytes_in;
        into->bytes_out += thread->io.bytes_out;
        into->connects += thread->io.connects;
        if (thread->last_outcome_us - start_us > into->duration_us)
            into->duration_us = thread->last_outcome_us - start_us;
    }
    int64_t sending_us = atomic_load(&load->schedule.end_us) - start_us;
    into->measured_us = (into->duration_us < sending_us ? into->duration_us : sending_us) -
                        load->options->warmup_ms * 1000;
    if (into->measured_us < 0)
        into->measured_us = 0;
    uint64_t begun = into->sent - into->retries;
    uint64_t due = schedule_due(&load->schedule, steady_us(), begun);
    into->dropped = due > begun ? due - begun : 0;
    into->dropped_errors = load->options->allow_dropped ? 0 : into->dropped;
}

static void gate_init(struct load_gate *gate)
{
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

int load_run(const struct load_options *options, const struct load_workload *workload,
             struct load_result *ret, char *message, size_t size)
{
    struct load load = {.options = options};
    struct load_result result = {0};
    const char *wrong = wrong_option(options);
    int status = -1;
    gate_init(&load.gate);
    if (wrong != NULL) {
        snprintf(message, size, "%s", wrong);
        goto out;
    }
    if (allow_files(options->connections, message, size) != 0)
        goto out;
    if ((options->progress != NULL && hist_init(&load.latency) != 0) ||
        prepare(&load, workload) != 0 || hist_init(&result.latency) != 0 ||
        hist_init(&result.service) != 0 || hist_init(&result.no_connection) != 0 ||
        hist_init(&result.own_lag) != 0 || series_init(&result.series) != 0 ||
        run_threads(&load) != 0) {
        snprintf(message, size, "cannot start %d threads with %d connections: %s", options->threads,
                 options->connections, strerror(errno));
        goto out;
    }
    sum_up(&load, &result);
    *ret = result;
    result = (struct load_result){0};
    status = 0;
out:
    load_result_free(&result);
    hist_free(&load.latency);
    for (int i = 0; i < load.n_threads; i++) {
        load_thread_free(load.threads[i]);
        free(load.threads[i]);
    }
    pthread_cond_destroy(&load.gate.changed);
    pthread_mutex_destroy(&load.gate.mutex);
    return status;
}

void load_result_free(struct load_result *result)
{
    hist_free(&result->latency);
    hist_free(&result->service);
    hist_free(&result->no_connection);
    hist_free(&result->own_lag);
    series_free(&result->series);
}
