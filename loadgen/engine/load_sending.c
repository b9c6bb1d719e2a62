#include "load_thread.h"
#include "splitmix.h"
#include "steady.h"

#include <assert.h>
#include <string.h>

enum {
    STARTS_MAX = 64,            /* sendings started before events are handled */
    ABANDON_WAIT_MAX_US = 5000, /* longest wait of an abandoning client for its answer */
    BACKLOG_RETRY_US = 1000     /* pause after a full backlog */
};

/* Is this first sending abandoned, and how long after it was sent? Half of them at once. The same
 * seed gives the same choice. */
static bool is_abandoned(const struct load_options *options, const struct sending *sending,
                         int64_t *ret_wait_us)
{
    if (sending->attempt > 0)
        return false;
    uint64_t x = splitmix(options->seed ^ splitmix(sending->seq));
    double share = (double)(x >> 11) * 0x1p-53;
    uint64_t y = splitmix(x);
    *ret_wait_us = (y & 1) != 0 ? 0 : 1 + (int64_t)((y >> 1) % ABANDON_WAIT_MAX_US);
    return share * 100.0 < options->abandon_pct;
}

static int64_t warm_us(const struct load_thread *thread)
{
    return thread->cursor.schedule->start_us + thread->options->warmup_ms * 1000;
}

/* Was it due after the warm-up? */
static bool is_measured(const struct load_thread *thread, const struct sending *sending)
{
    return sending->intended_us >= warm_us(thread);
}

/* Is it now between the warm-up and the end of the duration? */
static bool is_in_time(const struct load_thread *thread)
{
    return thread->now_us >= warm_us(thread) &&
           thread->now_us <=
               atomic_load_explicit(&thread->cursor.schedule->end_us, memory_order_relaxed);
}

/* The series point of now_us. */
static struct series_point *series_now(struct load_thread *thread)
{
    return series_at(&thread->result.series, thread->now_us - thread->cursor.schedule->start_us);
}

/* 409 is a decision: sold out, not enough money. */
static bool is_error(int status)
{
    return status >= 400 && status != 409;
}

/* Reports the outcome to the workload, then finishes the request or schedules its retry. */
static void conclude(struct load_thread *thread, struct connection *connection, enum load_end how)
{
    struct load_result *result = &thread->result;
    const struct sending *sending = &connection->sending;
    struct series_point *point = series_now(thread);
    bool measured = is_measured(thread, sending);
    struct load_answer answer = {
        .end = how,
        .body = "",
        .retry_after_ms = -1,
        .sent_us = sending->sent_us,
        .answered_us = thread->now_us,
        .target = connection->target,
    };
    if (how == LOAD_ANSWERED) {
        answer.status = connection->parser.status;
        answer.body = connection_body(connection, &thread->io);
        answer.body_length = connection->body_length;
        answer.replayed = connection->parser.replayed;
        answer.retry_after_ms = connection->parser.retry_after_ms;
        result->status[answer.status]++;
        point->answered++;
        point->accepted += answer.status / 100 == 2;
        if (measured)
            hist_record(&result->service, thread->now_us - sending->sent_us);
    }
    result->ends[how]++;
    point->errors += how != LOAD_ANSWERED && how != LOAD_ABANDONED;
    thread->last_outcome_us = thread->now_us;

    int64_t delay_ms = thread->workload->outcome(thread->workload->ctx, sending->seq, &answer);
    if (delay_ms < 0) {
        bool failed = is_error(answer.status);
        thread->open--;
        result->completed++;
        result->measured += measured;
        result->answered += how == LOAD_ANSWERED && is_in_time(thread);
        result->failed += failed;
        point->errors += failed;
        if (how == LOAD_ANSWERED || how == LOAD_TIMED_OUT) {
            int64_t latency_us = thread->now_us - sending->intended_us;
            series_latency(point, latency_us);
            if (measured)
                hist_record(&result->latency, latency_us);
        }
    } else {
        struct timer retry = {.due_us = thread->now_us + delay_ms * 1000, .sending = *sending};
        retry.sending.attempt++;
        retry.sending.answered = how == LOAD_ANSWERED;
        if (!timers_add(&thread->retries, &retry)) { /* as if the end had cut the retry off */
            thread->open--;
            result->unfinished++;
            result->failed += retry.sending.answered;
        }
    }
}

static void wake_later(struct load_thread *thread, struct connection *connection, int64_t wait_us)
{
    struct timer wake = {.due_us = thread->now_us + wait_us, .connection = connection};
    if (!timers_add(&thread->wakes, &wake))
        load_sending_expire(thread, connection);
}

