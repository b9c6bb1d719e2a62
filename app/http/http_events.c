#include "http_events.h"
#include "answer.h"
#include "http_events_log.h"
#include "http_internal.h"
#include "parse.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    BLOCK_BYTES = 16384, /* libmicrohttpd's buffer for one message */
    SEND_BUFFER = 65536, /* the kernel's buffer for one listener */
    MESSAGE_ENDS = 96    /* bytes around the events of a message */
};

struct listener {
    struct listener *prev, *next;
    struct http *http;
    struct conn *conn;
    char resource[DB_RESOURCE_MAX + 1]; /* only its events; "": all */
    uint64_t at;                        /* the next event to send */
    uint64_t tick;                      /* the last tick whose counters were sent */
    uint64_t round;                     /* the tick whose counters are being sent */
    size_t board;                       /* the next one of this round */
    int64_t lost;                       /* events that it missed, for hello; -1: unknown */
    int64_t wrote_us;
    bool greeted, sleeping; /* sleeping: suspended until it is woken after the next tick */
};

struct http_events {
    const char *instance;
    uint64_t epoch; /* in each id, to recognize the ids of another process */
    struct events_log log;
    int64_t tick_due_us, linger_until_us;
    struct listener *first;
    struct listener *to_wake; /* and those behind it, since the last tick */
    int n_listeners;
    bool ended;
    uint64_t dropped, refused;
};

struct http_events *http_events_open(const char *instance, bool show_keys)
{
    struct http_events *events = calloc(1, sizeof *events);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (events != NULL) {
        events->instance = instance;
        events_show_keys(show_keys);
        events->epoch = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    }
    return events;
}

void http_events_free(struct http_events *events)
{
    if (events == NULL)
        return;
    assert(events->first == NULL);
    events_log_close(&events->log);
    free(events);
}

static bool concerns(const struct listener *listener, const char *resource)
{
    return listener->resource[0] == '\0' || strcmp(listener->resource, resource) == 0;
}

/* -- sending: whole messages, at most size bytes ---------------------------------------------- */

static size_t say_hello(struct listener *listener, char *text, size_t size, int64_t now_us)
{
    struct timespec wall;
    char instance[80];
    json_escape(instance, sizeof instance, listener->http->events->instance);
    clock_gettime(CLOCK_REALTIME, &wall);
    int n = snprintf(text, size,
                     "retry: 1000\nevent: hello\ndata: {\"instance\":\"%s\",\"lost\":%" PRId64
                     ",\"t_us\":%" PRId64 ",\"wall_us\":%" PRId64 "}\n\n",
                     instance, listener->lost, now_us,
                     (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000);
    if (n <= 0 || (size_t)n >= size)
        return 0;
    listener->greeted = true;
    return (size_t)n;
}

/* Writes as many events as fit, as one message. Its id is that of the last event seen. */
static size_t say_events(struct listener *listener, char *text, size_t size)
{
    static const char begin[] = "event: trace\ndata: [";
    const struct http_events *events = listener->http->events;
    size_t n = sizeof begin - 1;
    if (size < EVENT_TEXT_MAX + MESSAGE_ENDS)
        return 0;
    while (listener->at < events->log.head) {
        const struct events_line *line = &events->log.lines[listener->at % HTTP_EVENTS_KEPT];
        if (concerns(listener, line->resource)) {
            if (n + line->length + MESSAGE_ENDS > size)
                break;
            if (n > sizeof begin - 1)
                text[n++] = ',';
            memcpy(text + n, line->text, line->length);
            n += line->length;
        }
        listener->at++;
    }
    if (n == sizeof begin - 1)
        return 0;
    memcpy(text, begin, sizeof begin - 1);
    int end = snprintf(text + n, size - n, "]\nid: %" PRIx64 "-%" PRIu64 "\n\n", events->epoch,
                       listener->at - 1);
    assert(end > 0 && (size_t)end < size - n);
    return n + (size_t)end;
}

static size_t say_counters(struct listener *listener, char *text, size_t size)
{
    const struct http_events *events = listener->http->events;
    size_t n = 0;
    if (listener->board == 0)
        listener->round = events->log.tick;
    for (; listener->board < EVENTS_RESOURCES_MAX; listener->board++) {
        const struct events_board *board = &events->log.boards[listener->board];
        if (board->tick <= listener->tick || !concerns(listener, board->resource))
            continue;
        if (n + board->length + MESSAGE_ENDS > size)
            return n; /* the rest comes with the next call */
        memcpy(text + n, board->text, board->length);
        n += board->length;
    }
    if (events->log.limits_tick > listener->tick) {
        int more =
            snprintf(text + n, size - n,
                     "event: limits\ndata: {\"unnoted\":%" PRIu64 ",\"lost\":%" PRIu64 "}\n\n",
                     events->log.unnoted, events->log.lost);
        if (more <= 0 || (size_t)more >= size - n)
            return n;
        n += (size_t)more;
    }
    listener->tick = listener->round;
    listener->board = 0;
    return n;
}

/* libmicrohttpd calls it when it can send more. */
static ssize_t read_stream(void *context, uint64_t position, char *text, size_t size)
{
    struct listener *listener = context;
    const struct http_events *events = listener->http->events;
    const int64_t now_us = http_now_us();
    size_t n = 0;
    (void)position;
    if (events->ended || listener->conn->phase == PHASE_ENDING)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!listener->greeted)
        n = say_hello(listener, text, size, now_us);
    if (n == 0 && listener->at >= events_log_oldest(&events->log))
        n = say_events(listener, text, size);
    if (n == 0 && listener->tick < events->log.tick)
        n = say_counters(listener, text, size);
    if (n == 0 && now_us - listener->wrote_us >= HTTP_EVENTS_HEARTBEAT_US) {
        static const char heartbeat[] = ": heartbeat\n\n";
        n = sizeof heartbeat - 1;
        memcpy(text, heartbeat, n);
    }
    if (n == 0) {
        listener->sleeping = true;
        MHD_suspend_connection(listener->conn->mhd);
        return 0;
    }
    listener->wrote_us = now_us;
    listener->http->metrics.sent_bytes += n;
    return (ssize_t)n;
}

