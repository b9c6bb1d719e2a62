/*
 * Inside of the sandbox: one guardian process per sandbox is the parent of all its servers.
 *
 * Why a process and not signal handlers: it outlives every way in which the program can end, so
 * closing, exit(), a crash and kill -9 all take the same path (end_all() in sandbox_guardian.c). It
 * is single-threaded, so a server's death signal is bound to a thread that lives as long as the
 * sandbox, and starting a server never forks the program with its threads and descriptors. And as
 * parent it alone reaps: a pid it knows cannot have been given to another process.
 */
#ifndef SANDBOX_PROCESS_H
#define SANDBOX_PROCESS_H

#include "sandbox.h"

#include <stdint.h>

enum {
    SANDBOX_READY_MS = 10000,   /* a server answers within this */
    SANDBOX_MAKE_MS = 40000,    /* ... or this, if it first makes a database cluster */
    SANDBOX_STOP_MS = 5000,     /* at closing: from SIGTERM to SIGKILL */
    SANDBOX_DRAIN_MS = 30000,   /* sandbox_signal(SIGTERM): likewise, the service drains first */
    SANDBOX_PORT_TRIES_MAX = 5, /* ports taken by others between choice and bind */
    SANDBOX_TAIL_MAX = 2000,    /* bytes of a log that are shown */
    SANDBOX_ARGS_BYTES_MAX = 2048,
    SANDBOX_UNIX_PATH_MAX = 107 /* bytes of a unix socket's path */
};

/* -- sandbox_guardian.c: between the program and the guardian, over a socket; one answer per
 * question ---
 */

enum guardian_verb {
    GUARDIAN_READY,  /* the folder is made (answer only) */
    GUARDIAN_START,  /* args, log -> pid */
    GUARDIAN_SIGNAL, /* pid, signal -> status when it was reaped */
    GUARDIAN_LOOK,   /* pid -> running? */
    GUARDIAN_CLOSE   /* no answer: the guardian ends everything, then itself */
};

struct guardian_request {
    enum guardian_verb verb;
    pid_t pid;
    int signal, n_args;
    char log[SANDBOX_TEXT_MAX];
    char args[SANDBOX_ARGS_BYTES_MAX]; /* n_args texts, each with its NUL */
};

struct guardian_reply {
    int error; /* errno; 0: done */
    pid_t pid;
    bool running;
    int status; /* wait status, when not running */
};

/* The guardian's whole life, in a fresh child. Only async-signal-safe calls. */
_Noreturn void guardian_main(int socket, int program_pidfd, const char *dir);

/* -- sandbox_process.c: the program's side --------------------------------------------------------
 */

struct guardian {
    pid_t pid;
    int socket;
};

/* Starts the guardian, which makes dir. Returns 0 or an errno. */
int guardian_open(struct guardian *guardian, const char *dir);
/* Returns the reply's error, or EPIPE when the guardian is gone. */
int guardian_ask(const struct guardian *guardian, const struct guardian_request *request,
                 struct guardian_reply *ret);
/* Returns when all servers are gone and the folder is removed; -1 when that failed. */
int guardian_close(struct guardian *guardian);

/* -- sandbox.c: for the files that know one kind of server ----------------------------------------
 */

/* True once the server answers; must return within a second. */
typedef bool sandbox_ready(struct sandbox_server *server);

/* A new server of the sandbox with a name ("redis-1"), a log, and no arguments yet; NULL when the
 * sandbox is full. */
struct sandbox_server *sandbox_add(struct sandbox *sandbox, const char *kind, sandbox_ready *ready);
/* Appends one argument, printf-style. Too many or too long: told by sandbox_start(). */
void sandbox_arg(struct sandbox_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Starts it and waits until it is ready. -1: it is not running, the reason is on stderr. */
int sandbox_start(struct sandbox_server *server);
/* Calls fill(server, arg) with a fresh server->port until sandbox_start() succeeds or fails for
 * another reason than the port. fill gives all arguments anew. */
int sandbox_start_on_free_port(struct sandbox_server *server,
                               void (*fill)(struct sandbox_server *server, const void *arg),
                               const void *arg);

/* -- sandbox_redis.c ----------------------------------------------------------------------------
 */

/* One command, words separated by single blanks, over the server's unix socket. The reply is the
 * caller's (freeReplyObject()); NULL: no answer within half a second. */
struct redisReply *sandbox_redis_ask(const struct sandbox_server *server, const char *command);

/* -- sandbox_net.c ------------------------------------------------------------------------------
 */

/* The server's port is this one now, and held; 0: none. */
void sandbox_take_port(struct sandbox_server *server, int port);
/* Is this loopback port in use? */
bool sandbox_port_taken(int port);
/* Sends question to the unix socket (or, path NULL, to the loopback port) and waits up to wait_ms
 * for an answer that begins with `wanted`. */
bool sandbox_answers(const char *path, int port, const char *question, const char *wanted,
                     int64_t wait_ms);
/* The same for a question of `length` bytes that may hold zeros. */
bool sandbox_answers_bytes(const char *path, int port, const void *question, size_t length,
                           const char *wanted, int64_t wait_ms);
/* The whole answer of a server on a loopback port that closes after it; what came within wait_ms,
 * at most size - 1 bytes; "" for none. */
void sandbox_ask(int port, const char *question, char *ret, size_t size, int64_t wait_ms);

/* As sandbox_server.ready: the service at the server's port says that it is ready. */
bool sandbox_seckilld_answers(struct sandbox_server *server);

#endif
