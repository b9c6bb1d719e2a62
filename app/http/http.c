/*
 * The daemon and the one thread that drives it.
 *
 * libmicrohttpd's own epoll thread stalls when a multiple of 128 connections is busy, so the loop
 * is ours. It waits on libmicrohttpd's epoll descriptor, on the listening socket and on the
 * workers' eventfd, resumes the requests that the workers have finished, lets connections in, runs
 * libmicrohttpd and ends overdue connections.
 */
#include "http_internal.h"
#include "json_room.h"
#include "listen.h"
#include "point.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    /* libmicrohttpd's buffer of a connection: the largest head, its copy of the cookies, a note of
     * each header, cookie and argument, and the head of the answer. It is wiped one and a half
     * times for each request. */
    CONN_MEMORY = 20 * 1024,
    FILES_SPARE = 160 + DOOR_MAX /* descriptors for everything but --connections */
};

const struct http_limits http_limits_default = {.read_ms = 10000,
                                                .whole_ms = 1000,
                                                .idle_ms = 60000,
                                                .send_ms = 30000,
                                                .grace_ms = HTTP_GRACE_MS,
                                                .audit_ms = 600000};

int64_t http_now_us(void)
{
    return now_us();
}

static void tick_extras(const struct http *http)
{
    for (int i = 0; i < EXTRAS_MAX; i++)
        if (http->extras[i] != NULL && http->extras[i]->tick != NULL)
            http->extras[i]->tick();
}

static void end_extras(const struct http *http)
{
    for (int i = 0; i < EXTRAS_MAX; i++)
        if (http->extras[i] != NULL && http->extras[i]->end != NULL)
            http->extras[i]->end();
}

static void begin_drain(struct http *http)
{
    http->draining = true;
    conn_end_unused(http);
    door_end(http, true);
    http_events_end(http);
    end_extras(http);
    pthread_mutex_lock(&http->gone_mutex); /* without connections, closed() does not do this */
    pthread_cond_broadcast(&http->gone_cond);
    pthread_mutex_unlock(&http->gone_mutex);
}

/* Returns whether a worker had finished an operation. */
static bool take_done(struct http *http)
{
    struct op *op = http_done_take(&http->done);
    const bool any = op != NULL;
    for (struct op *next; op != NULL; op = next) {
        next = op->next;
        request_done(http, op);
    }
    return any;
}

/* How long the loop takes no answers after a run that resumed a connection. In such a run
 * libmicrohttpd walks through all suspended connections. With many of them answers gather for twice
 * the time of the walk, so that walks take at most a third of the thread's time. The part of a run
 * that exceeds the estimated walk is other work and does not count. */
static int64_t rest_us(const struct http *http, int64_t ran_us)
{
    enum { REST_FROM = 256, WALKED_PER_US = 4 };
    const int64_t walk_us = http->in_flight / WALKED_PER_US;
    return http->in_flight < REST_FROM ? 0 : 2 * (ran_us < walk_us ? ran_us : walk_us);
}

/* Waits for an event, but not beyond until_us. */
static void wait_for_events(struct http *http, struct pollfd *waits, nfds_t n, int64_t now_us,
                            int64_t until_us)
{
    enum { LONGEST_US = 60000000 };
    MHD_UNSIGNED_LONG_LONG mhd_ms;
    int64_t us = until_us - now_us < LONGEST_US ? until_us - now_us : LONGEST_US;
    if (us < 0 || http->runs_next ||
        (MHD_get_timeout(http->daemon, &mhd_ms) == MHD_YES && mhd_ms == 0))
        us = 0;
    const struct timespec timeout = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    ppoll(waits, n, &timeout, NULL); /* an error ends the wait like an event */
}

