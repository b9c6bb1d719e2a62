/*
 * libzookeeper_mt for the simulation. Its two threads are one fiber here: it connects, asks one
 * thing at a time, pings every third of the timeout, and calls back.
 */
#include "sim_threads.h"
#include "sim_world.h"
#include "sim_zk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

enum { WIRE_US = 300, RECONNECT_US = 20000, CHILDREN_MAX = 512, HANDLES_MAX = 512 };
enum { TIMEOUT_US_MIN = 200000 }; /* two ticks of the servers */

struct request {
    struct request *next;
    enum { CREATE, DELETE, GET, CHILDREN, SYNC } what;
    char *path, *data;
    int mode;
    bool watch;
    union {
        string_stat_completion_t created;
        void_completion_t done;
        data_completion_t data;
        strings_completion_t names;
        string_completion_t text;
    } call;
    const void *arg;
};

struct event {
    struct event *next;
    char path[1400];
};

struct handle {
    int group;
    int64_t session, timeout_us, heard_us, cut_until_us;
    watcher_fn watcher;
    void *context;
    bool connected, expired, closing;
    struct request *requests;
    struct event *events; /* watches that have fired */
    struct sim_fiber *fiber;
};

static struct handle *handles[HANDLES_MAX];
static size_t n_handles;

static struct handle *of(zhandle_t *handle)
{
    return (struct handle *)(uintptr_t)handle;
}

void sim_zk_part(int group, int64_t until_us)
{
    for (size_t i = 0; i < n_handles; i++)
        if (handles[i]->group == group)
            handles[i]->cut_until_us = until_us;
}

static bool is_reachable(const struct handle *handle)
{
    return sim_now_us() >= handle->cut_until_us && sim_now_us() >= sim_zk_server.away_until_us;
}

/* -- calling back ------------------------------------------------------------------------------ */

static void answer(struct request *request, int code, const struct sim_zk_node *node)
{
    struct Stat stat = {.czxid = node ? node->czxid : 0};
    char *names[CHILDREN_MAX];
    struct String_vector vector = {0, names};
    switch (request->what) {
    case CREATE:
        request->call.created(code, node ? node->path : NULL, &stat, request->arg);
        break;
    case GET:
        request->call.data(code, node ? node->data : NULL, node ? (int)strlen(node->data) : -1,
                           &stat, request->arg);
        break;
    case CHILDREN:
        if (code == ZOK)
            vector.count = (int32_t)sim_zk_children(request->path, names, CHILDREN_MAX);
        request->call.names(code, &vector, request->arg);
        break;
    case DELETE:
        request->call.done(code, request->arg);
        break;
    default:
        request->call.text(code, request->path, request->arg);
        break;
    }
    free(request->path);
    free(request->data);
    free(request);
}

static void answer_all(struct handle *handle, int code)
{
    while (handle->requests) {
        struct request *request = handle->requests;
        handle->requests = request->next;
        answer(request, code, NULL);
    }
}

static void tell_state(struct handle *handle, int state)
{
    handle->watcher((zhandle_t *)handle, ZOO_SESSION_EVENT, state, "", handle->context);
}

static void lose(struct handle *handle)
{
    if (!handle->connected)
        return;
    handle->connected = false;
    answer_all(handle, ZCONNECTIONLOSS);
    tell_state(handle, ZOO_CONNECTING_STATE);
}

static void on_fired(void *arg, const char *path)
{
    struct handle *handle = arg;
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        abort();
    snprintf(event->path, sizeof event->path, "%s", path);
    event->next = handle->events;
    handle->events = event;
    sim_wake(handle, 1);
}

static void tell_events(struct handle *handle)
{
    while (handle->events && handle->connected) {
        struct event *event = handle->events;
        handle->events = event->next;
        handle->watcher((zhandle_t *)handle, ZOO_DELETED_EVENT, ZOO_CONNECTED_STATE, event->path,
                        handle->context);
        free(event);
    }
}

/* -- asking ------------------------------------------------------------------------------------ */

