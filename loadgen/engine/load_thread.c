#include "load_thread.h"
#include "steady.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256, /* of one epoll_wait */
    OPENING_MAX = 64, /* connections that a thread opens at once before the run: a full listen
                         backlog of 128 would cost a second */
    STOP_POLL_US = 100 * 1000 /* longest time until a waiting thread sees *stop */
};

static int64_t min_us(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void load_thread_move(struct connection *connection, struct connection_list *list)
{
    TAILQ_REMOVE(connection->list, connection, link);
    connection->list = list;
    TAILQ_INSERT_TAIL(list, connection, link);
}

void load_thread_await(struct load_thread *thread, struct connection *connection)
{
    TAILQ_REMOVE(connection->list, connection, link);
    connection->list = &thread->busy;
    struct connection *before = TAILQ_LAST(&thread->busy, connection_list);
    while (before != NULL && before->deadline_us > connection->deadline_us)
        before = TAILQ_PREV(before, connection_list, link);
    if (before != NULL)
        TAILQ_INSERT_AFTER(&thread->busy, before, connection, link);
    else
        TAILQ_INSERT_HEAD(&thread->busy, connection, link);
}

/* Waits for events until until_us, at most STOP_POLL_US. */
static int wait_events(struct load_thread *thread, struct epoll_event *events, int64_t until_us)
{
    int64_t wait_us = until_us - steady_us();
    if (wait_us < 0)
        wait_us = 0;
    if (wait_us > STOP_POLL_US)
        wait_us = STOP_POLL_US;
    struct timespec wait = {.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
    int n = epoll_pwait2(thread->io.epoll_fd, events, EVENTS_MAX, &wait, NULL);
    return n > 0 ? n : 0; /* a signal is no event; the caller looks at *stop */
}

static void take_event(struct load_thread *thread, const struct epoll_event *event)
{
    struct connection *connection = event->data.ptr;
    thread->now_us = steady_us();
    if (connection->state == CONNECTION_CONNECTING)
        connection->sending.sent_us = thread->now_us; /* a waiting request goes out now */
    load_sending_event(thread, connection,
                       connection_ready(connection, &thread->io, event->events));
}

/* Idle connections first, so that no request goes to one that the server has closed. */
static void take_events(struct load_thread *thread, struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        const struct connection *connection = events[i].data.ptr;
        if (connection->state == CONNECTION_IDLE) {
            take_event(thread, &events[i]);
            events[i].data.ptr = NULL;
        }
    }
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == NULL)
            continue;
        take_event(thread, &events[i]);
        if (thread->workload->announce == NULL) /* else the loop starts all of them together */
            load_sending_start_due(thread);
    }
}

static void expire(struct load_thread *thread)
{
    struct connection *connection;
    while ((connection = TAILQ_FIRST(&thread->busy)) != NULL &&
           connection->deadline_us <= thread->now_us)
        load_sending_expire(thread, connection);
    struct timer timer;
    while (timers_take(&thread->wakes, thread->now_us, &timer))
        load_sending_wake(thread, timer.connection);
}

static bool must_stop(const struct load_thread *thread)
{
    return thread->options->stop != NULL &&
           atomic_load_explicit(thread->options->stop, memory_order_relaxed);
}

/* After *stop, a hanging server delays the end by at most LOAD_STOPPED_MS. */
static void stop_soon(struct load_thread *thread)
{
    schedule_stop(thread->cursor.schedule, thread->now_us);
    thread->latest_us = min_us(thread->latest_us, thread->now_us + LOAD_STOPPED_MS * 1000);
    for (struct connection *each = TAILQ_FIRST(&thread->busy); each != NULL;
         each = TAILQ_NEXT(each, link))
        each->deadline_us = min_us(each->deadline_us, thread->latest_us);
}

static int count(const struct connection_list *list)
{
    int n = 0;
    const struct connection *each;
    TAILQ_FOREACH(each, list, link)
    n++;
    return n;
}