static void *loop(void *context)
{
    struct http *http = context;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    assert(info != NULL && info->epoll_fd >= 0);
    enum { MHD, GONE, DOOR, DONE, WAITS };
    struct pollfd waits[WAITS] = {[MHD] = {.fd = info->epoll_fd, .events = POLLIN},
                                  [GONE] = {.fd = http->gone_fd, .events = POLLIN},
                                  [DOOR] = {.events = POLLIN},
                                  [DONE] = {.fd = http->done.wake_fd, .events = POLLIN}};
    int64_t take_from_us = 0, door_us = INT64_MAX;
    while (!atomic_load(&http->stop_wanted)) {
        atomic_fetch_add_explicit(&http->turns, 1, memory_order_relaxed);
        const int64_t now_us = http_now_us();
        int64_t due_us = conn_expire(http, now_us);
        const int64_t events_us = http_events_tick(http, now_us);
        if (events_us < due_us)
            due_us = events_us;
        const int64_t gone_us = gone_tick(http, now_us);
        if (gone_us < due_us)
            due_us = gone_us;
        if (door_us < due_us)
            due_us = door_us;
        waits[DOOR].fd = door_is_open(http, now_us) ? http->listen_fd : -1;
        const bool resting = now_us < take_from_us;
        waits[GONE].revents = waits[DOOR].revents = waits[DONE].revents = 0;
        wait_for_events(http, waits, resting ? DONE : WAITS, now_us,
                        resting && take_from_us < due_us ? take_from_us : due_us);
        if (waits[GONE].revents != 0)
            gone_take(http);
        if (!resting && waits[DONE].revents != 0)
            http_done_woken(&http->done);
        const bool resumes = !resting && take_done(http);
        if (!http->draining && atomic_load(&http->drain_wanted))
            begin_drain(http);
        const int64_t run_us = http_now_us();
        door_us = door_turn(http, run_us, waits[DOOR].revents != 0);
        http->runs_next = false;
        MHD_run(http->daemon);
        if (resumes) {
            const int64_t ran_us = http_now_us();
            take_from_us = ran_us + rest_us(http, ran_us - run_us);
        }
        tick_extras(http);
    }
    end_extras(http);
    door_end(http, false);
    for (int phase = PHASE_SERVICE; phase <= PHASE_AUDIT; phase++)
        while (http->phases[phase].first != NULL)
            request_give_up(http, http->phases[phase].first);
    http_events_end(http);
    MHD_run(http->daemon); /* resumes these connections and sends what the sockets take */
    return NULL;
}

/* Raises the limit of open files for this many connections. 0, or -1 after a message. */
static int raise_file_limit(int64_t connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        getrlimit(RLIMIT_NOFILE, &limit);
    const uint64_t needed = (uint64_t)connections + FILES_SPARE;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < needed) {
        fprintf(stderr,
                "seckilld: %lld connections need %llu open files, the limit is %llu: lower "
                "--connections or raise it (ulimit -Hn)\n",
                (long long)connections, (unsigned long long)needed,
                (unsigned long long)limit.rlim_cur);
        return -1;
    }
    return 0;
}

/* Accepted sockets inherit this: a client whose machine has vanished is found out within a minute.
 */
static void ask_for_life(int fd)
{
    const int on = 1, idle_s = 30, every_s = 10, times = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

static int listen_socket(struct http *http)
{
    struct listen_address address;
    char message[LISTEN_MESSAGE_MAX];
    int port;
    if (listen_parse(http->config->listen, &address, message, sizeof(message)) != 0 ||
        (http->listen_fd = listen_open(&address, &port, message, sizeof(message))) < 0) {
        fprintf(stderr, "seckilld: %s\n", message);
        return -1;
    }
    ask_for_life(http->listen_fd);
    const bool v6 = strchr(address.host, ':') != NULL;
    snprintf(http->url, sizeof(http->url), "http://%s%s%s:%d", v6 ? "[" : "", address.host,
             v6 ? "]" : "", port);
    return 0;
}

static int start_daemon(struct http *http)
{
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | MHD_USE_TURBO |
            MHD_USE_NO_LISTEN_SOCKET,
        0, NULL, NULL, request_step, http, MHD_OPTION_EXTERNAL_LOGGER, http_log, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)http->config->connections + HTTP_BEYOND + DOOR_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONN_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
        MHD_OPTION_NOTIFY_CONNECTION, conn_opened_or_closed, http, MHD_OPTION_NOTIFY_COMPLETED,
        request_end, http, MHD_OPTION_URI_LOG_CALLBACK, request_begin, http, MHD_OPTION_END);
    if (http->daemon != NULL)
        return 0;
    fprintf(stderr, "seckilld: cannot start the HTTP server on %s\n", http->url);
    return -1;
}

