#include "classroom_http.h"
#include "qr_svg.h"
#include "steady.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TICK_MS = 250, PRESENTER_CONNECTIONS_MAX = 64, IDLE_S = 30 };

/* -- connections --------------------------------------------------------------------------------
 */

/* The context of a connection is its visit. NULL: no memory, so that its request is refused. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct listener *listener = cls;
    struct visit *visit = *context, *head = &listener->classroom->visits;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = visit = calloc(1, sizeof *visit);
        if (visit == NULL)
            return;
        visit->listener = listener;
        visit->connection = connection;
        visit->ends_ms = steady_ms() + listener->classroom->times.connection_ms;
        visit->next = head->next;
        visit->prev = head;
        head->next->prev = visit;
        head->next = visit;
    } else if (visit != NULL) {
        visit->prev->next = visit->next;
        visit->next->prev = visit->prev;
        free(visit);
        *context = NULL;
    }
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *length, void **context)
{
    (void)cls;
    (void)version;
    (void)context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct visit *visit = info != NULL ? info->socket_context : NULL;
    if (visit == NULL)
        return MHD_NO;
    if (!visit->begun) {
        visit->begun = true;
        return MHD_YES;
    }
    if (*length == 0)
        return classroom_answer(visit, method, path);
    visit->too_long |= *length > CLASSROOM_BODY_MAX - visit->length;
    if (!visit->too_long) {
        memcpy(visit->body + visit->length, bytes, *length);
        visit->length += *length;
    }
    *length = 0;
    return MHD_YES;
}

void classroom_wake(struct classroom *classroom)
{
    for (struct visit *one = classroom->visits.next; one != &classroom->visits; one = one->next)
        if (one->waits_ms > 0) {
            one->waits_ms = 0;
            MHD_resume_connection(one->connection);
            classroom->woken = true;
        }
}

static void close_visit(const struct visit *visit)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != NULL)
        shutdown(info->connect_fd, SHUT_RDWR);
}

/* Answers clients that have waited long enough, and ends connections that take too long. */
static void look_around(struct classroom *classroom, int64_t now_ms)
{
    for (struct visit *one = classroom->visits.next; one != &classroom->visits; one = one->next)
        if (one->waits_ms > 0 && now_ms >= one->waits_ms) {
            one->waits_ms = 0;
            MHD_resume_connection(one->connection);
            classroom->woken = true;
        } else if (one->waits_ms == 0 && now_ms >= one->ends_ms)
            close_visit(one);
}

/* -- the thread -------------------------------------------------------------------------------- */

/* The library's own epoll thread stalls when a multiple of 128 connections is busy. */
static void *serve(void *arg)
{
    struct classroom *classroom = arg;
    struct listener *two = classroom->listeners;
    struct pollfd fds[3] = {{.fd = two[0].epoll, .events = POLLIN},
                            {.fd = two[1].epoll, .events = POLLIN},
                            {.fd = classroom->stop_fd, .events = POLLIN}};
    int64_t looked_ms = 0;
    while ((fds[2].revents & POLLIN) == 0) {
        MHD_UNSIGNED_LONG_LONG wait_ms = TICK_MS, own_ms;
        for (int i = 0; i < 2; i++)
            if (MHD_get_timeout(two[i].daemon, &own_ms) == MHD_YES && own_ms < wait_ms)
                wait_ms = own_ms;
        poll(fds, 3, classroom->woken ? 0 : (int)wait_ms);
        classroom->woken = false;
        for (int i = 0; i < 2; i++)
            MHD_run(two[i].daemon);
        const int64_t now_ms = steady_ms();
        if (now_ms - looked_ms >= TICK_MS) {
            looked_ms = now_ms;
            look_around(classroom, now_ms);
        }
    }
    return NULL;
}

/* -- opening and closing ------------------------------------------------------------------------
 */