/* -- listeners -------------------------------------------------------------------------------- */

static void end_listener(void *context)
{
    struct listener *listener = context;
    struct http_events *events = listener->http->events;
    *(listener->prev != NULL ? &listener->prev->next : &events->first) = listener->next;
    if (listener->next != NULL)
        listener->next->prev = listener->prev;
    if (events->to_wake == listener)
        events->to_wake = listener->next;
    free(listener);
    const int64_t now_us = http_now_us();
    if (--events->n_listeners == 0)
        events->linger_until_us = now_us + EVENTS_LINGER_US;
    events_listen(events->n_listeners, now_us);
}

/* Sets where a listener begins: now, or after the event in Last-Event-ID. */
static void place(struct listener *listener, const char *last_id)
{
    const struct http_events *events = listener->http->events;
    uint64_t epoch, last;
    listener->at = events->log.head;
    if (last_id == NULL || sscanf(last_id, "%" SCNx64 "-%" SCNu64, &epoch, &last) != 2)
        return;
    listener->at = events_log_oldest(&events->log);
    if (epoch != events->epoch || last >= events->log.head)
        listener->lost = -1;
    else if (last + 1 < listener->at)
        listener->lost = (int64_t)(listener->at - last - 1);
    else
        listener->at = last + 1;
}

static void wake(struct listener *listener)
{
    if (!listener->sleeping)
        return;
    listener->sleeping = false;
    conn_resume(listener->http, listener->conn);
}

static bool prepare(struct http_events *events, struct request *request, char *resource)
{
    struct op *op = &request->call->op;
    if (!parse_audit_query(request_query(request), op))
        return false;
    strcpy(resource, op->resource);
    const bool room = events_log_open(&events->log);
    if (events->n_listeners < HTTP_EVENTS_LISTENERS_MAX && room && !events->ended)
        return true;
    events->refused++;
    if (!room)
        op_problem(op, PROBLEM_OVERLOADED, "there is no memory for the events; try later");
    else if (events->ended)
        op_problem(op, PROBLEM_DRAINING, "this instance is shutting down");
    else
        op_problem(op, PROBLEM_OVERLOADED, "at most %d listeners", HTTP_EVENTS_LISTENERS_MAX);
    return false;
}