int http_start(const struct config *config, struct service *service,
               const struct http_options *options, struct http **ret)
{
    static const struct http_options none;
    struct http *http = calloc(1, sizeof(*http));
    if (http == NULL) {
        fputs("seckilld: out of memory\n", stderr);
        return -1;
    }
    json_room_set_up();
    http->config = config;
    http->service = service;
    if (options == NULL)
        options = &none;
    http->limits = options->limits != NULL ? *options->limits : http_limits_default;
    http->tokens = options->tokens;
    memcpy(http->extras, options->extras, sizeof(http->extras));
    http->listen_fd = http->done.wake_fd = http->gone_fd = -1;
    pthread_mutex_init(&http->gone_mutex, NULL);
    pthread_cond_init(&http->gone_cond, NULL);

    if (raise_file_limit(config->connections) != 0)
        goto failed;
    http->events = http_events_open(config->instance, options->events_show_keys);
    if (http->events == NULL || http_done_open(&http->done) != 0 || gone_open(http) != 0 ||
        getrandom(&http->id_state, sizeof(http->id_state), 0) != sizeof(http->id_state) ||
        getrandom(&http->line_seed, sizeof(http->line_seed), 0) != sizeof(http->line_seed)) {
        fprintf(stderr, "seckilld: cannot prepare the HTTP side: %s\n", strerror(errno));
        goto failed;
    }
    if (listen_socket(http) != 0 || start_daemon(http) != 0)
        goto failed;
    errno = pthread_create(&http->thread, NULL, loop, http);
    if (errno == 0) {
        pthread_setname_np(http->thread, "http");
        *ret = http;
        return 0;
    }
    fprintf(stderr, "seckilld: cannot start the HTTP thread: %s\n", strerror(errno));

failed:
    if (http->daemon != NULL)
        MHD_stop_daemon(http->daemon);
    if (http->listen_fd >= 0)
        close(http->listen_fd);
    http_free(http);
    return -1;
}

const char *http_url(const struct http *http)
{
    return http->url;
}

void http_not_ready(struct http *http)
{
    atomic_store(&http->not_ready, true);
}

bool http_turns(struct http *http, int64_t within_ms)
{
    enum { LOOK_US = 1000 };
    const int64_t until_us = http_now_us() + within_ms * 1000;
    const unsigned before = atomic_load(&http->turns);
    http_done_wake(&http->done);
    while (atomic_load(&http->turns) == before && http_now_us() < until_us)
        usleep(LOOK_US);
    return atomic_load(&http->turns) != before;
}

void http_drain(struct http *http)
{
    http_not_ready(http);
    atomic_store(&http->drain_wanted, true);
    http_done_wake(&http->done);
}

bool http_drained(struct http *http, int64_t wait_ms)
{
    const int64_t until_us = http_now_us() + wait_ms * 1000;
    pthread_mutex_lock(&http->gone_mutex);
    while (atomic_load(&http->open_conns) > 0 &&
           cond_wait_until(&http->gone_cond, &http->gone_mutex, until_us))
        continue;
    pthread_mutex_unlock(&http->gone_mutex);
    return atomic_load(&http->open_conns) == 0;
}

void http_stop(struct http *http)
{
    atomic_store(&http->stop_wanted, true);
    http_done_wake(&http->done);
    pthread_join(http->thread, NULL);
    MHD_stop_daemon(http->daemon);
}

void http_free(struct http *http)
{
    take_done(http); /* finished after the loop's end: no request waits for them */
    pool_free(http);
    http_events_free(http->events);
    http_done_close(&http->done);
    gone_close(http);
    pthread_cond_destroy(&http->gone_cond);
    pthread_mutex_destroy(&http->gone_mutex);
    free(http);
}
