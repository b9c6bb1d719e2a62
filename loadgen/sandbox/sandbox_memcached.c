/* memcached on a loopback port. */
#include "sandbox_process.h"

#include <stdio.h>
#include <unistd.h>

enum { ANSWER_MS = 500 };

/* "STAT pid" shows its pid: another program on the port would show another. */
static bool memcached_ready(struct sandbox_server *server)
{
    char pid[64];
    snprintf(pid, sizeof pid, "STAT pid %d\r\n", (int)server->pid);
    return sandbox_answers(NULL, server->port, "stats\r\n", pid, ANSWER_MS);
}

static void memcached_fill(struct sandbox_server *server, const void *extra)
{
    sandbox_arg(server, "memcached");
    if (geteuid() == 0) { /* it refuses to run as root without this */
        sandbox_arg(server, "-u");
        sandbox_arg(server, "root");
    }
    sandbox_arg(server, "-l");
    sandbox_arg(server, "127.0.0.1");
    sandbox_arg(server, "-p");
    sandbox_arg(server, "%d", server->port);
    sandbox_arg(server, "-t"); /* worker threads */
    sandbox_arg(server, "2");
    for (const char *const *arg = extra; arg != NULL && *arg != NULL; arg++)
        sandbox_arg(server, "%s", *arg);
    snprintf(server->url, sizeof server->url, "127.0.0.1:%d", server->port);
}

struct sandbox_server *sandbox_memcached(struct sandbox *sandbox, const char *const *extra)
{
    struct sandbox_server *server = sandbox_add(sandbox, "memcached", memcached_ready);
    if (server == NULL)
        return NULL;
    return sandbox_start_on_free_port(server, memcached_fill, extra) == 0 ? server : NULL;
}