/* Opens the thread's connections, a few at a time. If one fails, its first request opens it again
 * and reports the error. */
static void open_connections(struct load_thread *thread)
{
    struct epoll_event events[EVENTS_MAX];
    const struct load_options *options = thread->options;
    uint64_t share =
        (options->requests + (uint64_t)options->threads - 1) / (uint64_t)options->threads;
    int wanted = thread->n_connections;
    if (options->requests > 0 && share < (uint64_t)wanted)
        wanted = (int)share;
    int64_t deadline_us = steady_us() + options->timeout_ms * 1000;
    for (int next = 0, opening = 0; next < wanted || opening > 0; opening = count(&thread->busy)) {
        thread->now_us = steady_us();
        if (thread->now_us >= deadline_us || must_stop(thread))
            wanted = next;
        for (; next < wanted && opening < OPENING_MAX; opening++) {
            struct connection *connection = &thread->connections[next++];
            connection->deadline_us = deadline_us;
            load_thread_await(thread, connection);
            load_sending_event(thread, connection, connection_open(connection, &thread->io));
            if (connection->state == CONNECTION_CLOSED)
                wanted = next;
        }
        int n = wait_events(thread, events, min_us(deadline_us, timers_next_us(&thread->wakes)));
        for (int i = 0; i < n; i++)
            take_event(thread, &events[i]);
        expire(thread);
    }
}

/* Are all requests finished, so that the thread can end? */
static bool is_finished(const struct load_thread *thread, int64_t grace_end_us)
{
    if (!thread->ended && schedule_next_us(&thread->cursor) != SCHEDULE_NEVER_US)
        return false;
    if (!TAILQ_EMPTY(&thread->busy) || !TAILQ_EMPTY(&thread->leaving))
        return false;
    int64_t retry_us = timers_next_us(&thread->retries);
    return retry_us == INT64_MAX || retry_us > grace_end_us;
}

static int64_t next_deadline_us(const struct load_thread *thread, int64_t end_us)
{
    int64_t next = timers_next_us(&thread->wakes);
    if (!TAILQ_EMPTY(&thread->busy))
        next = min_us(next, TAILQ_FIRST(&thread->busy)->deadline_us);
    if (load_sending_free(thread) != NULL) {
        next = min_us(next, timers_next_us(&thread->retries));
        if (load_sending_may_begin(thread))
            next = min_us(next, schedule_next_us(&thread->cursor));
    }
    return thread->ended ? next : min_us(next, end_us);
}

/* Copies what the main thread's progress report needs. wanted: read before. */
static void copy_result(struct load_thread *thread, unsigned wanted)
{
    struct load_result *copy = &thread->copy;
    struct hist latency = copy->latency;
    if (latency.buckets == NULL)
        return;
    pthread_mutex_lock(&thread->gate->mutex);
    *copy = thread->result;
    copy->latency = latency;
    copy->service = copy->no_connection = copy->own_lag = (struct hist){0};
    copy->series = (struct series){0};
    hist_reset(&copy->latency);
    hist_add(&copy->latency, &thread->result.latency);
    thread->copied = wanted;
    pthread_mutex_unlock(&thread->gate->mutex);
}

static void copy_if_wanted(struct load_thread *thread)
{
    unsigned wanted = atomic_load_explicit(&thread->gate->wanted, memory_order_relaxed);
    if (wanted != thread->copied)
        copy_result(thread, wanted);
}