static void leave(struct load_thread *thread, struct connection *connection)
{
    conclude(thread, connection, LOAD_ABANDONED);
    connection_close(connection);
    load_thread_move(connection, &thread->closed);
}

static void sent(struct load_thread *thread, struct connection *connection)
{
    int64_t wait_us;
    if (!is_abandoned(thread->options, &connection->sending, &wait_us))
        return;
    connection_leave(connection);
    load_thread_move(connection, &thread->leaving);
    if (wait_us == 0)
        leave(thread, connection);
    else
        wake_later(thread, connection, wait_us);
}

/* The deadline of the answer to a request sent at sent_us. */
static int64_t answer_deadline_us(const struct load_thread *thread, int64_t sent_us)
{
    int64_t deadline_us = sent_us + thread->options->timeout_ms * 1000;
    return deadline_us < thread->latest_us ? deadline_us : thread->latest_us;
}

/* The next pipelined request becomes the oldest. False: there is none. */
static bool advance(struct load_thread *thread, struct connection *connection)
{
    if (connection->n_behind == 0)
        return false;
    connection->sending = connection->behind[0];
    memmove(connection->behind, connection->behind + 1,
            --connection->n_behind * sizeof *connection->behind);
    connection->deadline_us = answer_deadline_us(thread, connection->sending.sent_us);
    return true;
}

/* The connection is closed: all requests under way on it end. */
static void ended(struct load_thread *thread, struct connection *connection, enum load_end how)
{
    do
        conclude(thread, connection, how);
    while (advance(thread, connection));
    load_thread_move(connection, &thread->closed);
}

static void answered(struct load_thread *thread, struct connection *connection)
{
    enum connection_event event = CONNECTION_ANSWER;
    while (event == CONNECTION_ANSWER) {
        conclude(thread, connection, LOAD_ANSWERED);
        connection_release(connection);
        if (!advance(thread, connection))
            break;
        if (connection->state == CONNECTION_CLOSED) { /* the server closes after this answer */
            ended(thread, connection, LOAD_BROKEN);
            return;
        }
        event = connection_more(connection, &thread->io);
    }
    if (event != CONNECTION_ANSWER && event != CONNECTION_NOTHING)
        load_sending_event(thread, connection, event);
    else if (connection->state == CONNECTION_IDLE)
        load_thread_move(connection, &thread->idle);
    else if (connection->state == CONNECTION_CLOSED)
        load_thread_move(connection, &thread->closed);
    else
        load_thread_await(thread, connection);
}

void load_sending_event(struct load_thread *thread, struct connection *connection,
                        enum connection_event event)
{
    switch (event) {
    case CONNECTION_NOTHING:
        if (connection->state == CONNECTION_TURNED_AWAY)
            wake_later(thread, connection, BACKLOG_RETRY_US);
        break;
    case CONNECTION_OPENED:
        load_thread_move(connection, &thread->idle);
        break;
    case CONNECTION_GONE:
        load_thread_move(connection, &thread->closed);
        break;
    case CONNECTION_SENT:
        sent(thread, connection);
        break;
    case CONNECTION_ANSWER:
        answered(thread, connection);
        break;
    case CONNECTION_NOT_SENT:
        ended(thread, connection, LOAD_NOT_SENT);
        break;
    case CONNECTION_BROKEN:
        ended(thread, connection, LOAD_BROKEN);
        break;
    case CONNECTION_BAD_ANSWER:
        ended(thread, connection, LOAD_BAD_ANSWER);
        break;
    }
}

void load_sending_expire(struct load_thread *thread, struct connection *connection)
{
    if (connection->state == CONNECTION_LEAVING) {
        leave(thread, connection);
        return;
    }
    enum connection_event event = connection_expire(connection);
    if (event == CONNECTION_BROKEN)
        ended(thread, connection, LOAD_TIMED_OUT);
    else
        load_sending_event(thread, connection, event);
}

void load_sending_wake(struct load_thread *thread, struct connection *connection)
{
    /* A timer may be stale if its connection's deadline came first. Then it does nothing, or acts
     * a little early. */
    if (connection->state == CONNECTION_LEAVING)
        leave(thread, connection);
    else if (connection->state == CONNECTION_TURNED_AWAY)
        load_sending_event(thread, connection, connection_again(connection, &thread->io));
}

