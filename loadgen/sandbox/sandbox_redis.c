/* Redis without persistence, on a loopback port and a unix socket. Its password comes from a file
 * that it includes. An include, unlike a configuration file, lets no Sentinel rewrite it. */
#include "sandbox_process.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MS = 500 };

#define LOGIN_FILE "redis.conf"

/* Asks over the unix socket in our own folder, so the answer is from our server. On the TCP port
 * it could be from another program. */
bool sandbox_redis_answers(const struct sandbox_server *server)
{
    char question[128];
    snprintf(question, sizeof question, "AUTH %s\r\nPING\r\n", sandbox_password());
    return sandbox_answers(server->socket, 0, question, "+OK\r\n+PONG", ANSWER_MS);
}

static bool redis_ready(struct sandbox_server *server)
{
    return sandbox_redis_answers(server);
}

struct start {
    const char *const *extra; /* NULL: none */
    const char *shim;         /* path of the clock shim; NULL: the real clock */
    char offset[SANDBOX_TEXT_MAX + 64];
};

static void redis_fill(struct sandbox_server *server, const void *arg)
{
    const struct start *start = arg;
    const char *dir = sandbox_dir(server->sandbox);
    if (start->shim != NULL) {
        sandbox_arg(server, "env");
        sandbox_arg(server, "LD_PRELOAD=%s", start->shim);
        sandbox_arg(server, "CLOCKSHIM_FILE=%s", start->offset);
    }
    sandbox_arg(server, "redis-server");
    sandbox_arg(server, "--include");
    sandbox_arg(server, "%s/" LOGIN_FILE, dir);
    sandbox_arg(server, "--port");
    sandbox_arg(server, "%d", server->port);
    static const char *const fixed[] = {"--bind",
                                        "127.0.0.1",
                                        "--save",
                                        "",
                                        "--appendonly",
                                        "no",
                                        "--daemonize",
                                        "no",
                                        "--enable-debug-command",
                                        "yes"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        sandbox_arg(server, "%s", fixed[i]);
    sandbox_arg(server, "--dir");
    sandbox_arg(server, "%s/%s", dir, server->name);
    sandbox_arg(server, "--unixsocket");
    sandbox_arg(server, "%s", server->socket);
    for (const char *const *next = start->extra; next != NULL && *next != NULL; next++)
        sandbox_arg(server, "%s", *next);
    snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
}

/* One write, in place: the server has the file mapped. */
static int write_offset(const char *path, int64_t ahead_us)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool written = fd >= 0 && pwrite(fd, &ahead_us, sizeof ahead_us, 0) == sizeof ahead_us;
    if (fd >= 0)
        close(fd);
    if (!written)
        fprintf(stderr, "sandbox: cannot write %s: %s\n", path, strerror(errno));
    return written ? 0 : -1;
}

static struct sandbox_server *start_redis(struct sandbox *sandbox, struct start *start)
{
    struct sandbox_server *server = sandbox_add(sandbox, "redis", redis_ready);
    if (server == NULL || sandbox_secret(sandbox, LOGIN_FILE, "requirepass %s\nmasterauth %s\n",
                                         sandbox_password(), sandbox_password()) != 0)
        return NULL;
    char dir[SANDBOX_TEXT_MAX + sizeof server->name];
    snprintf(dir, sizeof dir, "%s/%s", sandbox_dir(sandbox), server->name);
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
    snprintf(start->offset, sizeof start->offset, "%s/clock", dir);
    if (start->shim != NULL && write_offset(start->offset, 0) != 0)
        return NULL;
    return sandbox_start_on_free_port(server, redis_fill, start) == 0 ? server : NULL;
}

struct sandbox_server *sandbox_redis(struct sandbox *sandbox, const char *const *extra)
{
    struct start start = {.extra = extra};
    return start_redis(sandbox, &start);
}

struct sandbox_server *sandbox_redis_with_clock(struct sandbox *sandbox, const char *shim)
{
    struct start start = {.shim = shim};
    return start_redis(sandbox, &start);
}

int sandbox_set_clock(struct sandbox_server *server, int64_t ahead_us)
{
    char path[SANDBOX_TEXT_MAX + sizeof server->name + 16];
    snprintf(path, sizeof path, "%s/%s/clock", sandbox_dir(server->sandbox), server->name);
    return write_offset(path, ahead_us);
}

struct redisContext *sandbox_redis_connect(const struct sandbox_server *server, int limit_ms)
{
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    redisContext *context = redisConnectUnixWithTimeout(server->socket, limit);
    if (context != NULL && context->err == 0)
        redisSetTimeout(context, limit);
    return sandbox_redis_login(context);
}

struct redisContext *sandbox_redis_login(struct redisContext *context)
{
    redisReply *reply = NULL;
    if (context != NULL && context->err == 0)
        reply = redisCommand(context, "AUTH %s", sandbox_password());
    bool good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (good)
        return context;
    if (context != NULL)
        redisFree(context);
    return NULL;
}

static redisReply *ask(const struct sandbox_server *server, const char *command, int limit_ms)
{
    redisContext *context = sandbox_redis_connect(server, limit_ms);
    redisReply *reply = context != NULL ? redisCommand(context, command) : NULL;
    if (context != NULL)
        redisFree(context);
    return reply;
}

struct redisReply *sandbox_redis_ask(const struct sandbox_server *server, const char *command)
{
    return ask(server, command, ANSWER_MS);
}

struct redisReply *sandbox_redis_order(const struct sandbox_server *server, const char *command)
{
    redisReply *reply = ask(server, command, SANDBOX_READY_MS);
    if (reply != NULL && (reply->type == REDIS_REPLY_STATUS || reply->type == REDIS_REPLY_STRING))
        return reply;
    fprintf(stderr, "sandbox: %s: %s: %s\n", server->name, command,
            reply != NULL && reply->str != NULL ? reply->str : "no answer");
    freeReplyObject(reply);
    return NULL;
}