static int start_listener(struct classroom *classroom, struct listener *listener, int fd)
{
    listener->classroom = classroom;
    listener->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, listener,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(listener->presenter ? PRESENTER_CONNECTIONS_MAX : CLASSROOM_CONNECTIONS_MAX),
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)CLASSROOM_PER_ADDRESS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CLASSROOM_HEAD_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, listener,
        MHD_OPTION_END);
    if (listener->daemon == NULL) {
        close(fd);
        return -1;
    }
    listener->epoll = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    return 0;
}

static int listen_at(struct classroom *classroom, struct listener *listener, char *message)
{
    int fd = lan_listen(&listener->address, message);
    if (fd < 0)
        return -1;
    snprintf(message, CLASSROOM_MESSAGE_MAX, "cannot start the HTTP server");
    return start_listener(classroom, listener, fd);
}

static void name_addresses(struct classroom *classroom)
{
    char host[LAN_HOST_MAX + 16];
    const struct lan_address *address = &classroom->listeners[0].address;
    lan_text(address, address->port == 80, host, sizeof host);
    snprintf(classroom->url, sizeof classroom->url, "http://%s/", host);
    lan_text(&classroom->listeners[1].address, false, host, sizeof host);
    snprintf(classroom->presenter_url, sizeof classroom->presenter_url,
             "http://%s/index.html?present&key=%s", host, classroom->key);
}

static int start(struct classroom *classroom, const char *listen, char *message)
{
    struct listener *two = classroom->listeners;
    two[1].presenter = true;
    snprintf(two[1].address.host, sizeof two[1].address.host, "127.0.0.1");
    if (lan_choose(listen, &two[0].address, message) != 0 ||
        listen_at(classroom, &two[0], message) != 0 || listen_at(classroom, &two[1], message) != 0)
        return -1;
    name_addresses(classroom);
    snprintf(message, CLASSROOM_MESSAGE_MAX, "out of memory, or of threads");
    classroom->qr = qr_svg(classroom->url);
    classroom->has_thread =
        classroom->qr != NULL && pthread_create(&classroom->thread, NULL, serve, classroom) == 0;
    return classroom->has_thread ? 0 : -1;
}

int classroom_open(const char *site, const char *listen, const struct classroom_times *times,
                   struct classroom **ret, char message[CLASSROOM_MESSAGE_MAX])
{
    static const struct classroom_times usual = {CLASSROOM_CONNECTION_MS, CLASSROOM_WAIT_MS};
    struct classroom *classroom = calloc(1, sizeof *classroom);
    snprintf(message, CLASSROOM_MESSAGE_MAX, "out of memory, or of random numbers");
    if (classroom == NULL)
        return -1;
    classroom->times = times != NULL ? *times : usual;
    classroom->visits.next = classroom->visits.prev = &classroom->visits;
    classroom->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (classroom->stop_fd >= 0 && room_init(&classroom->room) == 0 &&
        room_random_id(classroom->key) == 0 &&
        site_files_read(&classroom->site, site, message) == 0 &&
        start(classroom, listen, message) == 0) {
        *ret = classroom;
        return 0;
    }
    classroom_close(classroom);
    return -1;
}

void classroom_close(struct classroom *classroom)
{
    if (classroom == NULL)
        return;
    if (classroom->has_thread) {
        const uint64_t one = 1;
        (void)!write(classroom->stop_fd, &one, sizeof one);
        pthread_join(classroom->thread, NULL);
    }
    classroom_wake(classroom); /* the library cannot stop with suspended connections */
    for (int i = 0; i < 2; i++)
        if (classroom->listeners[i].daemon != NULL)
            MHD_stop_daemon(classroom->listeners[i].daemon);
    if (classroom->stop_fd >= 0)
        close(classroom->stop_fd);
    site_files_free(&classroom->site);
    free(classroom->qr);
    free(classroom);
}

const char *classroom_url(const struct classroom *classroom)
{
    return classroom->url;
}

const char *classroom_presenter_url(const struct classroom *classroom)
{
    return classroom->presenter_url;
}