static enum sim_zk_mode mode_of(int mode)
{
    return mode == ZOO_EPHEMERAL              ? ZK_EPHEMERAL_NODE
           : mode == ZOO_EPHEMERAL_SEQUENTIAL ? ZK_SEQUENTIAL_NODE
           : mode == ZOO_CONTAINER            ? ZK_CONTAINER_NODE
                                              : ZK_PLAIN;
}

static int do_it(struct handle *handle, const struct request *request, struct sim_zk_node **ret)
{
    switch (request->what) {
    case CREATE:
        return sim_zk_create(handle->session, request->path, request->data, mode_of(request->mode),
                             ret);
    case DELETE:
        return sim_zk_delete(request->path);
    case GET:
        *ret = sim_zk_find(request->path);
        if (*ret && request->watch)
            sim_zk_watch(request->path, on_fired, handle);
        return *ret ? ZOK : ZNONODE;
    case CHILDREN:
        return sim_zk_find(request->path) ? ZOK : ZNONODE;
    default:
        return ZOK;
    }
}

static bool is_cut(struct handle *handle, uint32_t one_in)
{
    if (is_reachable(handle) && !sim_one_in(one_in))
        return false;
    if (is_reachable(handle))
        sim_count(SIM_ZK_CUT);
    lose(handle);
    return true;
}

/* The first request goes there and its answer comes back. */
static void ask(struct handle *handle)
{
    struct sim_zk_node *node = NULL;
    sim_sleep_us(1 + sim_below(WIRE_US));
    if (is_cut(handle, sim_zk_server.faults.cut_before))
        return;
    if (!sim_zk_heard(handle->session)) {
        lose(handle);
        return;
    }
    const int code = do_it(handle, handle->requests, &node);
    handle->heard_us = sim_now_us();
    if (is_cut(handle, sim_zk_server.faults.cut_after))
        return;
    struct request *request = handle->requests;
    handle->requests = request->next;
    answer(request, code, node);
}

static void connect_to(struct handle *handle)
{
    sim_wait(handle, sim_now_us() + 1 + sim_below(RECONNECT_US));
    if (handle->closing || !is_reachable(handle))
        return;
    if (handle->session != 0 && !sim_zk_heard(handle->session)) {
        handle->expired = true;
        answer_all(handle, ZSESSIONEXPIRED);
        tell_state(handle, ZOO_EXPIRED_SESSION_STATE);
        return;
    }
    if (handle->session == 0)
        handle->session = sim_zk_session(handle->timeout_us);
    handle->heard_us = sim_now_us();
    handle->connected = true;
    tell_state(handle, ZOO_CONNECTED_STATE);
}

static void ping(struct handle *handle)
{
    if (sim_now_us() < handle->heard_us + handle->timeout_us / 3)
        return;
    if (!is_reachable(handle) || !sim_zk_heard(handle->session))
        lose(handle);
    handle->heard_us = sim_now_us();
}

static void *run(void *arg)
{
    struct handle *handle = arg;
    while (!handle->closing) {
        if (handle->expired) {
            sim_wait(handle, SIM_FOREVER);
        } else if (!handle->connected) {
            connect_to(handle);
        } else {
            ping(handle);
            tell_events(handle);
            if (handle->requests && handle->connected)
                ask(handle);
            else if (handle->connected && !handle->events)
                sim_wait(handle, handle->heard_us + handle->timeout_us / 3);
        }
    }
    answer_all(handle, ZCLOSING);
    if (handle->session != 0 && !handle->expired && is_reachable(handle))
        sim_zk_end_session(handle->session);
    return NULL;
}

/* -- the library's functions ------------------------------------------------------------------- */

zhandle_t *__wrap_zookeeper_init2(const char *host, watcher_fn watcher, int timeout_ms,
                                  const clientid_t *id, void *context, int flags,
                                  log_callback_fn log);
int __wrap_zookeeper_close(zhandle_t *handle);
int __wrap_zoo_recv_timeout(zhandle_t *handle);
int __wrap_zoo_set_servers_resolution_delay(zhandle_t *handle, int ms);
int __wrap_zoo_acreate2(zhandle_t *handle, const char *path, const char *data, int length,
                        const struct ACL_vector *acl, int mode, string_stat_completion_t call,
                        const void *arg);
