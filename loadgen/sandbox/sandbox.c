/* The sandbox: its folder, its servers, and waiting until they answer. */
#include "sandbox_process.h"
#include "steady.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_AGAIN_MS = 2 };

struct sandbox {
    struct guardian guardian;
    char dir[SANDBOX_TEXT_MAX];
    int n_servers;
    struct sandbox_server *servers[SANDBOX_SERVERS_MAX];
};

enum { RANDOM_WORDS = 2, LOGIN_MAX = sizeof SANDBOX_USER + RANDOM_WORDS * 16 + 1 };

static char password[RANDOM_WORDS * 16 + 1]; /* "": not chosen yet */

/* Once for this process and the programs that it starts. What the caller's environment has for
 * lockkit belongs to other servers. */
static int choose_password(void)
{
    uint64_t random[RANDOM_WORDS];
    if (password[0] != '\0')
        return 0;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return -1;
    snprintf(password, sizeof password, "%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    char login[LOGIN_MAX];
    snprintf(login, sizeof login, SANDBOX_USER ":%s", password);
    return setenv("PGPASSWORD", password, 0) == 0 &&
                   setenv("LOCKKIT_REDIS_AUTH", password, 1) == 0 &&
                   setenv("LOCKKIT_SENTINEL_AUTH", password, 1) == 0 &&
                   setenv("LOCKKIT_MEMCACHED_AUTH", login, 1) == 0 &&
                   setenv("LOCKKIT_ZOOKEEPER_AUTH", login, 1) == 0
               ? 0
               : -1;
}

const char *sandbox_password(void)
{
    return password;
}

int sandbox_secret(const struct sandbox *sandbox, const char *name, const char *format, ...)
{
    char path[2 * SANDBOX_TEXT_MAX];
    snprintf(path, sizeof path, "%s/%s", sandbox->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return 0;
    va_list list;
    va_start(list, format);
    bool written = fd >= 0 && vdprintf(fd, format, list) > 0;
    va_end(list);
    if (fd >= 0 && close(fd) != 0)
        written = false;
    if (!written)
        fprintf(stderr, "sandbox: cannot write %s: %s\n", path, strerror(errno));
    return written ? 0 : -1;
}

int sandbox_open(struct sandbox **ret)
{
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);
    uint64_t random = 0;
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    if (sandbox == NULL || choose_password() != 0 ||
        getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        fprintf(stderr, "sandbox: %s\n", strerror(errno));
        free(sandbox);
        return -1;
    }
    int length = snprintf(sandbox->dir, sizeof sandbox->dir, "%s/seckill-%016llx", parent,
                          (unsigned long long)random);
    int error = length < 0 || (size_t)length >= sizeof sandbox->dir
                    ? ENAMETOOLONG
                    : guardian_open(&sandbox->guardian, sandbox->dir);
    if (error != 0) {
        fprintf(stderr, "sandbox: cannot set up a folder in %s: %s; set TMPDIR to another place\n",
                parent, strerror(error));
        free(sandbox);
        return -1;
    }
    if (sandbox_secret(sandbox, "password", "%s\n", password) != 0) {
        sandbox_close(sandbox);
        return -1;
    }
    *ret = sandbox;
    return 0;
}

void sandbox_take_port(struct sandbox_server *server, int port)
{
    if (server->port_fd >= 0)
        close(server->port_fd);
    server->port = port;
    server->port_fd = port > 0 ? sandbox_hold_port(port) : -1;
}

void sandbox_close(struct sandbox *sandbox)
{
    if (sandbox == NULL)
        return;
    if (guardian_close(&sandbox->guardian) != 0)
        fprintf(stderr, "sandbox: its guardian was killed or could not remove %s\n", sandbox->dir);
    for (int i = 0; i < sandbox->n_servers; i++) {
        sandbox_take_port(sandbox->servers[i], 0);
        free(sandbox->servers[i]);
    }
    free(sandbox);
}

const char *sandbox_dir(const struct sandbox *sandbox)
{
    return sandbox->dir;
}

struct sandbox_server *sandbox_add(struct sandbox *sandbox, const char *kind, sandbox_ready *ready)
{
    if (sandbox->n_servers == SANDBOX_SERVERS_MAX) {
        fprintf(stderr, "sandbox: no more than %d servers\n", SANDBOX_SERVERS_MAX);
        return NULL;
    }
    struct sandbox_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        fprintf(stderr, "sandbox: out of memory\n");
        return NULL;
    }
    sandbox->servers[sandbox->n_servers++] = server;
    server->sandbox = sandbox;
    server->port_fd = -1;
    server->ready = ready;
    server->ready_ms = SANDBOX_READY_MS;
    snprintf(server->name, sizeof server->name, "%s-%d", kind, sandbox->n_servers);
    int length = snprintf(server->log, sizeof server->log, "%s/%s.log", sandbox->dir, server->name);
    server->args_overflow = length < 0 || (size_t)length >= sizeof server->log;
    return server;
}

