/* memcached on a loopback port, with a password. */
#include "sandbox_process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 500 };

#define LOGIN_FILE "memcached.auth"

void sandbox_memcached_login(char ret[SANDBOX_MEMCACHED_LOGIN_MAX])
{
    snprintf(ret, SANDBOX_MEMCACHED_LOGIN_MAX, "set login 0 -1 %zu\r\n" SANDBOX_USER " %s\r\n",
             strlen(SANDBOX_USER " ") + strlen(sandbox_password()), sandbox_password());
}

/* "STAT pid" shows its pid: another program on the port would show another. */
static bool memcached_ready(struct sandbox_server *server)
{
    char login[SANDBOX_MEMCACHED_LOGIN_MAX], question[SANDBOX_MEMCACHED_LOGIN_MAX + 16], wanted[64];
    sandbox_memcached_login(login);
    snprintf(question, sizeof question, "%sstats\r\n", login);
    snprintf(wanted, sizeof wanted, SANDBOX_MEMCACHED_LOGGED_IN "STAT pid %d\r\n",
             (int)server->pid);
    return sandbox_answers(NULL, server->port, question, wanted, ANSWER_MS);
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
    sandbox_arg(server, "--auth-file");
    sandbox_arg(server, "%s/" LOGIN_FILE, sandbox_dir(server->sandbox));
    sandbox_arg(server, "-t"); /* worker threads */
    sandbox_arg(server, "2");
    for (const char *const *arg = extra; arg != NULL && *arg != NULL; arg++)
        sandbox_arg(server, "%s", *arg);
    snprintf(server->url, sizeof server->url, "127.0.0.1:%d", server->port);
}

struct sandbox_server *sandbox_memcached(struct sandbox *sandbox, const char *const *extra)
{
    struct sandbox_server *server = sandbox_add(sandbox, "memcached", memcached_ready);
    if (server == NULL ||
        sandbox_secret(sandbox, LOGIN_FILE, SANDBOX_USER ":%s\n", sandbox_password()) != 0)
        return NULL;
    return sandbox_start_on_free_port(server, memcached_fill, extra) == 0 ? server : NULL;
}