int __wrap_zoo_adelete(zhandle_t *handle, const char *path, int version, void_completion_t call,
                       const void *arg);
int __wrap_zoo_aget(zhandle_t *handle, const char *path, int watch, data_completion_t call,
                    const void *arg);
int __wrap_zoo_aget_children(zhandle_t *handle, const char *path, int watch,
                             strings_completion_t call, const void *arg);
int __wrap_zoo_async(zhandle_t *handle, const char *path, string_completion_t call,
                     const void *arg);

zhandle_t *__wrap_zookeeper_init2(const char *host, watcher_fn watcher, int timeout_ms,
                                  const clientid_t *id, void *context, int flags,
                                  log_callback_fn log)
{
    (void)host;
    (void)id;
    (void)flags;
    (void)log;
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle || n_handles == HANDLES_MAX)
        abort();
    handle->group = sim_group();
    handle->timeout_us = (int64_t)timeout_ms * 1000;
    if (handle->timeout_us < TIMEOUT_US_MIN)
        handle->timeout_us = TIMEOUT_US_MIN;
    handle->watcher = watcher;
    handle->context = context;
    handles[n_handles++] = handle;
    handle->fiber = sim_spawn(handle->group, "zk-io", run, handle);
    sim_step();
    return (zhandle_t *)handle;
}

/* Its memory stays: a watch may fire. */
int __wrap_zookeeper_close(zhandle_t *zhandle)
{
    struct handle *handle = of(zhandle);
    handle->closing = true;
    sim_wake(handle, 1);
    while (!sim_ended(handle->fiber, NULL))
        sim_wait(handle->fiber, SIM_FOREVER);
    return ZOK;
}

int __wrap_zoo_recv_timeout(zhandle_t *handle)
{
    return (int)(of(handle)->timeout_us / 1000);
}

int __wrap_zoo_set_servers_resolution_delay(zhandle_t *handle, int ms)
{
    (void)handle;
    (void)ms;
    return ZOK;
}

static int enqueue(zhandle_t *zhandle, const struct request *what, const char *path,
                   const char *data)
{
    struct handle *handle = of(zhandle);
    struct request *request = malloc(sizeof *request), **at = &handle->requests;
    if (!request)
        abort();
    *request = *what;
    request->path = strdup(path);
    request->data = strdup(data);
    request->next = NULL;
    while (*at)
        at = &(*at)->next;
    *at = request;
    sim_wake(handle, 1);
    return ZOK;
}

int __wrap_zoo_acreate2(zhandle_t *handle, const char *path, const char *data, int length,
                        const struct ACL_vector *acl, int mode, string_stat_completion_t call,
                        const void *arg)
{
    (void)length;
    (void)acl;
    return enqueue(
        handle,
        &(struct request){.what = CREATE, .mode = mode, .call = {.created = call}, .arg = arg},
        path, data);
}

int __wrap_zoo_adelete(zhandle_t *handle, const char *path, int version, void_completion_t call,
                       const void *arg)
{
    (void)version;
    return enqueue(handle, &(struct request){.what = DELETE, .call = {.done = call}, .arg = arg},
                   path, "");
}

int __wrap_zoo_aget(zhandle_t *handle, const char *path, int watch, data_completion_t call,
                    const void *arg)
{
    return enqueue(
        handle,
        &(struct request){.what = GET, .watch = watch != 0, .call = {.data = call}, .arg = arg},
        path, "");
}

int __wrap_zoo_aget_children(zhandle_t *handle, const char *path, int watch,
                             strings_completion_t call, const void *arg)
{
    (void)watch;
    return enqueue(handle, &(struct request){.what = CHILDREN, .call = {.names = call}, .arg = arg},
                   path, "");
}

int __wrap_zoo_async(zhandle_t *handle, const char *path, string_completion_t call, const void *arg)
{
    return enqueue(handle, &(struct request){.what = SYNC, .call = {.text = call}, .arg = arg},
                   path, "");
}
