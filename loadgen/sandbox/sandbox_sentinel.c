/* A Redis master, a replica and three Sentinels, ready once all Sentinels agree. */
#include "sandbox_process.h"
#include "steady.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_MS = 10, FOLDER_MAX = SANDBOX_TEXT_MAX + 32 };

/*
 * Equal Sentinels often start a failover at the same moment, split the votes, and wait for twice
 * the failover timeout. So the first one notices first and alone. The others vote for it, and
 * replace it if it is gone. down_after_ms is long enough that a busy machine is not taken for a
 * dead master. The failover timeout is long enough to hear of the promoted replica: once a second.
 */
enum { FAILOVER_TIMEOUT_MS = 2000 };
static const struct {
    int down_after_ms, quorum;
} manner[SANDBOX_SENTINELS] = {{600, 1}, {1000, 2}, {1200, 2}};

struct to_watch {
    const struct sandbox_server *master;
    int which; /* index of the Sentinel */
};

static bool sentinel_ready(struct sandbox_server *server)
{
    return sandbox_redis_answers(server);
}

static void folder_of(const struct sandbox_server *server, char ret[FOLDER_MAX])
{
    snprintf(ret, FOLDER_MAX, "%s/%s", sandbox_dir(server->sandbox), server->name);
}

/* Sentinel keeps its state in its configuration file: its settings cannot be arguments. It writes
 * the file anew, with a mode of its own, so the folder keeps other users out. */
static void sentinel_fill(struct sandbox_server *server, const void *arg)
{
    const struct to_watch *to_watch = arg;
    char dir[FOLDER_MAX], path[FOLDER_MAX + 16];
    folder_of(server, dir);
    snprintf(path, sizeof path, "%s/s.conf", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    const char *password = sandbox_password();
    if (file != NULL) {
        fprintf(file,
                "port %d\nbind 127.0.0.1\ndir %s\nunixsocket %s\n"
                "sentinel monitor " SANDBOX_MASTER_NAME " 127.0.0.1 %d %d\n"
                "sentinel down-after-milliseconds " SANDBOX_MASTER_NAME " %d\n"
                "sentinel failover-timeout " SANDBOX_MASTER_NAME " %d\n"
                "sentinel auth-pass " SANDBOX_MASTER_NAME " %s\n"
                "requirepass %s\nsentinel sentinel-pass %s\n",
                server->port, dir, server->socket, to_watch->master->port,
                manner[to_watch->which].quorum, manner[to_watch->which].down_after_ms,
                FAILOVER_TIMEOUT_MS, password, password, password);
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
    sandbox_arg(server, "redis-server");
    sandbox_arg(server, "%s", path); /* if it could not be written, the server logs that and ends */
    sandbox_arg(server, "--sentinel");
}

static struct sandbox_server *start_sentinel(struct sandbox *sandbox,
                                             const struct to_watch *to_watch)
{
    struct sandbox_server *server = sandbox_add(sandbox, "sentinel", sentinel_ready);
    if (server == NULL)
        return NULL;
    char dir[FOLDER_MAX];
    folder_of(server, dir);
    if (mkdir(dir, 0700) != 0) {
        fprintf(stderr, "sandbox: cannot make %s: %s\n", dir, strerror(errno));
        return NULL;
    }
    int length = snprintf(server->socket, sizeof server->socket, "%s/s.sock", dir);
    if (length > SANDBOX_UNIX_PATH_MAX) {
        fprintf(stderr, "sandbox: %s is too long for a unix socket; set TMPDIR to a shorter path\n",
                server->socket);
        return NULL;
    }
    return sandbox_start_on_free_port(server, sentinel_fill, to_watch) == 0 ? server : NULL;
}

/* -- waiting until they agree ------------------------------------------------------------------ */

/* The value of a field in a flat list of names and values; "" if there is none. */
static const char *field(const redisReply *list, const char *name)
{
    for (size_t i = 0; list != NULL && i + 1 < list->elements; i += 2)
        if (list->element[i]->str != NULL && strcmp(list->element[i]->str, name) == 0)
            return list->element[i + 1]->str;
    return "";
}

/* Does it know the other two, and the replica as one that can be promoted? */
static bool agrees(const struct sandbox_server *sentinel)
{
    redisReply *master = sandbox_redis_ask(sentinel, "SENTINEL MASTER " SANDBOX_MASTER_NAME);
    redisReply *replicas = sandbox_redis_ask(sentinel, "SENTINEL REPLICAS " SANDBOX_MASTER_NAME);
    const redisReply *replica =
        replicas != NULL && replicas->elements == 1 ? replicas->element[0] : NULL;
    bool agreed = strcmp(field(master, "flags"), "master") == 0 &&
                  atoi(field(master, "num-other-sentinels")) == SANDBOX_SENTINELS - 1 &&
                  strcmp(field(replica, "flags"), "slave") == 0 &&
                  strcmp(field(replica, "master-link-status"), "ok") == 0;
    freeReplyObject(master);
    freeReplyObject(replicas);
    return agreed;
}

static int hurry(const struct sandbox_server *sentinel)
{
    /* ping-period: a replica counts as alive if it was heard from within five periods. While its
     * master is away it is asked once a second. tilt-trigger: a late timer, as on a busy machine,
     * must not stop Sentinel for 30 s. */
    redisReply *reply =
        sandbox_redis_order(sentinel, "SENTINEL DEBUG info-period 400 ping-period 300 ask-period 50"
                                      " publish-period 200 tilt-trigger 60000");
    bool done = reply != NULL;
    freeReplyObject(reply);
    return done ? 0 : -1;
}

int sandbox_sentinel(struct sandbox *sandbox, struct sandbox_sentinel *ret)
{
    struct sandbox_sentinel set = {.url = ""};
    const char *const fresh[] = {"--repl-diskless-sync-delay", "0", NULL};
    set.master = sandbox_redis(sandbox, fresh);
    if (set.master == NULL)
        return -1;
    char port[8];
    snprintf(port, sizeof port, "%d", set.master->port);
    set.replica = sandbox_redis(
        sandbox, (const char *const[]){"--replicaof", "127.0.0.1", port, fresh[0], fresh[1], NULL});
    if (set.replica == NULL)
        return -1;
    for (int i = 0; i < SANDBOX_SENTINELS; i++) {
        set.sentinel[i] =
            start_sentinel(sandbox, &(struct to_watch){.master = set.master, .which = i});
        if (set.sentinel[i] == NULL || hurry(set.sentinel[i]) != 0)
            return -1;
    }
    snprintf(set.url, sizeof set.url,
             "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/" SANDBOX_MASTER_NAME,
             set.sentinel[0]->port, set.sentinel[1]->port, set.sentinel[2]->port);
    int64_t deadline_ms = steady_ms() + SANDBOX_READY_MS;
    for (int i = 0; i < SANDBOX_SENTINELS;) {
        if (agrees(set.sentinel[i])) {
            i++;
            continue;
        }
        if (steady_ms() > deadline_ms) {
            fprintf(stderr, "sandbox: the Sentinels do not agree within %d ms\n", SANDBOX_READY_MS);
            return -1;
        }
        steady_sleep_ms(LOOK_MS);
    }
    *ret = set;
    return 0;
}