bool load_sending_may_begin(const struct load_thread *thread)
{
    const struct load_options *options = thread->options;
    int depth = options->pipeline > 1 ? options->pipeline : 1;
    return !thread->ended && (options->mode != LOAD_CLOSED ||
                              thread->open < (uint64_t)thread->n_connections * (uint64_t)depth);
}

/* Takes the next sending: a due retry, else a due request of the schedule. */
static bool take_due(struct load_thread *thread, struct sending *ret)
{
    struct timer retry;
    if (timers_take(&thread->retries, thread->now_us, &retry)) {
        *ret = retry.sending;
        return true;
    }
    *ret = (struct sending){0};
    if (!load_sending_may_begin(thread) ||
        !schedule_take(&thread->cursor, thread->now_us, &ret->seq, &ret->intended_us))
        return false;
    thread->open++;
    return true;
}

/* Records how long the request waited for a connection and for the generator. In closed mode no
 * request waits. */
static void note_lag(struct load_thread *thread, const struct sending *sending)
{
    if (thread->options->mode == LOAD_CLOSED || sending->attempt > 0 ||
        !is_measured(thread, sending))
        return;
    int64_t late_us = thread->now_us - sending->intended_us;
    int64_t waited_us = thread->freed_us - sending->intended_us;
    if (waited_us < 0)
        waited_us = 0;
    if (waited_us > late_us)
        waited_us = late_us;
    hist_record(&thread->result.no_connection, waited_us);
    hist_record(&thread->result.own_lag, late_us - waited_us);
}

static void start(struct load_thread *thread, struct connection *connection,
                  const struct sending *sending)
{
    const struct load_options *options = thread->options;
    const struct load_workload *workload = thread->workload;
    struct load_result *result = &thread->result;
    size_t length =
        workload->request(workload->ctx, sending->seq, &options->targets[connection->target],
                          thread->text, sizeof thread->text);
    assert(length <= sizeof thread->text);
    if (length == 0) {
        schedule_exhausted(thread->cursor.schedule, sending->seq);
        result->unfinished += sending->attempt > 0;
        thread->open--;
        return;
    }
    thread->now_us = steady_us(); /* earlier sendings took time */
    note_lag(thread, sending);
    result->sent++;
    series_now(thread)->sent++;
    result->retries += sending->attempt > 0;
    bool pipelined = connection->state == CONNECTION_AWAITING;
    struct sending *into =
        pipelined ? &connection->behind[connection->n_behind++] : &connection->sending;
    *into = *sending;
    into->sent_us = thread->now_us;
    if (!pipelined) {
        connection->deadline_us = answer_deadline_us(thread, thread->now_us);
        load_thread_await(thread, connection);
    }
    load_sending_event(thread, connection,
                       connection_send(connection, &thread->io, thread->text, length));
}

struct connection *load_sending_free(const struct load_thread *thread)
{
    struct connection *connection = TAILQ_FIRST(&thread->idle);
    if (connection == NULL)
        connection = TAILQ_FIRST(&thread->closed);
    if (connection != NULL || thread->options->pipeline <= 1)
        return connection;
    TAILQ_FOREACH(connection, &thread->busy, link)
    if (connection->state == CONNECTION_AWAITING &&
        connection->n_behind < thread->options->pipeline - 1)
        return connection;
    return NULL;
}

/* The free connection after this one. NULL for a busy one: pipelined requests start one by one. */
static struct connection *next_free(struct load_thread *thread, struct connection *connection)
{
    struct connection *next = TAILQ_NEXT(connection, link);
    if (connection->list != &thread->idle && connection->list != &thread->closed)
        return NULL;
    return next == NULL && connection->list == &thread->idle ? TAILQ_FIRST(&thread->closed) : next;
}

bool load_sending_start_due(struct load_thread *thread)
{
    const struct load_workload *workload = thread->workload;
    struct sending due[STARTS_MAX];
    uint64_t seqs[STARTS_MAX];
    int n = 0;
    struct connection *room = load_sending_free(thread);
    if (thread->starved && room != NULL)
        thread->freed_us = thread->now_us;
    for (; n < STARTS_MAX && room != NULL && take_due(thread, &due[n]); n++) {
        seqs[n] = due[n].seq;
        room = next_free(thread, room);
    }
    if (n > 0 && workload->announce != NULL)
        workload->announce(workload->ctx, seqs, (size_t)n);
    for (int i = 0; i < n; i++)
        start(thread, load_sending_free(thread), &due[i]);
    thread->starved = load_sending_free(thread) == NULL;
    return n == STARTS_MAX || (n > 0 && room == NULL && load_sending_free(thread) != NULL);
}
