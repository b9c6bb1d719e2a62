/* One ZooKeeper, and its guards. */
#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define THREADED /* the synchronous functions */
#include <zookeeper/zookeeper.h>

/* A server that starts may accept a connection and never answer it. The client library gives it up
 * after two thirds of the session. */
enum {
    SESSION_MS = 30000,
    ANSWERS_WITHIN_MS = 2 * SESSION_MS,
    PATH_BYTES = 1024,
    SESSION_MS_MIN = 200
};

struct sandbox_zookeeper world_zookeeper;

/* The tests' own session, to read and change nodes. */
static zhandle_t *handle;

static const char *const roots[] = {"/lockkit/ephemeral", "/lockkit/sequential",
                                    "/lockkit/readwrite"};
enum { EPHEMERAL, ROOTS = sizeof roots / sizeof roots[0] };

static void on_event(zhandle_t *of, int type, int state, const char *path, void *context)
{
    (void)of;
    (void)type;
    (void)state;
    (void)path;
    (void)context;
}

/* A round trip: the library may not yet know that its connection is broken. */
static bool answers(void *arg)
{
    (void)arg;
    return zoo_exists(handle, "/", 0, NULL) == ZOK;
}

int world_zk_children(const char *path)
{
    struct String_vector names;
    int code = zoo_get_children(handle, path, 0, &names);
    int n = code == ZOK ? names.count : -1;
    if (code == ZOK)
        deallocate_String_vector(&names);
    return n;
}

bool world_zk_create(const char *path, int mode, char *ret, int size)
{
    return zoo_create(handle, path, "foreign", 7, &ZOO_OPEN_ACL_UNSAFE, mode, ret, size) == ZOK;
}

bool world_zk_delete(const char *path)
{
    return zoo_delete(handle, path, -1) == ZOK;
}

/* Calls each() for every child; returns the sum of the results. */
static int64_t for_children(const char *parent, int64_t (*each)(const char *path))
{
    struct String_vector names;
    int64_t sum = 0;
    if (zoo_get_children(handle, parent, 0, &names) != ZOK)
        return 0;
    for (int i = 0; i < names.count; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", parent, names.data[i]);
        sum += each(path);
    }
    deallocate_String_vector(&names);
    return sum;
}

static int64_t remove_tree(const char *path)
{
    return for_children(path, remove_tree) + (zoo_delete(handle, path, -1) == ZOK);
}

static int64_t count_children(const char *path)
{
    int n = world_zk_children(path);
    return n > 0 ? n : 0;
}

static bool has_node(const char *path)
{
    return zoo_exists(handle, path, 0, NULL) == ZOK;
}

/* -- the family ---------------------------------------------------------------------------------
 */

static const char *const guards[] = {"zk-ephemeral", "zk-sequential", "zk-readwrite", NULL};

static bool start(struct sandbox *sandbox)
{
    zoo_set_debug_level((ZooLogLevel)0);
    if (sandbox_zookeeper(sandbox, 1, &world_zookeeper) != 0)
        return false;
    handle =
        zookeeper_init(world_zookeeper.url, on_event, SESSION_MS, NULL, NULL, ZOO_NO_LOG_CLIENTENV);
    const char *login = getenv("LOCKKIT_ZOOKEEPER_AUTH");
    if (handle == NULL || login == NULL ||
        zoo_add_auth(handle, "digest", login, (int)strlen(login), NULL, NULL) != ZOK)
        return false;
    zoo_set_servers_resolution_delay(handle,
                                     -1); /* otherwise it keeps opening and closing sockets */
    return wait_until(answers, NULL, ANSWERS_WITHIN_MS);
}

static void endpoints(char *ret, size_t size, int proxy_port)
{
    snprintf(ret, size, "127.0.0.1:%d",
             proxy_port != 0 ? proxy_port : world_zookeeper.server[0]->port);
}

static int port(void)
{
    return world_zookeeper.server[0]->port;
}

static struct sandbox_server *server(size_t i)
{
    return i == 0 ? world_zookeeper.server[0] : NULL;
}

static void wipe(void)
{
    assert_true(wait_until(answers, NULL, ANSWERS_WITHIN_MS));
    remove_tree("/lockkit");
}

static bool exists(const char *key)
{
    char path[PATH_BYTES];
    for (size_t i = 0; i < ROOTS; i++) {
        snprintf(path, sizeof path, "%s/%s", roots[i], key);
        if (i == EPHEMERAL ? has_node(path) : world_zk_children(path) > 0)
            return true;
    }
    return false;
}

/* The sequence number that ZooKeeper appends: the last ten digits. */
static const char *sequence_of(const char *name)
{
    size_t length = strlen(name);
    return length > 10 ? name + length - 10 : name;
}

/* Removes the child with the lowest sequence number; the names of contenders have different
 * prefixes. */
static bool remove_first(const char *parent)
{
    struct String_vector names;
    char path[2 * PATH_BYTES];
    if (zoo_get_children(handle, parent, 0, &names) != ZOK)
        return false;
    const char *first = NULL;
    for (int i = 0; i < names.count; i++)
        if (first == NULL || strcmp(sequence_of(names.data[i]), sequence_of(first)) < 0)
            first = names.data[i];
    snprintf(path, sizeof path, "%s/%s", parent, first != NULL ? first : "");
    bool removed = first != NULL && world_zk_delete(path);
    deallocate_String_vector(&names);
    return removed;
}

static bool remove_lock(const char *key)
{
    char path[PATH_BYTES];
    for (size_t i = 0; i < ROOTS; i++) {
        snprintf(path, sizeof path, "%s/%s", roots[i], key);
        if (i == EPHEMERAL ? world_zk_delete(path) : remove_first(path))
            return true;
    }
    return false;
}

/* The lock does not expire: the session lasts as long as its holder lives and is connected. */
static int64_t left_ms(const char *key)
{
    (void)key;
    return -1;
}

/* Roots and containers are not counted: ZooKeeper removes empty containers after a while. */
static int64_t leftovers(void)
{
    int64_t n = 0;
    for (size_t i = 0; i < ROOTS; i++)
        n += i == EPHEMERAL ? count_children(roots[i]) : for_children(roots[i], count_children);
    return n;
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    (void)guard; /* the server checks for dead sessions at each tick */
    return (lease_ms > SESSION_MS_MIN ? lease_ms : SESSION_MS_MIN) + 2 * SANDBOX_ZOOKEEPER_TICK_MS;
}

const struct lock_family family_zookeeper = {
    .name = "zookeeper",
    .guards = guards,
    .start = start,
    .endpoints = endpoints,
    .port = port,
    .server = server,
    .wipe = wipe,
    .exists = exists,
    .remove = remove_lock,
    .left_ms = left_ms,
    .leftovers = leftovers,
    .crash_bound_ms = crash_bound_ms,
};
