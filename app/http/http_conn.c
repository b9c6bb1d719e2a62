/*
 * Connections and their deadlines. All connections of a phase have the same time limit. So the list
 * of each phase is sorted by deadline, and only its first connection is checked.
 */
#include "http_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

int64_t conn_allowance_us(const struct http *http, enum phase phase)
{
    switch (phase) {
    case PHASE_IDLE:
        return http->limits.idle_ms * 1000;
    case PHASE_SILENT:
    case PHASE_READING:
        return http->limits.read_ms * 1000;
    case PHASE_DOOR:
    case PHASE_SERVICE:
        if (http->limits.grace_ms < 0)
            break;
        return (http->config->wait_ms + http->limits.grace_ms) * 1000;
    case PHASE_AUDIT:
        return http->limits.audit_ms * 1000;
    case PHASE_SENDING:
        return http->limits.send_ms * 1000;
    case PHASE_STREAM:
    case PHASE_ENDING:
    case PHASE_COUNT:
        break;
    }
    return INT64_MAX / 2; /* no deadline, or already shut down */
}

void conn_list_append(struct conn_list *list, struct conn *conn)
{
    conn->prev = list->last;
    conn->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = conn;
    list->last = conn;
    list->n++;
}

/* By its deadline. Only connections that were silent for a shorter time come behind it. */
static void list_insert(struct conn_list *list, struct conn *conn)
{
    struct conn *before = list->last;
    while (before != NULL && before->due_us > conn->due_us)
        before = before->prev;
    conn->prev = before;
    conn->next = before != NULL ? before->next : list->first;
    *(conn->next != NULL ? &conn->next->prev : &list->last) = conn;
    *(before != NULL ? &before->next : &list->first) = conn;
    list->n++;
}

void conn_list_remove(struct conn_list *list, struct conn *conn)
{
    *(conn->prev != NULL ? &conn->prev->next : &list->first) = conn->next;
    *(conn->next != NULL ? &conn->next->prev : &list->last) = conn->prev;
    list->n--;
}

void conn_phase(struct http *http, struct conn *conn, enum phase phase, int64_t now_us)
{
    conn_list_remove(&http->phases[conn->phase], conn);
    conn->phase = phase;
    conn->due_us = now_us + conn_allowance_us(http, phase);
    conn_list_append(&http->phases[phase], conn);
}

struct conn *conn_accepted(struct http *http, int fd, const struct sockaddr_in6 *from)
{
    struct conn *conn = conn_get(http);
    if (conn == NULL)
        return NULL;
    *conn = (struct conn){.fd = fd, .phase = PHASE_DOOR, .from = *from};
    conn->lined_up_us = http_now_us();
    conn->due_us = conn->lined_up_us + conn_allowance_us(http, PHASE_READING);
    if (!peers_enter(http, conn)) {
        conn_put(http, conn);
        return NULL;
    }
    http->metrics.connections++;
    atomic_fetch_add(&http->open_conns, 1);
    return conn;
}

void conn_forget(struct http *http, struct conn *conn)
{
    gone_forget(http, conn);
    peers_leave(http, conn);
    conn_put(http, conn);
    if (atomic_fetch_sub(&http->open_conns, 1) == 1 && http->draining) {
        pthread_mutex_lock(&http->gone_mutex);
        pthread_cond_broadcast(&http->gone_cond);
        pthread_mutex_unlock(&http->gone_mutex);
    }
}

static struct conn *opened(struct http *http, struct MHD_Connection *mhd)
{
    struct conn *conn = http->door.enters;
    assert(conn != NULL && conn->phase <= PHASE_SILENT);
    http->door.enters = NULL;
    conn->mhd = mhd;
    conn->waits_in = NULL;
    conn->phase = PHASE_READING;
    conn->due_us += http_now_us() - conn->lined_up_us; /* the wait was ours */
    list_insert(&http->phases[PHASE_READING], conn);
    return conn;
}

static void closed(struct http *http, struct conn *conn)
{
    if (conn->request != NULL) { /* its head did not fit libmicrohttpd's buffer */
        void *request = conn->request;
        request_end(http, conn->mhd, &request, MHD_REQUEST_TERMINATED_WITH_ERROR);
    }
    malformed_line(http, conn);
    conn_list_remove(&http->phases[conn->phase], conn);
    conn_forget(http, conn);
    http->runs_next = true;
}

void conn_opened_or_closed(void *http, struct MHD_Connection *mhd, void **conn,
                           enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *conn = opened(http, mhd);
    else
        closed(http, *conn);
}

void conn_shutdown(struct http *http, struct conn *conn)
{
    if (conn->phase == PHASE_SILENT) {
        door_close(http, conn);
        return;
    }
    shutdown(conn->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes it */
    conn_phase(http, conn, PHASE_ENDING, http_now_us());
}

void conn_resume(struct http *http, struct conn *conn)
{
    MHD_resume_connection(conn->mhd);
    http->runs_next = true;
}

static void end_late(struct http *http, struct conn *conn)
{
    if (conn->phase == PHASE_SERVICE || conn->phase == PHASE_AUDIT) {
        request_give_up(http, conn);
        return;
    }
    http->metrics.timed_out++;
    if (conn->phase == PHASE_READING || conn->phase == PHASE_SILENT) {
        char detail[64];
        snprintf(detail, sizeof(detail), "the request was not complete after %" PRId64 " ms",
                 http->limits.read_ms);
        answer_straight(http, conn, PROBLEM_REQUEST_TIMEOUT, detail, http->limits.read_ms * 1000);
    }
    conn_shutdown(http, conn);
}

long conn_ended_max(const struct http *http)
{
    enum { AT_LEAST = 64, WAITING_PER_ENDED = 16 };
    return AT_LEAST + http->in_flight / WAITING_PER_ENDED;
}

int64_t conn_expire(struct http *http, int64_t now_us)
{
    int64_t next_us = INT64_MAX;
    long left = conn_ended_max(http);
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        struct conn *conn;
        while ((conn = http->phases[phase].first) != NULL && conn->due_us <= now_us && left-- > 0)
            end_late(http, conn);
        if (conn != NULL && conn->due_us < next_us)
            next_us = conn->due_us;
    }
    const int64_t way_us = peers_give_way(http, now_us);
    return way_us < next_us ? way_us : next_us;
}

void conn_end_unused(struct http *http)
{
    for (int phase = PHASE_IDLE; phase <= PHASE_READING; phase++) {
        struct conn *next;
        for (struct conn *conn = http->phases[phase].first; conn != NULL; conn = next) {
            next = conn->next;
            if (conn->request == NULL)
                conn_shutdown(http, conn);
        }
    }
}