void sandbox_arg(struct sandbox_server *server, const char *format, ...)
{
    size_t room = sizeof server->args - server->args_length;
    va_list list;
    va_start(list, format);
    int length = vsnprintf(server->args + server->args_length, room, format, list);
    va_end(list);
    if (length < 0 || (size_t)length >= room || server->n_args == SANDBOX_ARGS_MAX) {
        server->args_overflow = true;
        return;
    }
    server->args_length += (size_t)length + 1;
    server->n_args++;
}

/* Prints the end of the log, which says why a server did not start. */
static void show_log(const struct sandbox_server *server)
{
    char tail[SANDBOX_TAIL_MAX + 1];
    FILE *log = fopen(server->log, "r");
    if (log == NULL)
        return;
    if (fseek(log, -SANDBOX_TAIL_MAX, SEEK_END) != 0)
        rewind(log);
    size_t length = fread(tail, 1, SANDBOX_TAIL_MAX, log);
    fclose(log);
    tail[length] = '\0';
    if (length == 0)
        fprintf(stderr, "sandbox: its log is empty\n");
    else
        fprintf(stderr, "sandbox: the end of its log:\n%s%s", tail,
                tail[length - 1] == '\n' ? "" : "\n");
}

static bool is_running(struct sandbox_server *server, int *ret_status)
{
    struct guardian_request request = {.verb = GUARDIAN_LOOK, .pid = server->pid};
    struct guardian_reply reply;
    if (server->pid == 0)
        return false;
    int error = guardian_ask(&server->sandbox->guardian, &request, &reply);
    if (error == 0 && reply.running)
        return true;
    *ret_status = error == 0 ? reply.status : 0;
    server->pid = 0;
    return false;
}

bool sandbox_alive(struct sandbox_server *server)
{
    int status;
    return is_running(server, &status);
}

static int await_ready(struct sandbox_server *server)
{
    int64_t deadline_ms = steady_ms() + server->ready_ms;
    while (!server->ready(server)) {
        int status = 0;
        if (!is_running(server, &status)) {
            fprintf(stderr, "sandbox: %s ended at once (%s %d)\n", server->name,
                    WIFSIGNALED(status) ? "signal" : "exit status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            return -1;
        }
        if (steady_ms() > deadline_ms) {
            fprintf(stderr, "sandbox: %s does not answer within %d ms\n", server->name,
                    server->ready_ms);
            sandbox_signal(server, SIGKILL);
            return -1;
        }
        steady_sleep_ms(LOOK_AGAIN_MS);
    }
    return 0;
}

int sandbox_start(struct sandbox_server *server)
{
    struct guardian_request request = {.verb = GUARDIAN_START, .n_args = server->n_args};
    struct guardian_reply reply;
    FILE *log = fopen(server->log, "a");
    if (log != NULL) { /* earlier text is from an earlier process */
        server->log_start = ftell(log);
        fclose(log);
    }
    strcpy(request.log, server->log);
    memcpy(request.args, server->args, sizeof request.args);
    int error =
        server->args_overflow ? E2BIG : guardian_ask(&server->sandbox->guardian, &request, &reply);
    if (error != 0) {
        fprintf(stderr, "sandbox: cannot start %s (%s): %s\n", server->name, server->args,
                strerror(error));
        return -1;
    }
    server->pid = reply.pid;
    if (await_ready(server) == 0)
        return 0;
    show_log(server);
    return -1;
}

int sandbox_start_on_free_port(struct sandbox_server *server,
                               void (*fill)(struct sandbox_server *server, const void *arg),
                               const void *arg)
{
    for (int attempt = 1; attempt <= SANDBOX_PORT_TRIES_MAX; attempt++) {
        sandbox_take_port(server, sandbox_free_port());
        server->n_args = 0;
        server->args_length = 0;
        fill(server, arg);
        if (sandbox_start(server) == 0)
            return 0;
        if (!sandbox_port_taken(server->port))
            return -1;
        fprintf(stderr, "sandbox: port %d was taken meanwhile, trying another\n", server->port);
    }
    return -1;
}

int sandbox_signal(struct sandbox_server *server, int signal)
{
    struct guardian_request request = {
        .verb = GUARDIAN_SIGNAL, .pid = server->pid, .signal = signal};
    struct guardian_reply reply;
    if (server->pid == 0 || guardian_ask(&server->sandbox->guardian, &request, &reply) != 0)
        return -1;
    if (reply.running)
        return 0;
    server->pid = 0;
    return reply.status;
}

int sandbox_restart(struct sandbox_server *server)
{
    if (server->pid != 0 && sandbox_alive(server))
        return -1;
    return sandbox_start(server);
}
