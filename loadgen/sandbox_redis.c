/* Redis without persistence, on a loopback port and a unix socket. */
#include "sandbox_process.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ANSWER_MS = 500 };

/* Asked over the unix socket in our own folder: whoever answers there is ours, which a port that
 * another program took would not tell. */
static bool redis_ready(struct sandbox_server *server)
{
    return sandbox_answers(server->socket, 0, "PING\r\n", "+PONG", ANSWER_MS);
}

static void redis_fill(struct sandbox_server *server, const void *extra)
{
    const char *dir = sandbox_dir(server->sandbox);
    sandbox_arg(server, "redis-server");
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
    for (const char *const *arg = extra; arg != NULL && *arg != NULL; arg++)
        sandbox_arg(server, "%s", *arg);
    snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
}

struct sandbox_server *sandbox_redis(struct sandbox *sandbox, const char *const *extra)
{
    struct sandbox_server *server = sandbox_add(sandbox, "redis", redis_ready);
    if (server == NULL)
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
    return sandbox_start_on_free_port(server, redis_fill, extra) == 0 ? server : NULL;
}

struct redisReply *sandbox_redis_ask(const struct sandbox_server *server, const char *command)
{
    struct timeval limit = {.tv_usec = ANSWER_MS * 1000};
    redisContext *context = redisConnectUnixWithTimeout(server->socket, limit);
    redisReply *reply = NULL;
    if (context != NULL && context->err == 0 && redisSetTimeout(context, limit) == REDIS_OK)
        reply = redisCommand(context, command);
    if (context != NULL)
        redisFree(context);
    return reply;
}