static void loop(struct load_thread *thread)
{
    struct epoll_event events[EVENTS_MAX];
    struct schedule *schedule = thread->cursor.schedule;
    for (;;) {
        thread->now_us = steady_us();
        if (must_stop(thread))
            stop_soon(thread);
        int64_t end_us = atomic_load_explicit(&schedule->end_us, memory_order_relaxed);
        expire(thread);
        bool more = load_sending_start_due(thread);
        copy_if_wanted(thread); /* what is due now has begun, as far as a connection is free */
        if (thread->now_us >= end_us && !more)
            thread->ended = true;
        int64_t timeout_us = thread->options->timeout_ms * 1000;
        int64_t grace_end_us = end_us == SCHEDULE_NEVER_US ? end_us : end_us + timeout_us;
        if (is_finished(thread, min_us(grace_end_us, thread->latest_us)))
            return;
        int n = wait_events(thread, events, more ? 0 : next_deadline_us(thread, end_us));
        take_events(thread, events, n);
    }
}

/* True: the run begins. False: it is cancelled. */
static bool wait_for_start(struct load_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->ready++;
    pthread_cond_broadcast(&gate->changed);
    while (gate->state == GATE_CLOSED)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    bool open = gate->state == GATE_OPEN;
    pthread_mutex_unlock(&gate->mutex);
    return open;
}

void *load_thread_run(void *arg)
{
    struct load_thread *thread = arg;
    prctl(PR_SET_TIMERSLACK, 1UL); /* ns; the default of 50 us would blur the schedule */
    open_connections(thread);
    if (wait_for_start(thread->gate))
        loop(thread);
    thread->result.unfinished += thread->retries.count;
    for (size_t i = 0; i < thread->retries.count; i++)
        thread->result.failed += thread->retries.heap[i].sending.answered;
    copy_result(thread, thread->copied);
    pthread_mutex_lock(&thread->gate->mutex);
    thread->has_ended = true;
    thread->gate->finished++;
    pthread_cond_broadcast(&thread->gate->changed);
    pthread_mutex_unlock(&thread->gate->mutex);
    return NULL;
}

int load_thread_init(struct load_thread *thread, int number, struct schedule *schedule,
                     const struct target_address *addresses)
{
    const struct load_options *options = thread->options;
    schedule_cursor_init(&thread->cursor, schedule, number);
    thread->latest_us = INT64_MAX;
    TAILQ_INIT(&thread->idle);
    TAILQ_INIT(&thread->closed);
    TAILQ_INIT(&thread->busy);
    TAILQ_INIT(&thread->leaving);
    thread->io.addresses = addresses;
    thread->io.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    thread->n_connections =
        (options->connections - number + options->threads - 1) / options->threads;
    thread->connections = calloc((size_t)thread->n_connections, sizeof *thread->connections);
    size_t depth = options->pipeline > 1 ? (size_t)options->pipeline - 1 : 0;
    if (depth > 0)
        thread->behind = calloc((size_t)thread->n_connections * depth, sizeof *thread->behind);
    if (thread->io.epoll_fd < 0 || thread->connections == NULL ||
        (depth > 0 && thread->behind == NULL))
        return -1;
    for (int i = 0; i < thread->n_connections; i++) {
        struct connection *connection = &thread->connections[i];
        connection_init(connection, (number + i * options->threads) % options->n_targets);
        connection->behind = depth > 0 ? &thread->behind[(size_t)i * depth] : NULL;
        connection->list = &thread->closed;
        TAILQ_INSERT_TAIL(&thread->closed, connection, link);
    }
    if (hist_init(&thread->result.latency) != 0 || hist_init(&thread->result.service) != 0 ||
        hist_init(&thread->result.no_connection) != 0 || hist_init(&thread->result.own_lag) != 0 ||
        series_init(&thread->result.series) != 0 ||
        (options->progress != NULL && hist_init(&thread->copy.latency) != 0))
        return -1;
    return 0;
}

void load_thread_free(struct load_thread *thread)
{
    for (int i = 0; thread->connections != NULL && i < thread->n_connections; i++)
        connection_close(&thread->connections[i]);
    free(thread->connections);
    free(thread->behind);
    timers_free(&thread->retries);
    timers_free(&thread->wakes);
    load_result_free(&thread->result);
    hist_free(&thread->copy.latency);
    if (thread->io.epoll_fd >= 0)
        close(thread->io.epoll_fd);
}