enum MHD_Result http_events_answer(struct http *http, struct request *request)
{
    struct http_events *events = http->events;
    char resource[DB_RESOURCE_MAX + 1];
    if (!prepare(events, request, resource))
        return answer_send(http, request);
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return MHD_NO;
    gone_watch(http, request->conn);
    listener->http = http;
    listener->conn = request->conn;
    strcpy(listener->resource, resource);
    if (events->n_listeners == 0)
        events_log_take(&events->log); /* skips events from the time of the last listener */
    listener->wrote_us = http_now_us();
    place(listener,
          MHD_lookup_connection_value(request->conn->mhd, MHD_HEADER_KIND, "Last-Event-ID"));
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, listener, end_listener);
    if (response == NULL) {
        free(listener);
        return MHD_NO;
    }
    listener->next = events->first;
    if (events->first != NULL)
        events->first->prev = listener;
    events->first = listener;
    events_listen(++events->n_listeners, listener->wrote_us);
    const int buffer = SEND_BUFFER;
    setsockopt(request->conn->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);

    struct op *op = &request->call->op;
    op->answer.status = MHD_HTTP_OK;
    request->type = "text/event-stream";
    request->close = true; /* the connection ends with the stream */
    enum MHD_Result result = answer_queue(http, request, response);
    if (result == MHD_YES)
        conn_phase(http, request->conn, PHASE_STREAM, listener->wrote_us);
    MHD_destroy_response(response);
    return result;
}

/* -- ten times a second ------------------------------------------------------------------------ */

/* Cuts a listener off that reads too slowly. */
static void check(struct http *http, struct listener *listener, int64_t now_us)
{
    struct http_events *events = http->events;
    const int64_t stands_us = http->limits.send_ms * 1000; /* its client takes nothing */
    const bool stands = !listener->sleeping && now_us - listener->wrote_us > stands_us;
    if ((stands || listener->at < events_log_oldest(&events->log)) &&
        listener->conn->phase == PHASE_STREAM) {
        events->dropped++;
        conn_shutdown(http, listener->conn);
    }
}

/* Wakes a few, so that a request waits in this turn of the loop for a few texts only. Each turn in
 * which one is woken walks through all suspended connections: the more of them, the more are woken.
 * Returns whether some are left. */
static bool wake_some(struct http *http, int64_t now_us)
{
    enum { WOKEN_MIN = 16, WAITING_PER_WOKEN = 64 };
    struct http_events *events = http->events;
    for (long n = WOKEN_MIN + http->in_flight / WAITING_PER_WOKEN; n > 0 && events->to_wake; n--) {
        struct listener *listener = events->to_wake;
        events->to_wake = listener->next;
        check(http, listener, now_us);
        wake(listener);
    }
    return events->to_wake != NULL;
}

int64_t http_events_tick(struct http *http, int64_t now_us)
{
    struct http_events *events = http->events;
    if (events->n_listeners == 0 && now_us >= events->linger_until_us)
        return INT64_MAX;
    if (now_us >= events->tick_due_us && events->to_wake == NULL) {
        events->tick_due_us = now_us + HTTP_EVENTS_TICK_US;
        events_log_take(&events->log);
        events->to_wake = events->first;
    }
    return wake_some(http, now_us) ? now_us : events->tick_due_us;
}

void http_events_end(struct http *http)
{
    struct http_events *events = http->events;
    if (events->ended)
        return;
    events->ended = true;
    for (struct listener *listener = events->first; listener != NULL; listener = listener->next) {
        if (!listener->sleeping) /* its socket is full: do not wait for it */
            conn_shutdown(http, listener->conn);
        wake(listener);
    }
}

void http_events_metrics(const struct http_events *events, FILE *out)
{
    fprintf(
        out,
        "# HELP seckill_events_listeners Open streams of /v1/events.\n"
        "# TYPE seckill_events_listeners gauge\nseckill_events_listeners %d\n"
        "# HELP seckill_events_total Events kept for them.\n"
        "# TYPE seckill_events_total counter\nseckill_events_total %" PRIu64 "\n"
        "# HELP seckill_events_dropped_readers_total Streams cut off for reading too slowly.\n"
        "# TYPE seckill_events_dropped_readers_total counter\n"
        "seckill_events_dropped_readers_total %" PRIu64 "\n"
        "# HELP seckill_events_refused_total Listeners refused.\n"
        "# TYPE seckill_events_refused_total counter\nseckill_events_refused_total %" PRIu64 "\n"
        "# HELP seckill_events_unnoted_total Operations beyond those traced.\n"
        "# TYPE seckill_events_unnoted_total counter\nseckill_events_unnoted_total %" PRIu64 "\n",
        events->n_listeners, events->log.head, events->dropped, events->refused,
        events->log.unnoted);
}
