/* An instance of the service. */
#include "sandbox_process.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 1000 };

struct start {
    const char *binary;
    const char *const *args;
};

/* The line in its log proves that our process has the port. */
static bool is_listening(const struct sandbox_server *server)
{
    char line[SANDBOX_TEXT_MAX], wanted[SANDBOX_TEXT_MAX + 16];
    bool found = false;
    FILE *log = fopen(server->log, "r");
    if (log == NULL)
        return false;
    snprintf(wanted, sizeof wanted, "listening on %s", server->url);
    if (fseek(log, server->log_start, SEEK_SET) == 0)
        while (!found && fgets(line, sizeof line, log) != NULL)
            found = strstr(line, wanted) != NULL;
    fclose(log);
    return found;
}

bool sandbox_seckilld_answers(struct sandbox_server *server)
{
    static const char question[] =
        "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    return sandbox_answers(NULL, server->port, question, "HTTP/1.1 200 ", ANSWER_MS);
}

static bool seckilld_ready(struct sandbox_server *server)
{
    return is_listening(server) && sandbox_seckilld_answers(server);
}

static void seckilld_fill(struct sandbox_server *server, const void *arg)
{
    const struct start *start = arg;
    sandbox_arg(server, "%s", start->binary);
    sandbox_arg(server, "--listen");
    sandbox_arg(server, "127.0.0.1:%d", server->port);
    for (const char *const *next = start->args; next != NULL && *next != NULL; next++)
        sandbox_arg(server, "%s", *next);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", server->port);
}

struct sandbox_server *sandbox_seckilld(struct sandbox *sandbox, const char *binary,
                                        const char *const *args)
{
    struct sandbox_server *server = sandbox_add(sandbox, "seckilld", seckilld_ready);
    struct start start = {.binary = binary, .args = args};
    if (server == NULL || sandbox_start_on_free_port(server, seckilld_fill, &start) != 0)
        return NULL;
    return server;
}

int sandbox_seckilld_anew(struct sandbox_server *server, const char *binary,
                          const char *const *args)
{
    struct start start = {.binary = binary, .args = args};
    if (sandbox_alive(server))
        return -1;
    return sandbox_start_on_free_port(server, seckilld_fill, &start);
}
